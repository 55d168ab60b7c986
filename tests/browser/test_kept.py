"""What the console keeps of a person's work: columns in several tabs, drafts, and the place to which Back leads."""

import asyncio
import json
import re
from urllib.parse import quote, unquote

import pytest
from playwright.async_api import CDPSession, Page, expect

from tests.browser.windows import ENTER, Window, Windows, named_user, session
from tests.end_to_end.api import Api, mint
from tests.waiting import eventually

pytestmark = pytest.mark.extended

SCOPES = "read write stream"

DEAF = """() => {
  const [kept, get] = [localStorage.getItem("stream-server.columns"), Storage.prototype.getItem];
  const held = [];
  const hold = event => { event.stopImmediatePropagation(); held.push(event.newValue); };
  Storage.prototype.getItem = function (key) { return key === "stream-server.columns" ? kept : get.call(this, key); };
  addEventListener("storage", hold, true);
  window.hear = () => {
    Storage.prototype.getItem = get;
    removeEventListener("storage", hold, true);
    for (const newValue of held) dispatchEvent(new StorageEvent("storage", { key: "stream-server.columns", newValue }));
  };
}"""
"""Lets a tab know nothing of what others keep until `hear()`: browsers tell other processes of it a moment later."""

KEEP = """([text, isHeard]) => {
  localStorage.setItem("stream-server.columns", text);
  if (isHeard) dispatchEvent(new StorageEvent("storage", { key: "stream-server.columns", newValue: text }));
}"""
"""Keeps columns, as another tab does if it is heard of."""

END_SESSION = """() => {
  localStorage.removeItem("stream-server.session");
  dispatchEvent(new StorageEvent("storage", { key: "stream-server.session" }));
}"""


def columns(*words: str) -> str:
    return f"/#/streams/{quote(json.dumps([{'words': [word]} for word in words]))}"


async def shown(page: Page, *titles: str) -> None:
    """Wait until the page shows columns with these titles, and its address names them."""

    def named() -> list[str]:
        return [one["words"][0] for one in json.loads(unquote(page.url).partition("streams/")[2])]

    await expect(page.locator(".column h2")).to_have_text([*titles])
    await eventually(lambda: named() == [*titles])


async def close_column(page: Page, title: str) -> None:
    await page.locator(".column", has=page.locator("h2", has_text=title)).locator(".menu summary").click()
    await page.locator(".menu[open]").get_by_role("button", name="Close column").click()


async def test_tabs_keep_each_others_columns(site_api: Api, windows: Windows) -> None:
    """What one adds, closes and moves comes to the other, whose other columns stay as they are, on one socket."""
    user = await named_user(site_api, "keela")
    window = await windows.open(user, columns("onyx", "twill"))
    one, sockets = window.page, []
    await expect(one.locator(".column .state").last).to_contain_text("live")
    two = await one.context.new_page()
    two.on("websocket", lambda socket: sockets.append(socket.url))
    await two.goto(f"{site_api.server.address}/#/streams")
    other = Window(two, site_api.server)
    await shown(two, "onyx", "twill")
    await expect(two.locator(".column .state").last).to_contain_text("live")
    await site_api.post(user["id"], "twill for you")
    await expect(two.locator(".column .post")).to_have_count(1)
    await two.evaluate("window.left = document.querySelector('.column + .column')")
    await two.evaluate("window.row = left.querySelector('.post')")

    await window.add_column("thrush")
    await shown(two, "onyx", "twill", "thrush")
    await close_column(two, "onyx")
    await shown(one, "twill", "thrush")
    await one.locator(".column .menu summary").last.click()
    await one.locator(".menu[open]").get_by_role("button", name="Move left").click()
    await shown(two, "thrush", "twill")
    assert await two.evaluate("window.left.isConnected && window.row.isConnected")
    await site_api.post(user["id"], "thrush for me")
    for page in (one, two):
        await expect(page.locator(".column").first.locator(".post")).to_have_text([re.compile("thrush for me")])
    assert len(sockets) == 1

    await asyncio.gather(one.evaluate(DEAF), two.evaluate(DEAF))
    await window.add_column("fern")
    await other.add_column("fig")
    await asyncio.gather(one.evaluate("hear()"), two.evaluate("hear()"))
    for page in (one, two):
        await expect(page.locator(".column")).to_have_count(4)
    titles = await one.locator(".column h2").all_text_contents()
    assert sorted(titles) == ["fern", "fig", "thrush", "twill"]
    await shown(two, *titles)
    await one.reload()
    await shown(one, *titles)
    assert len(sockets) == 1
    for _ in range(2):
        await one.get_by_role("button", name="Change between light and dark").click()
        chosen = await one.evaluate("document.documentElement.dataset.theme")
        await expect(two.locator(f"html[data-theme={chosen}]")).to_have_count(1)

    await one.evaluate("""() => {
      const state = JSON.parse(localStorage.getItem("stream-server.columns"));
      Object.assign(state.columns[0], { width: 400, v: 99 });
      localStorage.setItem("stream-server.columns", JSON.stringify(state));
    }""")
    await close_column(two, "twill")
    await expect(one.locator(".column")).to_have_count(3)
    kept = json.loads(await one.evaluate("localStorage.getItem('stream-server.columns')"))
    assert [each.get("width") for each in kept["columns"]] == [400, None, None]
    await two.close()


async def test_columns_of_earlier_versions_are_read(site_api: Api, windows: Windows) -> None:
    """A tab that was open before the update tells of the same columns under no id: they do not come twice."""
    window = await windows.open(await named_user(site_api, "kora"), columns("new"))
    await shown(window.page, "new")
    old = quote(json.dumps([{"words": ["old"]}]))
    await window.page.evaluate(KEEP, [old, True])
    await window.add_column("newer")
    await shown(window.page, "new", "newer")
    await window.page.evaluate(KEEP, [old, False])
    await window.page.reload()
    await shown(window.page, "old")


async def test_another_title_loads_nothing_anew(site_api: Api, windows: Windows) -> None:
    """The column keeps its rows, its socket, and the place where one reads."""
    user = await named_user(site_api, "kenna")
    for number in range(12):
        await site_api.post(user["id"], f"retitled {number}")
    window = await windows.open(user, columns("retitled", "other"))
    page, asked = window.page, []
    column = page.locator(".column").first
    await expect(column.locator(".post")).to_have_count(10)
    await expect(page.locator(".column .state").last).to_contain_text("live")
    page.on("request", lambda request: asked.append(request.url) if "preview" in request.url else None)
    page.on("websocket", lambda socket: asked.append(socket.url))
    scroller = column.locator(".scroller")
    await scroller.evaluate("box => { box.scrollTop = 200; window.row = box.querySelector('.post'); }")
    await column.locator(".menu summary").click()
    await page.locator(".menu[open]").get_by_role("button", name="Edit filter").click()
    await page.get_by_role("textbox", name="Title").fill("Another")
    await page.get_by_role("button", name="Change the column").click()
    await expect(column.locator("h2")).to_have_text("Another")
    await expect(column.get_by_role("feed", name="Posts: Another")).to_have_count(1)
    assert await page.evaluate("window.row.isConnected")
    assert await scroller.evaluate("box => box.scrollTop") == 200
    await site_api.post(user["id"], "retitled again")
    await expect(column.locator(".newer")).to_contain_text("1 new")
    assert asked == []
    await page.reload()
    await expect(page.locator(".column h2")).to_have_text(["Another", "other"])


async def test_the_builder_keeps_a_draft_for_its_user(site_api: Api, windows: Windows) -> None:
    """After Escape, a reload and the end of the session it is there again; another user gets nothing of it."""
    kira, kyle = await named_user(site_api, "kira"), await named_user(site_api, "kyle")
    window = await windows.open(kira, columns("mine"))
    page = window.page
    words, chips = page.get_by_role("combobox", name="Words"), page.locator(".builder .chip-text")
    await expect(page.locator(".column .state")).to_contain_text("live")

    async def is_offered() -> None:
        await page.keyboard.press("c")
        await expect(chips).to_have_text(["draft"])
        await expect(page.get_by_label("Further conditions")).to_have_value("has:links")
        await expect(page.get_by_role("combobox", name="People")).to_have_value("nobod")

    await page.keyboard.press("c")
    await expect(page.get_by_text("what you had entered")).to_have_count(0)
    await page.keyboard.type("draft,")
    await page.get_by_label("Further conditions").fill("has:links")
    await page.get_by_role("combobox", name="People").fill("nobod")
    await page.evaluate(END_SESSION)
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await page.evaluate(ENTER, [session(kyle, SCOPES), columns("mine")])
    await expect(page.locator(".column .state")).to_contain_text("live")
    await page.keyboard.press("c")
    await expect(words).to_be_focused()
    await expect(chips).to_have_count(0)
    await page.keyboard.press("Escape")
    await page.evaluate(END_SESSION)
    await page.evaluate(ENTER, [session(kira, SCOPES), columns("mine")])
    await expect(page.locator(".column .state")).to_contain_text("live")
    await is_offered()
    window.expects_refusals = True  # of the unknown user, when the field loses the focus
    await page.keyboard.press("Escape")
    await page.reload()
    await expect(page.locator(".column .state")).to_contain_text("live")
    await is_offered()
    assert await window.faults() == []
    await page.get_by_role("button", name="Start anew").click()
    await expect(chips).to_have_count(0)
    await page.keyboard.type("done,")
    await page.keyboard.press("Enter")
    await shown(page, "mine", "done")
    await page.keyboard.press("c")
    await expect(words).to_be_focused()
    await expect(chips).to_have_count(0)
    await expect(page.get_by_text("what you had entered")).to_have_count(0)


async def test_keys_write_only_to_a_post_that_was_chosen_and_can_be_turned_off(site_api: Api, windows: Windows) -> None:
    """A like, a bookmark and a follow by key are undone by `z`. Without the keys all pages have their buttons."""
    kai, kit = await named_user(site_api, "kai"), await named_user(site_api, "kit")
    await site_api.post(kit["id"], "chosen")
    await site_api.follow(kai["id"], kit["id"])
    window = await windows.open(kai, columns("chosen"))
    page, written = window.page, []
    page.on("request", lambda each: written.append(each.url) if each.method in {"PUT", "DELETE"} else None)
    notes = page.locator(".notes")
    for path in (columns("chosen"), "/#/people"):
        await page.evaluate("hash => { location.hash = hash; }", path[1:])
        await expect(page.locator("main article", has_text="chosen")).to_have_count(1)
        for key in "lr":
            await page.keyboard.press(key)
            await expect(notes).to_have_text("Choose a post first, by j or k.")  # once
        await page.evaluate("document.querySelector('.notes').replaceChildren()")
        await page.keyboard.press("j")
        more = ("s", "You keep the post of @kit") if "people" in path else ("f", "You follow @kit")
        for key, text in (("l", "You like the post of @kit"), more):
            await page.keyboard.press(key)
            await expect(notes).to_contain_text(text)
            await page.keyboard.press("z")
            await expect(notes).to_be_empty()
            await expect(page.locator("main article [aria-pressed=true]")).to_have_count(0)
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert written == []
    await page.keyboard.press("l")
    await page.get_by_role("button", name="Dismiss").click()
    liked = f"/v1/users/{kai['id']}/likes"
    await eventually(lambda: len(written) == 1)
    await eventually(lambda: _has_statuses(site_api, liked, mint(kai["id"])))

    await page.keyboard.press("?")
    await page.get_by_label("Keys of a single letter").uncheck()
    assert await window.faults() == []
    await page.keyboard.press("Escape")
    await page.locator("article.status").focus()
    for key in "lszn?":
        await page.keyboard.press(key)
    await page.evaluate("location.hash = '#/streams'")
    await expect(page.locator(".column")).to_have_count(1)
    for key in "c/np":
        await page.keyboard.press(key)
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert len(written) == 1
    await window.open("/docs")
    await expect(page.locator(".docs-route").first).to_be_visible()
    await page.keyboard.press("/")
    await expect(page.locator("#docs-search")).not_to_be_focused()
    await page.evaluate("localStorage.removeItem('stream-server.keys')")
    await page.keyboard.press("/")
    await expect(page.locator("#docs-search")).to_be_focused()


async def _has_statuses(api: Api, path: str, token: str) -> bool:
    return bool((await api.done("GET", path, token=token))["statuses"])


PLACE = """() => {
  const article = document.activeElement.closest("article");
  const top = Math.round(article?.getBoundingClientRect().top);
  return [document.querySelectorAll("main article").length, article?.querySelector("p[dir=auto]").textContent, top];
}"""
"""How many posts are shown, and which one has the focus, and where on the page it stands."""


LEFT = "import('/console/dom.js').then(({ shelf }) => shelf.querySelectorAll('.page').length)"
"""How many pages are kept for Back."""


async def test_back_leads_to_the_post_where_one_was(site_api: Api, windows: Windows) -> None:
    """With its pages and the focus, in People and in Streams, back and forward; what came meanwhile waits above."""
    una, author = await named_user(site_api, "kuno"), await named_user(site_api, "klio")
    await site_api.follow(una["id"], author["id"])
    for number in range(32):
        await site_api.post(author["id"], f"placed {number}.")
    window = await windows.open(una, "/#/people")
    page, asked = window.page, []
    await window.button("Show more").click()
    await expect(page.locator("article.status")).to_have_count(32)
    link = window.post("placed 3.").locator(".post-time")
    await link.scroll_into_view_if_needed()
    await link.focus()
    before = await page.evaluate(PLACE)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Conversation")).to_be_focused()
    await page.get_by_role("link", name="Streams").first.click()
    await expect(page.locator(".column .state").first).to_contain_text("live")
    first = page.locator(".column").first
    new = await site_api.post(author["id"], "placed meanwhile")
    for number in range(9):
        await site_api.post(author["id"], f"more {number}.")
    await expect(first.locator(".post").first).to_contain_text("more 8.")
    await first.locator(".scroller").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    await first.locator(".post", has_text="placed meanwhile").get_by_role("link", name="klio").focus()
    stood = await page.evaluate(PLACE)
    assert await first.locator(".scroller").evaluate("box => box.scrollTop") > 60

    page.on("request", lambda request: asked.append(request.url) if "timelines" in request.url else None)
    for heading in ("Conversation", "Home"):
        await page.go_back()
        await expect(page.get_by_role("heading", name=heading)).to_be_visible()
    assert await page.evaluate(PLACE) == before
    await expect(page).to_have_title("Home · stream-server")
    await expect(window.button("10 new posts")).to_be_visible()
    await page.go_forward()
    await expect(page.get_by_role("heading", name="Conversation")).to_be_visible()
    await site_api.post(author["id"], "later still")
    await page.go_forward()
    await expect(first.locator(".newer")).to_contain_text("1 new")
    assert (await page.evaluate(PLACE))[1:] == stood[1:]
    assert asked == []

    await site_api.done("DELETE", f"/v1/statuses/{new['id']}", token=mint(author["id"]))
    for _ in range(2):
        await page.go_back()
    await expect(page.get_by_role("heading", name="Home")).to_be_visible()
    await window.button("10 new posts").click()
    await expect(window.post("later still")).to_have_count(1)
    await expect(window.post("placed meanwhile")).to_have_count(0)
    for number in range(8):
        await window.go(f"#/people/tag/none{number}", "No post has this tag.")
    assert await page.evaluate(LEFT) == 5


PASTE = """(field, text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text);
  if (field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true })))
    document.execCommand("insertText", false, text);
}"""
"""Pastes a text as the browser does: the field gets it unless the page takes it."""

PASTED = {
    "good morning": ["good morning"],
    "tea, green tea,": ["tea", "green tea"],
    "one\ntwo words\r\n\nthree\n": ["one", "two words", "three"],
    "茶、緑茶\uff0ctea": ["茶", "緑茶", "tea"],
    "a cell\tanother; still": ["a cell", "another; still"],
}


async def compose(keyboard: CDPSession, text: str, keys: dict[str, int]) -> None:
    """Write a text as an input method does before it is chosen, and press keys meanwhile."""
    place = {"selectionStart": len(text), "selectionEnd": len(text)}
    await keyboard.send("Input.imeSetComposition", {"text": text, **place})
    for key, code in keys.items():
        event = {"type": "rawKeyDown", "key": key, "windowsVirtualKeyCode": code}
        await keyboard.send("Input.dispatchKeyEvent", event)


TOO_MANY = "There can be 50 at most. The others wait in the field."


async def test_words_come_from_input_methods_and_from_the_clipboard(windows: Windows, site_api: Api) -> None:
    """What is composed is not taken before its end, and its keys are not for the page. A list becomes several words."""
    window = await windows.open(await named_user(site_api, "kaoru"), columns("old"))
    window.expects_refusals = True  # of a rule that is half written, if it is checked just then
    page = window.page
    await expect(page.locator(".column .state")).to_contain_text("live")
    keyboard = await page.context.new_cdp_session(page)
    await page.keyboard.press("c")
    words, chips = page.get_by_role("combobox", name="Words"), page.locator(".builder .chip-text")
    for text in ("ねこ", "ねこ,", "猫、"):
        await compose(keyboard, text, {"Process": 229, "Enter": 13})
        await expect(words).to_have_value(text)
        await expect(chips).to_have_count(0)
    await keyboard.send("Input.insertText", {"text": "猫"})
    await expect(words).to_have_value("猫")
    await expect(chips).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(chips).to_have_text(["猫"])
    for separator in ",、\uff0c":
        await page.keyboard.insert_text(f"typed{ord(separator)}{separator}")
    await expect(chips).to_have_count(4)
    for _ in range(4):
        await words.press("Backspace")
    for text, taken in PASTED.items():
        await words.evaluate(PASTE, text)
        if len(taken) == 1:  # which is text until it is taken
            await expect(words).to_have_value(text)
            await words.press("Enter")
        await expect(chips).to_have_text(taken)
        for _ in taken:
            await words.press("Backspace")
    await words.evaluate(PASTE, ",".join(map(str, range(2000))))
    await expect(page.get_by_role("alert").filter(has_text=TOO_MANY)).to_be_visible()
    await expect(chips).to_have_count(50)

    await window.open("/docs")
    await page.locator("#docs-search").fill("talks ")
    await page.locator("#docs-search").focus()
    await compose(keyboard, "りーど", {"Process": 229, "Enter": 13, "Escape": 27})
    await expect(page.locator("#docs-search")).to_have_value("talks りーど")


SPY = """() => {
  window.kept = 0;
  const set = Storage.prototype.setItem;
  Storage.prototype.setItem = function (key, text) { window.kept += text.length; set.call(this, key, text); };
}"""
"""Counts the characters that the page stores."""


async def test_a_megabyte_in_the_composer_is_cut(windows: Windows, site_api: Api) -> None:
    """The page and the browser work on ten times the limit at most, and it says so; a long text can be shortened."""
    window = await windows.open(await named_user(site_api, "knut"), "/#/people")
    page, text = window.page, window.page.locator(".page .composer textarea")
    count = page.locator(".page .composer-count")
    await expect(count).to_have_text("280")
    await page.evaluate(SPY)
    await text.focus()
    await page.keyboard.insert_text("word " * 200_000)
    await expect(count).to_have_text("-2,520. No more than 2,800 fit in here: the rest was cut off.")
    assert await text.evaluate("field => field.value.length") == 2800
    assert await page.evaluate("window.kept") < 4000
    await expect(page.locator(".page .composer button.primary")).to_be_disabled()
    await text.fill("short again")
    await expect(count).to_have_text("269")


@pytest.mark.parametrize("ends", [" ", ","])
async def test_a_megabyte_in_the_builder_is_cut(windows: Windows, site_api: Api, ends: str) -> None:
    """Each field takes what a rule may have, and says so. Of a list, as many words are taken as there may be."""
    window = await windows.open(await named_user(site_api, f"kira{ord(ends)}"), columns("old"))
    window.expects_refusals = True  # what fills the field may be no rule
    page = window.page
    await expect(page.locator(".column .state")).to_contain_text("live")
    await page.evaluate(SPY)
    await page.keyboard.press("c")
    words, rule = page.get_by_role("combobox", name="Words"), page.get_by_label("Further conditions")
    text = "".join(f"word{number}{ends}" for number in range(100_000))
    await words.evaluate(PASTE, text)
    problem = TOO_MANY if ends == "," else "No more than 1,024 fit in here: the rest was cut off."
    await expect(page.locator(".field", has=words).get_by_role("alert")).to_have_text(problem)
    assert len(await words.input_value()) <= 1024
    await expect(page.locator(".builder .chip-text")).to_have_count(50 if ends == "," else 0)
    await words.fill("")
    await rule.focus()
    async with page.expect_response("**/v1/rules"):
        await page.keyboard.insert_text(text)
    await expect(page.locator(".field", has=rule).get_by_role("alert")).to_contain_text("No more than 1,024 fit in")
    assert len(await rule.input_value()) == 1024
    assert await page.evaluate("window.kept") < 40_000
    await expect(page.get_by_text("A comma or Enter ends a chip.")).to_be_visible()


LOST = {
    "/#/nonsense": ("view nonsense", "#/people"),
    "/#/toString/%": ("view toString", "#/streams"),
    "/#/operations/nonsense": ("view operations/nonsense", "#/people"),
    "/#/people/nonsense": ("page nonsense", "#/people/@nonsense"),
    "/#/people/tag": ("page tag", "#/people"),
    "/#/people/status/": ("page status", "#/people"),
}


async def test_an_address_that_names_nothing_says_so(windows: Windows, site_api: Api) -> None:
    """With links to what there is. A part that a page has not is told, too."""
    user = await named_user(site_api, "karl")
    window = await windows.open(user, "/#/people")
    page = window.page
    for address, (name, link) in LOST.items():
        await window.go(address[1:], f"There is no {name}")
        await expect(page.locator("main").locator(f"a[href='{link}']").first).to_be_visible()
        assert await window.faults() == []
    for part in ("notjson", "%"):
        await page.evaluate("part => { location.hash = `#/streams/${part}`; }", part)
        await expect(page.locator(".notes").get_by_text("cannot be read")).to_have_count(1)
        await expect(page.locator(".column").first).to_be_visible()
        await page.locator(".notes").evaluate("notes => notes.replaceChildren()")
    for part in ("@karl/nonsense", "requests/nonsense", "privacy/nonsense"):
        await window.go(f"#/people/{part}", "There is no part nonsense.")
    await page.locator("main").get_by_role("link", name="Muted", exact=True).click()
    await expect(page.locator("main")).not_to_contain_text("There is no part")


WRITTEN = """async () => {
  const { number } = await import("/console/dom.js");
  const { bytes, plain } = await import("/console/operations/tables.js");
  const { showAge, showRate } = await import("/console/plot.js");
  const { counted } = await import("/console/people/text.js");
  return [...[1234567, 0, 9.96, 12.4].map(n => number(n)), ...[1234.5, 0.0123].map(plain), ...[1536, 7].map(bytes),
          showAge(0.2), showAge(1234), ...[1234, 1.25].map(showRate), counted(1234, "post")];
}"""
WANTED = [
    "1,234,567", "0", "10", "12", "1,235", "0.012", "1.5 KiB", "7 B", "1 ms", "1.2 s", "1,234/s", "1.3/s",
    "1,234 posts",
]  # fmt: skip


async def test_numbers_and_names_are_written_in_one_way(windows: Windows, site_api: Api) -> None:
    """In English as the page is, whatever the browser's language; and what the wire calls a login is a username."""
    window = await windows.open(None, "/#/people")
    page = window.page
    assert await page.evaluate(WRITTEN) == WANTED
    window.expects_refusals = True
    await page.get_by_label("Username or email").fill("nobody")
    await page.get_by_label("Password").fill("wrong password")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_have_text("Wrong username or password.")
    await page.get_by_role("button", name="Create an account").click()
    for label, value in (("Username", "a b"), ("Email", "a@example.org"), ("Password", "long enough")):
        await page.get_by_label(label).fill(value)
    await page.get_by_role("button", name="Create an account").click()
    await expect(page.get_by_role("alert")).to_contain_text("Username must be 1 to 20 letters")
    assert "login" not in (await page.locator("main").inner_text()).lower()
    said = await page.evaluate("""async () => {
      const { forPeople } = await import("/console/forms.js");
      return ["'login' is no operator", "a user id or login; expected a login without @ (login)"].map(forPeople);
    }""")
    assert said == ["'login' is no operator", "a user id or username; expected a username without @ (username)"]
