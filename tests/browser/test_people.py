"""The view People in the windows of two users: what one does, the other sees, and nothing is lost or misread."""

import json
import re
from urllib.parse import quote

import pytest
from playwright.async_api import Route, expect

from tests.browser.windows import DESKTOP, PHONE, Window, Windows, named_user
from tests.challenge_endpoint import challenge_endpoint
from tests.end_to_end.api import Api, mint
from tests.waiting import eventually

pytestmark = pytest.mark.extended

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"
RTL = "\u202eesrever\u202c \u2067\u05e9\u05dc\u05d5\u05dd\u2069"
COMBINING = "z" + "\u0301" * 270

FLOOD = """async () => {
  const { Feed } = await import("/console/people/feed.js");
  const render = () => document.createElement("p");
  const feed = new Feed({ load: async () => ({ items: [], next: null }), render, empty: "", label: "" });
  document.body.append(feed.root);
  for (let n = 0; n < 5000; n++) feed.announce({ id: `${n}` });
  for (let n = 4500; n < 5000; n++) feed.announce({ id: `${n}` });
  feed.root.remove();
  return [feed.list.childElementCount, feed.known.size];
}"""


async def live(window: Window) -> None:
    """Wait until the window's own stream is open."""
    await expect(window.page.locator(".connection")).to_have_text("live")


async def badge(window: Window, page: str, count: int) -> None:
    link = window.page.locator(".people-nav a", has_text=page)
    await expect(link.locator(".badge")).to_have_text(f"{count} unread" if count else "")


async def test_what_one_does_the_other_sees_live(site_api: Api, windows: Windows) -> None:
    """Follow, post, like, comment, reply, quote and repost reach the other window; a block hides everything."""
    ann, ben = await named_user(site_api, "ann", "Ann"), await named_user(site_api, "ben", "Ben")
    hers, his = await windows.open(ann, "/#/people"), await windows.open(ben, "/#/people/@ann")
    await live(hers)
    await live(his)
    await his.button("Follow").click()
    await expect(his.button("Unfollow")).to_be_visible()
    await badge(hers, "Notifications", 1)

    await his.page.get_by_role("link", name="Home").click()
    await expect(his.page.get_by_role("heading", name="Home")).to_be_focused()
    await hers.write("good morning from Ann #first")
    for window in (hers, his):
        await expect(window.post("good morning from Ann")).to_have_count(1)
    card = his.post("good morning from Ann")
    await card.get_by_role("button", name="Like").click()
    await expect(hers.post("good morning").get_by_role("button", name="Like, 1 like")).to_be_visible()
    await badge(hers, "Notifications", 2)

    await card.get_by_role("button", name="Comment").click()
    await card.get_by_label("Your comment").fill("nice")
    await card.get_by_label("Your comment").press("Enter")
    await expect(hers.post("good morning").get_by_role("button", name="Comment, 1 comment")).to_be_visible()
    await card.get_by_role("button", name="Reply").click()
    await card.locator("textarea").fill("and to you")
    await card.locator("textarea").press("Control+Enter")
    await expect(his.post("and to you")).to_have_count(1)
    await card.get_by_role("button", name="Quote").click()
    await card.locator("textarea").fill("she is up")
    await card.locator("form button.primary").click()
    await expect(his.post("she is up").locator(".post-quote")).to_contain_text("good morning from Ann")
    await badge(hers, "Notifications", 5)
    await card.last.get_by_role("button", name="Repost").evaluate("button => { button.click(); button.click(); }")
    await badge(hers, "Notifications", 6)

    await hers.page.get_by_role("link", name="Notifications").click()
    await expect(hers.page.locator(".notice-unread")).to_have_count(6)
    await expect(hers.page.locator(".notice").first).to_contain_text("reposted your post")
    await hers.button("Mark all as read").click()
    await expect(hers.page.locator(".notice-unread")).to_have_count(0)
    await expect(hers.page.locator(".people-nav .badge")).to_have_count(0)

    await hers.go("#/people/@ben", "@ben")
    await hers.page.locator(".profile .menu summary").click()
    await hers.button("Block").click()
    await expect(hers.button("Unblock")).to_be_visible()
    await hers.button("Dismiss").click()
    await expect(hers.page.locator(".notes")).to_be_empty()
    his.expects_refusals = True
    await his.go("#/people/@ann", "Unknown user")
    await expect(his.page.get_by_role("alert").first).to_contain_text("Unknown user")
    await his.page.get_by_role("link", name="Home").click()
    await expect(his.post("she is up")).to_have_count(1)
    await expect(his.post("good morning from Ann")).to_have_count(0)


async def test_a_talk_goes_both_ways(site_api: Api, windows: Windows) -> None:
    """A stranger's talk is a request; after the answer, both see each message at once, and reading marks it."""
    cid, dot = await named_user(site_api, "cid", "Cid"), await named_user(site_api, "dot", "Dot")
    his, hers = await windows.open(cid, "/#/people/talks"), await windows.open(dot, "/#/people")
    await live(his)
    await live(hers)
    await his.page.get_by_label("Usernames, separated by spaces").fill("@dot")
    await his.button("Open").click()
    await his.page.get_by_role("textbox", name="Message").fill("are you there?")
    await his.page.get_by_role("textbox", name="Message").press("Enter")
    await expect(his.page.locator(".message")).to_have_count(1)
    await hers.go("#/people/talks/requests", "are you there?")
    await expect(hers.page.locator(".entry")).to_contain_text("are you there?")
    await hers.button("Accept").click()
    await hers.page.get_by_role("textbox", name="Message").fill("yes")
    await hers.page.get_by_role("textbox", name="Message").press("Enter")
    await expect(his.page.locator(".message").last).to_contain_text("yes")
    await hers.page.get_by_role("link", name="Home").click()
    await his.page.get_by_role("textbox", name="Message").fill("coffee?")
    await his.page.get_by_role("textbox", name="Message").press("Enter")
    await badge(hers, "Messages", 1)
    await hers.page.get_by_role("link", name="Messages").click()
    await hers.page.locator(".talk-entry").click()
    await expect(hers.page.locator(".message").last).to_contain_text("coffee?")
    await expect(hers.page.locator(".people-nav .badge")).to_have_count(0)
    talks = await site_api.done("GET", "/v1/talks", token=mint(dot["id"]))
    assert [talk["unread"] for talk in talks["talks"]] == [0]

    await hers.go("#/people/talks", "coffee?")
    asked, may_answer = await hers.hold("**/v1/talks")
    for text in ("a cup", "another cup"):  # it comes while the list is loaded for the first one
        await his.page.get_by_role("textbox", name="Message").fill(text)
        await his.page.get_by_role("textbox", name="Message").press("Enter")
        await expect(his.page.locator(".message").last).to_contain_text(text)
        await asked.wait()
    await badge(hers, "Messages", 2)
    may_answer.set()
    await expect(hers.page.locator(".talk-entry")).to_contain_text("another cup")


async def test_hostile_texts_stay_texts(site_api: Api, windows: Windows) -> None:
    """Markup is shown as it was written, marks of direction stay in their place, and 280 marks do not grow the page."""
    eve, fay = await named_user(site_api, "eve", MARKUP[:50]), await named_user(site_api, "fay")
    await site_api.follow(fay["id"], eve["id"])
    texts = [MARKUP, RTL, COMBINING, 'javascript:alert(3) http://x.example/"><b>x</b>']
    for text in texts:
        await site_api.post(eve["id"], text + " @fay #x")
    window = await windows.open(fay, "/#/people")
    for text in texts:
        await expect(window.post(text).locator(".post-text")).to_have_text(text + " @fay #x")
    for path in ("#/people/@eve", "#/people/notifications"):
        await window.go(path, MARKUP[:50])
        await expect(window.page.locator("strong", has_text=MARKUP[:50]).first).to_be_visible()
        assert await window.page.locator("main img, main script, main b[onclick]").count() == 0
    links = await window.page.locator("main a").evaluate_all("links => links.map(link => link.protocol)")
    assert set(links) <= {"http:", "https:"}
    heights = await window.page.locator(".post-text").evaluate_all("all => all.map(each => each.clientHeight)")
    assert all(height < 500 for height in heights)


async def test_a_failed_post_keeps_its_text_and_is_posted_once(site_api: Api, windows: Windows) -> None:
    """The answer to a post is lost. The text stays, and the retry has the same key, so that one status exists."""
    gus = await named_user(site_api, "gus")
    window = await windows.open(gus, "/#/people")
    window.expects_refusals = True
    keys: list[str] = []

    async def lose_the_first_answer(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        answer = await route.fetch()
        await (route.abort() if len(keys) == 1 else route.fulfill(response=answer))

    await window.page.route("**/v1/statuses", lose_the_first_answer)
    await window.write("do not lose me")
    await expect(window.page.locator(".composer .problem")).to_contain_text("Your text is kept.")
    await expect(window.page.locator(".composer textarea")).to_have_value("do not lose me")
    await window.button("Post").last.click()
    await expect(window.page.locator(".composer textarea")).to_have_value("")
    assert len(keys) == 2
    assert keys[0] == keys[1]
    mine = await site_api.done("GET", f"/v1/users/{gus['id']}/statuses", token=mint(gus["id"]))
    assert [status["message"] for status in mine["statuses"]] == ["do not lose me"]

    await window.page.locator(".composer textarea").fill("a draft")
    await window.page.reload()
    await expect(window.page.locator(".composer textarea")).to_have_value("a draft")
    await window.page.get_by_text("Place, language, group").click()
    await window.page.get_by_label("Latitude").fill("91")
    await window.page.get_by_label("Longitude").fill("0")
    await window.button("Post").last.click()
    await expect(window.page.locator(".composer .problem")).to_contain_text("90")
    await expect(window.page.get_by_label("Latitude")).to_be_focused()
    await window.page.locator(".composer textarea").fill("x" * 281)
    await expect(window.page.locator(".composer-count")).to_have_text("-1")
    await expect(window.button("Post").last).to_be_disabled()


async def test_a_draft_for_a_group_is_never_posted_to_everybody(site_api: Api, windows: Windows) -> None:
    """After a reload the form still names the group, also before it has the names of one's groups."""
    ron = await named_user(site_api, "ron")
    token = mint(ron["id"])
    group = await site_api.done("POST", "/v1/groups", token=token, json={"name": "Few", "kind": "private"})
    window = await windows.open(ron, "/#/people")
    window.expects_refusals = True
    await window.page.get_by_text("Place, language, group").click()
    await window.page.locator(".composer select").select_option(label="group: Few")
    await window.page.locator(".composer textarea").fill("for few")
    await window.page.route("**/v1/users/me/groups*", lambda route: route.abort())
    await window.page.reload()
    await expect(window.page.locator(".composer .problem")).to_contain_text("cannot be reached")
    await window.button("Post").last.click()
    await expect(window.page.locator(".composer textarea")).to_have_value("")
    await expect(window.page.locator(".composer select")).to_have_value("")
    found = await site_api.done("GET", f"/v1/groups/{group['id']}/statuses", token=token)
    assert [status["message"] for status in found["statuses"]] == ["for few"]


async def test_a_late_answer_closes_no_other_form(site_api: Api, windows: Windows) -> None:
    """The stream shows a reply before its request is answered. A form that was opened meanwhile stays with its text."""
    lea = await named_user(site_api, "lea")
    await site_api.post(lea["id"], "hold the line")
    window = await windows.open(lea, "/#/people")
    await live(window)
    _, may_answer = await window.hold("**/v1/statuses")
    card = window.post("hold the line")
    await card.get_by_role("button", name="Reply").click()
    await card.locator("textarea").fill("on my way")
    await card.locator("textarea").press("Control+Enter")
    await expect(window.post("on my way").last).to_be_visible()
    await card.get_by_role("button", name="Quote").click()
    await card.locator("textarea").fill("not yet sent")
    may_answer.set()
    await expect(window.page.get_by_text("Replied")).to_be_visible()
    await expect(card.locator("textarea")).to_have_value("not yet sent")


async def test_new_posts_are_announced_while_one_reads_below(site_api: Api, windows: Windows) -> None:
    """Posts that come while the page is scrolled wait behind a button; older ones come by the page."""
    hal, ida = await named_user(site_api, "hal"), await named_user(site_api, "ida")
    await site_api.follow(hal["id"], ida["id"])
    for number in range(35):
        await site_api.post(ida["id"], f"old {number}.")
    window = await windows.open(hal, "/#/people")
    await live(window)
    await expect(window.page.locator("article.status")).to_have_count(30)
    await window.page.locator("main").evaluate("main => main.scrollTo(0, 2000)")
    for number in range(3):
        await site_api.post(ida["id"], f"new {number}.")
    await expect(window.button("3 new posts")).to_be_visible()
    await expect(window.post("new 2.")).to_have_count(0)
    await window.page.keyboard.press(".")
    await expect(window.page.locator("article.status").first).to_contain_text("new 2.")
    await window.button("Show more").click()
    await expect(window.page.locator("article.status")).to_have_count(38)
    await window.page.keyboard.press("j")
    await window.page.keyboard.press("l")
    await expect(window.page.locator("article.status [aria-pressed=true]")).to_have_count(1)
    assert await window.page.evaluate(FLOOD) == [300, 2000], "a page that is open for days stays small"


async def test_profile_lists_groups_and_requests(site_api: Api, windows: Windows) -> None:
    """One user edits the profile, makes a list and a group; a protected user answers a request."""
    joy, kim = await named_user(site_api, "joy"), await named_user(site_api, "kim")
    hers, his = await windows.open(joy, "/#/people/@joy"), await windows.open(kim, "/#/people/@kim")
    await his.button("Edit profile").click()
    await his.page.get_by_label("About you").fill("I read")
    await his.page.get_by_label("Protected").check()
    await his.button("Save").click()
    await expect(his.page.locator(".profile-bio")).to_have_text("I read")
    await hers.page.get_by_label("Find a user").fill("kim")
    await hers.page.get_by_label("Find a user").press("Enter")
    await hers.button("Ask to follow").click()
    await expect(hers.button("Cancel request")).to_be_visible()
    await his.page.get_by_role("link", name="Follow requests").click()
    await his.button("Approve").click()
    await expect(his.page.get_by_text("Nobody waits")).to_be_visible()
    await hers.page.get_by_role("link", name="Lists").first.click()
    await hers.button("New list").click()
    await hers.page.get_by_label("Name").fill("Readers")
    await hers.button("Create").click()
    await hers.page.get_by_role("link", name="Readers").click()
    await hers.page.get_by_role("link", name="Members").click()
    await hers.page.get_by_label("Username").fill("kim")
    await hers.button("Add").click()
    await expect(hers.page.locator(".user-row")).to_contain_text("@kim")
    await hers.page.get_by_role("link", name="Groups").click()
    await hers.button("New group").click()
    await hers.page.get_by_label("Name").fill("Early risers")
    await hers.button("Create").click()
    await hers.write("who is up?")
    await expect(hers.post("who is up?")).to_have_count(1)
    group = hers.page.url.rpartition("/")[2]
    await his.go(f"#/people/groups/{group}", "Early risers")
    await his.button("Join").click()
    await his.write("me")
    await expect(hers.post("me").filter(has_text="@kim")).to_have_count(1)
    await his.post("me").filter(has_text="@kim").locator(".menu summary").click()
    await his.button("Delete").click()
    await his.button("Dismiss").click()
    for window in (hers, his):
        await expect(window.page.locator("article.status")).to_have_count(1)
    for name in ("Reply", "Quote"):
        await his.page.get_by_role("button", name=name).first.click()
        await his.page.locator("article.status textarea").fill(f"a {name} in here")
        await his.page.locator("article.status textarea").press("Control+Enter")
        await expect(hers.post(f"a {name} in here")).to_have_count(1)
    await his.page.locator("article.status").last.get_by_role("button", name="Repost").click()
    await expect(hers.page.get_by_text("@kim reposted")).to_be_visible()


async def test_an_account_is_deleted_by_its_username_and_password(site_api: Api, windows: Windows) -> None:
    """Without either, it stays. Afterwards the page is at the door, and others do not see the user."""
    password = "a good password"
    sign_up = {"login": "rex", "name": "Rex", "email": "rex@example.org", "password": password}
    rex = await site_api.done("POST", "/v1/users", json=sign_up)
    window = await windows.open(rex, "/#/people/@rex")
    window.expects_refusals = True
    await window.page.locator(".profile .menu summary").click()
    await window.button("Delete account …").click()
    form = window.page.get_by_role("form", name="Delete account")
    assert await window.faults() == []
    await form.get_by_label("Your username").fill("rax")
    await form.get_by_label("Your password").fill("a wrong password")
    await form.get_by_role("button", name="Delete account").click()
    assert await form.locator("input:invalid").count() == 1
    await form.get_by_label("Your username").fill("rex")
    await form.get_by_role("button", name="Delete account").click()
    await expect(form.get_by_role("alert")).to_contain_text("password")
    assert (await site_api.done("GET", "/v1/users/me", token=mint(rex["id"])))["login"] == "rex"
    await form.get_by_label("Your password").fill(password)
    await form.get_by_role("button", name="Delete account").click()
    await expect(window.page.locator(".sign-in")).to_be_visible()
    await expect(window.page.locator(".notes")).to_contain_text("Your account is deleted.")
    await expect(window.page.locator("main")).not_to_contain_text("go on where you were")
    assert (await site_api.call("GET", "/v1/users/by-login/rex", token=mint(rex["id"]))).status == 401


async def test_no_page_has_a_fault_of_accessibility(site_api: Api, windows: Windows) -> None:
    """axe-core looks at each page, with its forms open, dark and on a phone. The report of a post arrives, too."""
    leo, moe = await named_user(site_api, "leo", "Leo"), await named_user(site_api, "moe", "Moe")
    status = await site_api.post(leo["id"], "buy this @moe #x https://example.com", place={"name": "Bonn"})
    await site_api.post(moe["id"], "no", origin=status["id"])
    token = mint(moe["id"])
    lists = await site_api.done("POST", "/v1/lists", token=token, json={"name": "Sellers"})
    talk = await site_api.done("POST", "/v1/talks", token=token, json={"people": [leo["id"]]})
    await site_api.done("POST", f"/v1/talks/{talk['id']}/messages", token=token, json={"message": "stop"})
    body = {"parameters": {"track": "buy, sell"}, "since": "-1h", "parts": 4}
    await site_api.done("PUT", "/v1/subscriptions/crawler", token=token, json=body)
    window = await windows.open(moe, "/#/people")
    await window.page.set_viewport_size(PHONE)
    await window.page.emulate_media(color_scheme="dark")
    await expect(window.post("no")).to_have_count(1)
    found = {"home": await window.faults()}
    pages = {
        "notifications": "mentioned you", f"talks/{talk['id']}": "stop", "talks": "stop", "@leo": "buy this",
        f"lists/{lists['id']}": "Sellers", "privacy": "blocked nobody", "subscriptions": "4 parts: nobody reads 4",
    }  # fmt: skip
    for page, text in pages.items():
        await window.go(f"#/people/{page}", text)
        found[page] = await window.faults()
    await window.go(f"#/people/status/{status['id']}", "buy this")
    await window.post("buy this").first.locator(".menu summary").click()
    found["menu"] = await window.faults()
    await window.button("Report …").click()
    await window.page.get_by_label("Note").fill("an advertisement")
    found["report"] = await window.faults()
    await window.button("Send report").click()
    await expect(window.page.get_by_text("Thank you.")).to_be_visible()
    await window.page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [fault.partition(":")[0] for fault in await window.faults()] == ["button-name"], "a fault is found"
    await window.page.set_viewport_size(DESKTOP)
    await window.page.emulate_media(color_scheme=None)
    assert {page: faults for page, faults in found.items() if faults} == {}
    reports = (await site_api.done("GET", "/v1/admin/reports", token=mint(site_api.admin, "admin")))["reports"]
    assert [one["note"] for one in reports if one["status"] == status["id"]] == ["an advertisement"]


async def test_the_subscriptions_show_where_they_are_sent_and_the_last_requests(
    site_api: Api, windows: Windows
) -> None:
    nia = await named_user(site_api, "nia", "Nia")
    body = {"parameters": {"follow": nia["id"]}, "deliver": {"url": challenge_endpoint()}}
    await site_api.done("PUT", "/v1/subscriptions/sent", token=mint(nia["id"]), json=body)
    await site_api.post(nia["id"], "to an endpoint")

    async def is_sent() -> bool:
        found = await site_api.done("GET", "/v1/subscriptions/sent", token=mint(nia["id"]))
        return bool(found["deliver"]["outcomes"])

    await eventually(is_sent)
    window = await windows.open(nia, "/#/people")
    await window.go("#/people/subscriptions", "sent to")
    await expect(window.page.locator("main")).to_contain_text("active")
    kept = await window.page.locator("main").get_by_text("the log keeps the next one for about").all_inner_texts()
    assert all(re.search(r"about \d{1,2} (s|min|h|days)$", text) for text in kept), kept
    await window.page.locator("summary", has_text="The last requests: 200").click()
    await expect(window.page.locator("main")).to_contain_text("200, 1 event")
    assert await window.faults() == []


async def test_an_edited_post_changes_where_it_is_shown_and_leaves_columns_it_no_longer_fits(
    site_api: Api, windows: Windows
) -> None:
    """One's own post is edited in its card; the window of another and its columns follow without a reload."""
    eva, fay = await named_user(site_api, "eva", "Eva"), await named_user(site_api, "fay", "Fay")
    columns = f"/#/streams/{quote(json.dumps([{'words': ['zebrafinch']}, {'words': ['parakeet']}]))}"
    hers, his = await windows.open(eva, "/#/people"), await windows.open(fay, columns)
    await live(hers)
    shown = his.page.locator(".column")
    for at in range(2):
        await expect(shown.nth(at).locator(".state")).to_contain_text("live")
    await hers.write("a zebrafinch")
    await expect(shown.nth(0).locator(".post .text")).to_have_text(["a zebrafinch"])
    card = hers.post("a zebrafinch")
    await card.locator(".menu summary").click()
    await card.get_by_role("button", name="Edit").click()
    await expect(card.get_by_label("The new text")).to_be_focused()
    assert await hers.faults() == []
    await card.get_by_label("The new text").fill("a #parakeet")
    await card.get_by_role("button", name="Save").click()
    await expect(hers.post("a #parakeet")).to_contain_text("edited")
    await expect(hers.post("a zebrafinch")).to_have_count(0)
    await expect(shown.nth(0).locator(".post")).to_have_count(0)
    await expect(shown.nth(1).locator(".post .text")).to_have_text(["a #parakeet"])
    await expect(shown.nth(1).locator(".post")).to_contain_text("edited")
