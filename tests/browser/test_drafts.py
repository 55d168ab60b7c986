"""Forms of the console keep what one enters until it is sent or given up. Keys of an input method send nothing."""

from typing import Any, NamedTuple

import pytest
from playwright.async_api import CDPSession, Locator, expect

from tests.browser.windows import Window, Windows, named_user, session
from tests.end_to_end.api import Api, mint

SCOPE = "read write stream"
DRAFTS = "Object.keys(sessionStorage).filter(key => key.includes('.draft.'))"
OF_INPUT_METHOD = 229
"""The code that browsers give to a key of an input method. Safari gives it to the Enter that ends a composition."""


class Form(NamedTuple):
    """A form of the view People.

    Attributes:
        page: Where it is, with the user's own name for ``@``.
        opener: The button that opens it.
        values: What one enters, by the labels of the fields.
    """

    page: str
    opener: str
    values: dict[str, str]


RULE, TAG = "Rule, or several, a line each", "Tag, which each match of the rule has"
FORMS = {
    "New subscription": Form(
        "subscriptions",
        "New subscription",
        {"Name": "sloes", RULE: "sloe OR", "Further parameters, as in an address": "kinds=post"},
    ),
    "Edit quinces": Form("subscriptions", "Edit", {RULE: "quince (", "Most events in one request": "7"}),
    "Edit profile": Form("@", "Edit profile", {"Name": "Dora D.", "About you": "two\nlines", "Place": "Lisbon"}),
    "Change the rule": Form("rules", "Change quince", {"Rule": "quince OR medlar", TAG: "fruit"}),
    "New list": Form("lists", "New list", {"Name": "Bakers", "Description": "who bake"}),
    "Edit the post": Form("@", "Edit", {"The new text": "a post of dora, written anew"}),
}


async def stands(form: Locator, values: dict[str, str]) -> None:
    for label, value in values.items():
        await expect(form.get_by_label(label, exact=True)).to_have_value(value)


async def opened(window: Window, form: Form) -> None:
    """Press the button that opens a form, which may be in a menu."""
    if form.opener == "Edit":
        await window.page.locator(".feed-list .menu summary").click()
    await window.button(form.opener).click()


@pytest.mark.parametrize("name", FORMS)
async def test_a_form_comes_back_with_what_was_entered(site_api: Api, windows: Windows, name: str) -> None:
    """After a reload, open as it was; the form of a post when it is opened. What is given up is forgotten."""
    given = FORMS[name]
    login = f"dora_{list(FORMS).index(name)}"
    dora = await named_user(site_api, login, "Dora")
    token = mint(dora["id"])
    await site_api.post(dora["id"], "a post of dora")
    await site_api.done("PUT", "/v1/subscriptions/quinces", token=token, json={"parameters": {"rule": "quince"}})
    await site_api.done("POST", "/v1/rules", token=token, json={"rules": [{"rule": "quince"}]})
    window = await windows.open(dora, f"/#/people/{given.page.replace('@', f'@{login}')}")
    window.expects_refusals = True  # the server does not take the half of a rule
    form = window.page.get_by_role("form", name=name, exact=True)
    await opened(window, given)
    for label, value in given.values.items():
        await form.get_by_label(label, exact=True).fill(value)
    await window.page.reload()
    if name == "Edit the post":
        await opened(window, given)
    else:
        await expect(form).to_be_visible()
        await expect(window.page.locator("body")).to_be_focused()
    await stands(form, given.values)
    await form.get_by_role("button", name="Cancel").click()
    await expect(form).to_have_count(0)
    assert await window.page.evaluate(DRAFTS) == []
    await window.page.reload()
    await opened(window, given)
    for label, value in given.values.items():
        await expect(form.get_by_label(label, exact=True)).not_to_have_value(value)


async def test_a_draft_is_of_one_user_and_goes_when_it_is_sent(site_api: Api, windows: Windows) -> None:
    """It outlives the session. No password is kept."""
    ella, emil = await named_user(site_api, "ella"), await named_user(site_api, "emil")
    window = await windows.open(ella, "/#/people/subscriptions")
    form = window.page.get_by_role("form", name="New subscription")
    name = form.get_by_label("Name", exact=True)
    await window.button("New subscription").click()
    await name.fill("ellas")
    await window.enter(session(emil, SCOPE), "/#/people/subscriptions")
    await expect(window.button("Signed in as emil")).to_be_visible()
    await window.button("New subscription").click()
    await expect(name).to_have_value("")
    await window.enter(session(ella, SCOPE), "/#/people/subscriptions")
    await expect(name).to_have_value("ellas")
    await form.get_by_label(RULE).fill("sloe")
    await form.get_by_role("button", name="Make").click()
    await expect(window.page.get_by_role("listitem").filter(has_text="ellas")).to_be_visible()
    await window.go("#/people/account/password", "Your present password")
    await window.page.get_by_label("Your present password").fill("not to be kept")
    assert await window.page.evaluate(DRAFTS) == []


async def test_a_message_and_a_comment_stay_where_they_were_written(site_api: Api, windows: Windows) -> None:
    """Each until it is sent."""
    hugo, ines = await named_user(site_api, "hugo_h"), await named_user(site_api, "ines_h")
    talk = await site_api.done("POST", "/v1/talks", token=mint(hugo["id"]), json={"people": [ines["id"]]})
    await site_api.post(hugo["id"], "to be commented on")
    window = await windows.open(hugo, f"/#/people/talks/{talk['id']}")
    message, comment = window.page.get_by_label("Message", exact=True), window.page.get_by_label("Your comment")
    await message.fill("half a message")
    await window.page.reload()
    await expect(message).to_have_value("half a message")
    await message.press("Enter")
    await expect(window.page.get_by_role("log")).to_contain_text("half a message")
    await expect(message).to_have_value("")
    await window.go("#/people/@hugo_h", "to be commented on")
    await window.button("Comment").click()
    await comment.fill("half a comment")
    await window.page.reload()
    await window.button("Comment").click()
    await expect(comment).to_have_value("half a comment")
    await comment.press("Enter")
    await expect(window.page.locator(".comments-list")).to_contain_text("half a comment")
    await expect(comment).to_have_value("")
    assert await window.page.evaluate(DRAFTS) == []


async def press(keyboard: CDPSession, key: str, modifiers: int = 0) -> None:
    """Press a key as an input method does."""
    given: dict[str, Any] = {"type": "rawKeyDown", "key": key, "windowsVirtualKeyCode": OF_INPUT_METHOD}
    await keyboard.send("Input.dispatchKeyEvent", {**given, "modifiers": modifiers})


async def test_a_key_of_an_input_method_sends_and_chooses_nothing(site_api: Api, windows: Windows) -> None:
    """In the form of a post, in the field for a rule, and in the search for people."""
    fumi = await named_user(site_api, "fumi_io", "Fumi")
    await named_user(site_api, "fumi_other", "Fumi")
    window = await windows.open(fumi, "/#/people")
    window.expects_refusals = True  # the server does not take the half of a rule
    page = window.page
    keyboard = await page.context.new_cdp_session(page)
    text = page.locator(".page .composer textarea")
    await text.fill("ねこ")
    await press(keyboard, "Enter", modifiers=2)
    await page.keyboard.type("が好き")
    await page.keyboard.press("Control+Enter")
    await expect(text).to_have_value("")
    await expect(window.post("ねこが好き")).to_be_visible()

    search = page.get_by_role("combobox", name="Find a user")
    await search.fill("fumi_")
    await expect(page.locator("#people-found li")).to_have_count(2)
    await press(keyboard, "ArrowDown")
    await page.keyboard.press("ArrowDown")
    await expect(page.locator("#people-found li").first).to_have_attribute("aria-selected", "true")

    await window.go("#/people/rules", "0 rules of 1,000")
    rule = page.get_by_label("Rule", exact=True)
    await rule.press_sequentially("is:rep")
    await expect(page.get_by_role("option")).to_have_count(2)
    await press(keyboard, "Enter")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(rule).to_have_value("is:repost")
    await expect(rule).to_have_attribute("aria-invalid", "true")  # the server takes it with other conditions only


async def test_a_reply_from_a_column_says_who_is_answered(site_api: Api, windows: Windows) -> None:
    """The text is kept for this answer alone, and goes to the post."""
    greta = await named_user(site_api, "greta_g")
    status = await site_api.post(greta["id"], "who answers greta")
    window = await windows.open(greta, "/#/streams")
    post = window.page.locator(".column .post").filter(has_text="who answers greta").first
    dialog = window.page.get_by_role("dialog")
    for text in ("", "I do"):
        await post.get_by_role("button", name="Reply").click()
        await expect(dialog.get_by_role("heading")).to_have_text("Reply to @greta_g")
        await expect(dialog.get_by_role("textbox", name="Reply to @greta_g")).to_have_value(text)
        await dialog.get_by_role("textbox", name="Reply to @greta_g").fill("I do")
        if not text:
            await window.page.keyboard.press("Escape")
    await dialog.get_by_role("button", name="Reply", exact=True).click()
    await expect(window.page.locator(".note")).to_contain_text("Posted")
    path = f"/v1/statuses/{status['id']}/conversation"
    found = (await site_api.done("GET", path, token=mint(greta["id"])))["statuses"]
    assert [one["message"] for one in found] == ["who answers greta", "I do"]
