"""Rules in the console: the field that helps to write one, saved rules, and the columns of them."""

import json
import re
from urllib.parse import quote

from playwright.async_api import expect

from tests.browser.windows import DESKTOP, PHONE, Windows, named_user
from tests.end_to_end.api import Api, mint
from tests.waiting import eventually

LOOKS = """() => [".rule-marks", ".rule-box textarea"].map(name => {
  const found = getComputedStyle(document.querySelector(`.builder ${name}`));
  return ["font", "letterSpacing", "padding", "borderWidth", "width", "whiteSpace"].map(one => found[one]);
})"""


def columns(*filters: dict[str, object]) -> str:
    return f"/#/streams/{quote(json.dumps(filters))}"


IS_ON_TOP = """note => {
  const { left, top, width, height } = note.getBoundingClientRect();
  return note.contains(document.elementFromPoint(left + width / 2, top + height / 2));
}"""


async def test_a_mistake_is_marked_in_the_field_where_it_is(site_api: Api, windows: Windows) -> None:
    """Also behind other parts of the filter. The mark lies under the word, and the message describes the field."""
    ria = await named_user(site_api, "ria", "Ria")
    window = await windows.open(ria, columns({"words": ["marmalade"]}))
    window.expects_refusals = True
    page = window.page
    await expect(page.locator(".column .state")).to_contain_text("live")
    await page.keyboard.press("c")
    field = page.get_by_label("Further conditions")
    await page.get_by_role("combobox", name="Words").fill("marmalade,")
    await field.fill("  toast form:ria OR tea")
    await expect(page.locator(".rule-marks .mistake")).to_have_text("form:ria")
    await expect(page.locator(".mistake")).to_have_count(1)
    await expect(field).to_have_attribute("aria-invalid", "true")
    assert await window.faults() == []
    looks = await page.evaluate(LOOKS)
    assert looks[0] == looks[1], "the two texts lie upon each other"
    described = (await field.get_attribute("aria-describedby") or "").split()
    await expect(page.locator(f"[id='{described[0]}']")).to_contain_text(
        "Unknown operator `form:`; did you mean `from:`?"
    )
    await field.fill("toast")
    await expect(page.locator(".mistake")).to_have_count(0)
    await expect(field).not_to_have_attribute("aria-invalid", "true")
    await field.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_no_parenthesis_of_the_console_is_named(site_api: Api, windows: Windows) -> None:
    """It adds one around conditions with OR. The place of one that the user wrote is that in the field."""
    window = await windows.open(await named_user(site_api, "rhea"), columns({"words": ["marmalade"]}))
    window.expects_refusals = True
    await window.page.keyboard.press("c")
    builder = window.page.get_by_role("dialog")
    await builder.get_by_role("combobox", name="Words").fill("marmalade,")
    field, told = builder.get_by_label("Further conditions"), builder.get_by_role("alert").filter(has_text="closed")
    await field.fill("(toast OR tea")
    await expect(told).to_have_text("The ( is not closed; expected a closing parenthesis.")
    await field.fill("toast (tea")
    await expect(told).to_have_text("The ( of column 7 is not closed; expected a closing parenthesis.")
    await field.fill("")


async def test_operators_are_completed_and_near_misses_shown(site_api: Api, windows: Windows) -> None:
    """By keys alone. Escape closes the list before the window. A value is completed where the operator lists them."""
    ron = await named_user(site_api, "ron", "Ron")
    for text in ("marmalade toast", "marmalade alone", "nothing of both"):
        await site_api.post(ron["id"], text)
    window = await windows.open(ron, columns({"words": ["marmalade"]}))
    window.expects_refusals = True  # of a condition that is half written, if it is checked just then
    page = window.page
    await expect(page.locator(".column .state")).to_contain_text("live")
    await page.keyboard.press("c")
    await page.get_by_role("combobox", name="Words").fill("marmal")
    await expect(page.locator(".rule-line .rule")).to_have_text("marmal")  # a word that has not ended counts
    await page.get_by_role("combobox", name="Words").fill("marmalade,")
    await expect(page.locator(".rule-line .rule")).to_have_text("marmalade")
    await expect(page.locator(".map .land").nth(1)).to_have_attribute("d", re.compile("^M.*z$"))
    field = page.get_by_label("Further conditions")
    options = page.get_by_role("listbox", name="Operators").get_by_role("option")
    await field.press_sequentially("-fr")
    await expect(options).to_have_count(1)
    await expect(page.get_by_text("1 operator: Enter takes")).to_be_attached()
    await expect(options).to_contain_text("from:")
    await field.press("Escape")
    await expect(options).to_have_count(0)
    await expect(field).to_be_visible()
    await field.press("Control+Space")
    await expect(options).to_have_count(1)
    assert await window.faults() == []
    await field.press("Enter")
    await expect(field).to_have_value("-from:")
    await field.fill("")
    await field.press_sequentially("is:rep")
    await expect(options).to_have_count(2)
    await field.press("ArrowUp")
    await field.press("Tab")
    await expect(field).to_have_value("is:repost")
    await field.fill("")
    await field.press_sequentially("is:rep")
    await expect(options).to_have_count(2)
    await field.press("Tab")
    await expect(field).to_have_value("is:reply")
    await field.fill("-sam")  # which may not have a minus
    await expect(options).to_have_count(0)
    await field.fill("toast")
    await page.get_by_role("button", name="Try the past hour").click()
    trial = page.locator(".trial")
    await expect(trial).to_contain_text("1 post in the past hour")
    await trial.get_by_text("1 near miss").click()
    await expect(trial.locator(".near")).to_contain_text("misses toast")
    await expect(trial.locator(".near .text")).to_have_text("marmalade alone")
    await field.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_all_operators_are_in_a_list_that_scrolls(site_api: Api, windows: Windows) -> None:
    """By Ctrl and the space bar. The arrow keys bring the last one into sight."""
    user = await named_user(site_api, "roald")
    page = (await windows.open(user, "/#/people/rules")).page
    options = page.get_by_role("listbox", name="Operators").get_by_role("option")
    known = (await site_api.done("GET", "/v1/rules/operators", token=mint(user["id"])))["operators"]
    field = page.get_by_label("Rule", exact=True)
    await field.press("Control+Space")
    await expect(options).to_have_count(len({one["name"] for one in known if one["name"]}))
    await field.press("ArrowUp")
    await expect(options.last).to_be_in_viewport()
    await field.press("Escape")


async def test_all_operators_are_a_link_away(site_api: Api, windows: Windows) -> None:
    """In the guide, or where it is not installed, on the page of the API."""
    window = await windows.open(await named_user(site_api, "rupert"), "/#/people/rules")
    async with window.page.expect_popup() as opened:
        await window.page.get_by_role("link", name="All operators").click()
    other = await opened.value
    await expect(other.locator("#rules")).to_contain_text("retweets_of:")
    await expect(other.locator("#rules")).to_be_in_viewport()
    await other.close()


async def test_a_rule_is_saved_and_its_draft_outlives_a_reload(site_api: Api, windows: Windows) -> None:
    """A mistake is marked while one writes, and when one saves. How many of the limit are used stands above."""
    sol = await named_user(site_api, "sol", "Sol")
    window = await windows.open(sol, "/#/people")
    window.expects_refusals = True
    page = window.page
    await window.go("#/people/rules", "0 rules of 1,000")
    field = page.get_by_label("Rule", exact=True)
    await field.fill("quince (")
    await expect(page.locator(".rule-marks .mistake")).to_be_visible()
    await field.fill("quince  OR medlar")
    await page.get_by_label("Tag, which").fill("fruit")
    await page.reload()
    await expect(field).to_have_value("quince  OR medlar")
    await window.button("Save the rule").click()
    await expect(page.get_by_role("listitem").filter(has_text="quince OR medlar")).to_contain_text("fruit")
    await expect(page.locator("main")).to_contain_text("1 rule of 1,000")
    await expect(field).to_have_value("")
    await field.fill("medlar  OR quince OR")
    await window.button("Save the rule").click()
    await expect(page.locator(".rule-marks .mistake")).to_be_visible()
    await expect(field).to_be_focused()
    await field.fill("medlar")
    await window.button("Save the rule").click()
    await expect(page.locator("main")).to_contain_text("2 rules of 1,000")
    told = page.get_by_role("form", name="Save a rule").get_by_role("alert")
    for rule, tag, said in (("medlar ", "", "also without a tag"), ("quince OR medlar", "fruit", "with the tag fruit")):
        await field.fill(rule)
        await page.get_by_label("Tag, which").fill(tag)
        await window.button("Save the rule").click()
        await expect(told.filter(has_text="You")).to_have_text(f"You have saved this rule already, {said}.")
    await field.fill("medlar OR")
    await expect(told.first).to_have_text("The rule ends here; expected an operator, such as a word.")
    found = (await site_api.done("GET", "/v1/rules", token=mint(sol["id"])))["rules"]
    assert [(one["rule"], one["tag"]) for one in found] == [("quince OR medlar", "fruit"), ("medlar", "")]
    await window.page.set_viewport_size(PHONE)
    assert await window.faults() == []
    assert await page.locator("main").evaluate("main => main.scrollWidth <= main.clientWidth")
    await page.set_viewport_size(DESKTOP)


async def test_a_mistake_is_told_once_when_a_rule_is_tried(site_api: Api, windows: Windows) -> None:
    """At the field, also before it is checked while one writes: in the form of saved rules, and in that of a column."""
    window = await windows.open(await named_user(site_api, "siv"), "/#/people/rules")
    window.expects_refusals = True
    page = window.page
    told = page.locator(".problem").filter(has_text="Unknown operator `form:`", visible=True)
    field, attempt = page.get_by_label("Rule", exact=True), window.button("Try the past hour")
    await field.fill("quince form:siv")
    await attempt.click()
    await expect(page.locator(".trial")).to_have_text("")
    await expect(told).to_have_count(1)
    await page.reload()  # and as a draft, which nobody has checked
    await attempt.click()
    await expect(page.locator(".trial")).to_have_text("")
    await expect(told).to_have_count(1)
    await window.go("#/streams", "")
    await page.keyboard.press("c")
    builder = page.get_by_role("dialog")
    await builder.get_by_label("Further conditions").fill("quince form:siv")
    await expect(builder.locator(".mistake")).to_be_visible()
    await builder.get_by_role("button", name="Try the past hour").click()
    await expect(builder.locator(".trial")).to_have_text("")
    await expect(told).to_have_count(1)


async def test_a_saved_rule_is_changed_in_place_and_deleted(site_api: Api, windows: Windows) -> None:
    """A change keeps the id and the focus. A delete can be undone. The count follows."""
    sue = await named_user(site_api, "sue", "Sue")
    token = mint(sue["id"])

    async def saved() -> list[tuple[str, str, str]]:
        rules = (await site_api.done("GET", "/v1/rules", token=token))["rules"]
        return [(one["id"], one["rule"], one["tag"]) for one in rules]

    rules = [{"rule": "quince OR medlar", "tag": "fruit"}, {"rule": "medlar"}]
    await site_api.done("POST", "/v1/rules", token=token, json={"rules": rules})
    (first, _, _), (second, _, _) = await saved()
    window = await windows.open(sue, "/#/people")
    window.expects_refusals = True
    page = window.page
    await window.go("#/people/rules", "2 rules of 1,000")
    row = page.get_by_role("listitem").filter(has_text="quince OR medlar")
    await row.get_by_role("button", name="Change").click()
    changing = page.get_by_role("form", name="Change the rule")
    assert await window.faults() == []
    await changing.get_by_label("Rule", exact=True).fill("medlar")
    await changing.get_by_label("Tag").fill("")
    await changing.get_by_role("button", name="Change the rule").click()
    await expect(changing.get_by_role("alert")).to_contain_text("You have saved this rule already")
    await changing.get_by_label("Rule", exact=True).fill("damson")
    await changing.get_by_role("button", name="Change the rule").click()
    await expect(page.get_by_role("button", name="Change damson")).to_be_focused()
    assert await saved() == [(first, "damson", ""), (second, "medlar", "")]
    gone = page.get_by_role("button", name="Delete medlar")
    await gone.click()
    await expect(page.locator("main")).to_contain_text("1 rule of 1,000")
    await window.button("Undo").click()
    await expect(page.locator("main")).to_contain_text("2 rules of 1,000")
    await gone.click()
    await window.button("Dismiss").click()

    async def is_deleted() -> bool:
        return await saved() == [(first, "damson", "")]

    await eventually(is_deleted)


async def test_a_column_of_saved_rules_shows_what_they_match_from_the_moment_they_are_saved(
    site_api: Api, windows: Windows
) -> None:
    """Of all rules or of one tag. A rule that a column's menu saves is in force at once, and a change of it too."""
    tia = await named_user(site_api, "tia", "Tia")
    token = mint(tia["id"])
    rules = [{"rule": "loquat", "tag": "trees"}, {"rule": "radish", "tag": "beds"}]
    made = (await site_api.done("POST", "/v1/rules", token=token, json={"rules": rules}))["rules"]
    await site_api.post(tia["id"], "a loquat before")
    window = await windows.open(tia, "/#/people")
    page = window.page
    await window.go("#/people/rules", "2 rules")
    await window.button("All").click()
    every = page.get_by_role("region", name="My saved rules", exact=True)
    await expect(every.locator(".text")).to_have_text(["a loquat before"])
    await window.go("#/people/rules", "2 rules")
    await window.button("trees").click()
    trees = page.get_by_role("region", name="Saved rules: trees", exact=True)
    await expect(trees.locator(".text")).to_have_text(["a loquat before"])
    await expect(page.locator(".column").last).to_be_focused()  # the strip has other columns, and shows this one
    await expect(page.locator(".column").last).to_be_in_viewport(ratio=0.9)
    await site_api.post(tia["id"], "a radish")
    await expect(every.locator(".text")).to_have_text(["a radish", "a loquat before"])
    await window.add_column("persimmonish")
    column = page.locator(".column").last
    await column.locator(".menu summary").click()
    await column.get_by_role("button", name="Save as rule").click()
    dialog = page.locator("dialog[open]")
    await dialog.get_by_label("Tag").fill("trees")
    await dialog.get_by_role("button", name="Save the rule").click()
    await expect(dialog).to_have_count(0)
    await site_api.done("PUT", f"/v1/rules/{made[0]['id']}", token=token, json={"rule": "lychee", "tag": "trees"})
    for text in ("persimmonish too", "a loquat after", "a lychee"):
        await site_api.post(tia["id"], text)
    await expect(trees.locator(".text")).to_have_text(["a lychee", "persimmonish too", "a loquat before"])
    await expect(every.locator(".text")).to_have_text(["a lychee", "persimmonish too", "a radish", "a loquat before"])
    await trees.get_by_role("button", name="Pause").click()
    for text in ("a lychee again", "a radish again"):
        await site_api.post(tia["id"], text)
    await expect(trees.locator(".state")).to_contain_text("1 waiting")
    await trees.get_by_role("button", name="Resume").click()
    await expect(trees.locator(".text").first).to_have_text("a lychee again")
    await expect(trees.locator(".text")).to_have_count(4)
    await page.reload()
    await expect(trees.locator(".text")).to_have_count(4)
    await expect(every.locator(".state")).to_contain_text("live")
    radish = every.locator(".post").filter(has_text="a radish again")
    await radish.get_by_role("button", name="Why").click()
    await expect(radish.locator(".why")).to_contain_text("your rule beds")


async def test_a_column_of_saved_rules_offers_only_what_it_can_do(site_api: Api, windows: Windows) -> None:
    """It cannot look back, and its filter is no rule, unless one gives it conditions."""
    page = (await windows.open(await named_user(site_api, "tove"), columns({"saved": "all"}))).page
    column, builder = page.locator(".column"), page.get_by_role("dialog")
    await column.locator(".column-head .menu summary").click()
    await expect(column.get_by_role("button", name="Export as CSV")).to_be_visible()
    await expect(column.get_by_role("button", name="Look back")).to_have_count(0)
    await column.get_by_role("button", name="Edit filter").click()
    offers = [builder.get_by_role("button", name=name) for name in ("Save as rule", "Try the past hour")]
    for offer in offers:
        await expect(offer).to_be_hidden()
    await builder.get_by_label("Further conditions").fill("loquat")
    for offer in offers:
        await expect(offer).to_be_visible()
    await builder.get_by_label("Further conditions").fill("")


async def test_a_note_lies_over_the_window_on_top(site_api: Api, windows: Windows) -> None:
    """And it stays when that window is closed."""
    window = await windows.open(await named_user(site_api, "noor", "Noor"), "/#/streams")
    window.expects_refusals = True  # the builder may ask about the rule that was just saved: 409
    await window.page.keyboard.press("c")
    await window.page.keyboard.type("guava,")
    await window.button("Save as rule").click()
    await window.button("Save the rule").click()
    note = window.page.locator(".note", has_text="The rule is saved.")
    await expect(note).to_be_visible()
    assert await note.evaluate(IS_ON_TOP)
    await window.page.keyboard.press("Escape")
    await expect(window.page.get_by_role("dialog")).to_have_count(0)
    assert await note.evaluate(IS_ON_TOP)
