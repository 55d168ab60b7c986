"""The page of named subscriptions: to make them, to see how they do, and what one does with their webhooks."""

import asyncio
import re
from pathlib import Path
from typing import Any

from playwright.async_api import Route, expect

from tests.browser.windows import DESKTOP, PHONE, Windows, named_user
from tests.challenge_endpoint import challenge_endpoint
from tests.command_line import ROOT, clean_environment, running
from tests.end_to_end.api import Api, mint
from tests.waiting import PATIENCE, eventually


async def read(api: Api, uid: str) -> dict[str, Any]:
    found: dict[str, Any] = await api.done("GET", "/v1/subscriptions/orders", token=mint(uid))
    return found


async def test_a_webhook_is_made_and_tested_and_its_requests_appear(site_api: Api, windows: Windows) -> None:
    """The page follows what happens without a reload. A secret is shown by the answer that makes it."""
    pia = await named_user(site_api, "pia", "Pia")
    window = await windows.open(pia, "/#/people")
    window.expects_refusals = True
    page, main = window.page, window.page.locator("main")
    await window.go("#/people/subscriptions", "You have no subscriptions yet.")
    await window.button("New subscription").click()
    form = page.get_by_role("form", name="New subscription")
    assert await window.faults() == []
    name = form.get_by_label("Name")
    await expect(name).to_have_accessible_description(re.compile("Letters of a to z, digits, _, . and -"))
    await name.fill("orders")
    await form.get_by_label("Rule").fill("tangelo")
    await form.get_by_label("Webhook").fill("http://127.0.0.1:1/")
    await form.get_by_role("button", name="Make").click()
    problem = form.locator(".field:has([name='deliver.url']) + .problem")
    await expect(problem).to_have_text(re.compile("^This URL did not answer the challenge(?!.*deliver)"))
    await expect(form.get_by_label("Webhook")).to_be_focused()
    await form.get_by_label("Rule").fill("tangelo form:x")
    await form.get_by_label("Further parameters").fill("kinds=post")
    await form.get_by_label("Webhook").fill(challenge_endpoint())
    await form.get_by_label("Begin at").fill("-5m")
    await form.get_by_role("button", name="Make").click()
    await expect(page.locator(".rule-marks .mistake")).to_have_text("form:x")
    await form.get_by_label("Rule").fill("tangelo")
    await form.get_by_role("button", name="Make").click()
    await expect(main).to_contain_text(re.compile("The secret of orders, which is shown only here:whsec_"))
    row = page.get_by_role("listitem").filter(has_text="orders").first
    await expect(row).to_contain_text("active")
    await expect(row).to_contain_text("kinds: post, rule: tangelo")
    made = await read(site_api, pia["id"])
    assert (made["parameters"], made["deliver"]["state"]) == ({"rule": "tangelo", "kinds": "post"}, "active")
    await row.get_by_role("button", name="Test").click()
    await expect(row).to_contain_text("The test:")
    await expect(row).to_contain_text("200, 0 events")
    await site_api.post(pia["id"], "a tangelo")
    await expect(row.locator("summary", has_text="The last requests: 200")).to_be_visible()
    await row.locator("summary", has_text="The last requests").click()
    await expect(row).to_contain_text("200, 1 event,")
    await row.locator(".menu summary").click()
    await row.get_by_role("button", name="New secret").click()
    await expect(main).to_contain_text("The one before it works for another day.")
    await page.set_viewport_size(PHONE)
    assert await window.faults() == []
    await page.set_viewport_size(DESKTOP)


async def test_a_webhook_is_paused_edited_woken_and_deleted(site_api: Api, windows: Windows) -> None:
    """An edit keeps a pause. What one has opened stays open while the page renews itself."""
    pam = await named_user(site_api, "pam", "Pam")
    body = {"parameters": {"rule": "tangelo", "kinds": "post"}, "deliver": {"url": challenge_endpoint()}}
    await site_api.done("PUT", "/v1/subscriptions/orders", token=mint(pam["id"]), json=body)
    await site_api.post(pam["id"], "a tangelo for pam")
    window = await windows.open(pam, "/#/people")
    page = window.page
    await window.go("#/people/subscriptions", "active")
    row = page.get_by_role("listitem").filter(has_text="orders").first
    await row.locator("summary", has_text="The last requests: 200").click()
    await row.get_by_role("button", name="Pause").click()
    await expect(row).to_contain_text("paused")
    assert (await read(site_api, pam["id"]))["deliver"]["state"] == "paused"
    await expect(row.locator("details[open] li").first).to_be_visible()  # which stays open
    await row.locator(".menu summary").click()
    await row.get_by_role("button", name="Edit").click()
    editing = page.get_by_role("form", name="Edit orders")
    await expect(editing.get_by_label("Further parameters")).to_have_value("kinds=post")
    await editing.get_by_label("Rule").fill("tangelo OR pomelo")
    await editing.get_by_label("Most events").fill("7")
    await editing.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("pomelo")
    changed = await read(site_api, pam["id"])
    assert (changed["parameters"]["rule"], changed["deliver"]["batch"], changed["deliver"]["state"]) == (
        "tangelo OR pomelo", 7, "paused",
    )  # fmt: skip
    await row.get_by_role("button", name="Resume").click()
    await expect(row.get_by_role("button", name="Pause")).to_be_visible()
    assert (await read(site_api, pam["id"]))["deliver"]["state"] == "active"
    await row.get_by_role("button", name="Delete").click()
    await window.button("Dismiss").click()
    await expect(page.locator("main")).to_contain_text("You have no subscriptions yet.")

    async def is_gone() -> bool:
        return not (await site_api.done("GET", "/v1/subscriptions", token=mint(pam["id"])))["subscriptions"]

    await eventually(is_gone)
    await window.button("New subscription").click()  # of the same name, which is shown
    form = page.get_by_role("form", name="New subscription")
    await form.get_by_label("Name").fill("orders")
    await form.get_by_label("Rule").fill("pomelo")
    await form.get_by_role("button", name="Make").click()
    await expect(row).to_be_visible()


async def test_a_subscription_is_copied_as_code(site_api: Api, windows: Windows, tmp_path: Path) -> None:
    """One that programs read as a program that reads it, and a webhook as the request that makes it."""
    sven = await named_user(site_api, "sven", "Sven")
    token = mint(sven["id"])
    plain: dict[str, Any] = {"parameters": {"track": "it's"}, "since": "-1h", "parts": 2}
    sent: dict[str, Any] = {"parameters": {"rule": '"it\'s"'}, "parts": 2}
    sent["deliver"] = {"url": challenge_endpoint(), "batch": 3}
    await site_api.done("PUT", "/v1/subscriptions/plain", token=token, json=plain)
    await site_api.done("PUT", "/v1/subscriptions/sent", token=token, json=sent)
    window = await windows.open(sven, "/#/people")
    await window.go("#/people/subscriptions", "2 parts: nobody reads 2")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    for name, languages, text in (
        ("plain", ["curl", "Python", "JavaScript"], "subscription=plain"),
        ("sent", ["curl", "Python"], "-X PUT"),
    ):
        row = window.page.get_by_role("listitem").filter(has=window.page.locator("strong", has_text=name)).first
        await row.locator(".menu summary").click()
        await row.get_by_role("button", name="Copy as code").click()
        dialog = window.page.locator("dialog[open]")
        await expect(dialog.locator(".program")).to_contain_text(text)
        await expect(dialog.get_by_role("group", name="Language").get_by_role("button")).to_have_text(languages)
        await dialog.get_by_label("with my token").check()
        scripts = [await dialog.locator(".program").inner_text()]
        await dialog.get_by_role("button", name="Python").click()
        await expect(dialog.locator(".program")).to_contain_text(f'"{name}"')
        scripts.append(await dialog.locator(".program").inner_text())
        await window.page.keyboard.press("Escape")
    for script in scripts:  # those of the webhook
        await site_api.call("DELETE", "/v1/subscriptions/sent", token=token)
        command = ("bash", "-c", f"cd {tmp_path}\n{script}")
        with running(*command, folder=tmp_path, env=clean_environment()) as program:
            assert await asyncio.to_thread(program.process.wait, PATIENCE) == 0, program.err
        made = await site_api.done("GET", "/v1/subscriptions/sent", token=token)
        assert (made["parameters"], made["deliver"]["batch"]) == (sent["parameters"], 3)
        assert len(made["parts"]) == 2


async def test_a_subscription_that_chooses_nothing_is_refused_at_its_rule(site_api: Api, windows: Windows) -> None:
    """In words of the form: the API names parameters that are no fields. A mistake in the rule is marked there."""
    per = await named_user(site_api, "per")
    window = await windows.open(per, "/#/people/subscriptions")
    window.expects_refusals = True
    await window.button("New subscription").click()
    form = window.page.get_by_role("form", name="New subscription")
    rule, make = form.get_by_label("Rule"), form.get_by_role("button", name="Make")
    await form.get_by_label("Name").fill("nothing")
    for others in ("", "kinds=post"):
        await form.get_by_label("Further parameters").fill(others)
        await make.click()
        await expect(form.locator(".field:has([name=rule]) + .problem")).to_have_text(
            "Write a rule, or choose the events by further parameters, such as sample=10."
        )
        await expect(rule).to_be_focused()
    await rule.fill("tangelo (")
    await make.click()
    await expect(form.locator(".mistake")).to_be_visible()
    await expect(form.get_by_role("alert").filter(has_text=re.compile("."))).to_have_count(1)
    await form.get_by_label("Further parameters").fill("sample=10")
    await rule.fill("")
    await make.click()
    await expect(window.page.get_by_role("listitem").filter(has_text="nothing")).to_contain_text("sample: 10")


GAP = """row => {
  const bottoms = [...row.querySelectorAll(".entry .row > *")].map(one => one.getBoundingClientRect().bottom);
  return row.querySelectorAll(".entry")[1].getBoundingClientRect().top - Math.max(...bottoms);
}"""
"""How far the lowest button of a subscription is above the next line, in pixels."""


async def test_a_subscription_is_told_in_whole_lines(site_api: Api, windows: Windows) -> None:
    """No button touches the next line at any width, and no time is told that the server does not say."""
    pol = await named_user(site_api, "pol")
    parameters = {"rule": "tangelo OR pomelo OR medlar has:links"}
    await site_api.done("PUT", "/v1/subscriptions/orders", token=mint(pol["id"]), json={"parameters": parameters})

    async def leave_out(route: Route) -> None:
        found = await (await route.fetch()).json()
        found["subscriptions"][0] |= {"behind": 1, "behind_seconds": None, "kept_seconds": None}
        await route.fulfill(json=found)

    window = await windows.open(pol, "/#/people")
    await window.page.route("**/v1/subscriptions", leave_out)
    await window.go("#/people/subscriptions", "at most 1 event behind")
    row = window.page.get_by_role("listitem").filter(has_text="orders")
    await expect(row.locator(".entry").nth(1)).to_have_text(re.compile(r"^at most 1 event behindused at [\d:]+$"))
    for width in (320, 480, 640, 1000):
        await window.page.set_viewport_size({"width": width, "height": 700})
        assert await row.evaluate(GAP) >= 6, f"at {width} pixels"
    await window.page.set_viewport_size(DESKTOP)


async def test_a_name_that_is_taken_is_refused_at_its_field(site_api: Api, windows: Windows) -> None:
    """The server would change the other subscription. One whose delete can be undone gives its name free."""
    piet = await named_user(site_api, "piet")
    path = "/v1/subscriptions/orders"
    await site_api.done("PUT", path, token=mint(piet["id"]), json={"parameters": {"track": "medlar"}})
    window = await windows.open(piet, "/#/people/subscriptions")
    row = window.page.get_by_role("listitem").filter(has_text="orders")
    await window.button("New subscription").click()
    form = window.page.get_by_role("form", name="New subscription")
    await form.get_by_label("Name").fill("orders")
    await form.get_by_label("Rule").fill("sloe")
    for _ in range(2):
        await form.get_by_role("button", name="Make").click()
        await expect(form.locator(".field:has([name=subscription]) + .problem")).to_have_text(
            "You have a subscription of this name: edit it, or choose another name."
        )
        await expect(form.get_by_label("Name")).to_be_focused()
    assert (await read(site_api, piet["id"]))["parameters"] == {"track": "medlar"}
    await row.get_by_role("button", name="Delete").click()
    await expect(row).to_be_hidden()
    await form.get_by_role("button", name="Make").click()
    await expect(row).to_contain_text("rule: sloe")
    assert (await read(site_api, piet["id"]))["parameters"] == {"rule": "sloe"}


async def test_a_secret_names_its_subscription_and_goes_with_it(site_api: Api, windows: Windows) -> None:
    """One stands on the page at a time. It is hidden while the delete of its subscription can be undone."""
    pepe = await named_user(site_api, "pepe")
    for name in ("orders", "invoices"):
        body = {"parameters": {"track": name}, "deliver": {"url": challenge_endpoint()}}
        await site_api.done("PUT", f"/v1/subscriptions/{name}", token=mint(pepe["id"]), json=body)
    window = await windows.open(pepe, "/#/people/subscriptions")
    secret = window.page.get_by_text("which is shown only here")
    for name in ("orders", "invoices"):
        row = window.page.get_by_role("listitem").filter(has_text=name).first
        await row.locator(".menu summary").click()
        await row.get_by_role("button", name="New secret").click()
        await expect(secret).to_have_text(f"The secret of {name}, which is shown only here:")
    assert await window.faults() == []
    await row.get_by_role("button", name="Delete").click()
    await expect(secret).to_be_hidden()
    await window.button("Undo").click()
    await expect(secret).to_be_visible()
    await row.get_by_role("button", name="Delete").click()
    await window.button("Dismiss").click()
    await expect(secret).to_have_count(0)


async def test_what_is_wrong_is_told_at_its_place(site_api: Api, windows: Windows) -> None:
    """A parameter that is unknown at the field of further ones. Below the buttons of a row, of which none moves."""
    pina = await named_user(site_api, "pina")
    body = {"parameters": {"track": "sloe"}, "deliver": {"url": challenge_endpoint(), "paused": True}}
    await site_api.done("PUT", "/v1/subscriptions/orders", token=mint(pina["id"]), json=body)
    window = await windows.open(pina, "/#/people/subscriptions")
    window.expects_refusals = True
    await window.button("New subscription").click()
    form = window.page.get_by_role("form", name="New subscription")
    await form.get_by_label("Name").fill("others")
    await form.get_by_label("Rule").fill("sloe")
    await form.get_by_label("Further parameters").fill("foo=1")
    await form.get_by_role("button", name="Make").click()
    problem = form.locator(".field:has([name=parameters]) + .problem")
    await expect(problem).to_have_text(re.compile(r"^Unknown parameter 'foo'(?!.*\(foo\))"))
    await expect(form.get_by_label("Further parameters")).to_be_focused()
    await form.get_by_role("button", name="Cancel").click()

    async def refuse(route: Route) -> None:
        message = "this URL did not answer the challenge as expected: no connection"
        error = {"code": "invalid_parameter", "message": message, "param": "deliver.url"}
        await route.fulfill(status=400, json={"error": error})

    await window.page.route("**/v1/subscriptions/orders", refuse)
    row = window.page.get_by_role("listitem").filter(has_text="orders")
    delete = row.get_by_role("button", name="Delete")
    before = await delete.bounding_box()
    await row.get_by_role("button", name="Resume").click()
    await expect(row.get_by_role("alert").filter(has_text="no connection")).to_have_text(
        "This URL did not answer the challenge as expected: no connection."
    )
    assert await delete.bounding_box() == before
    assert await window.faults() == []


async def test_a_webhook_tells_of_no_reader_and_no_try_in_the_past(site_api: Api, windows: Windows) -> None:
    """The server sends all parts. A try that is due comes in a moment, whatever the clocks of both say."""
    pavo = await named_user(site_api, "pavo")
    body = {"parameters": {"track": "sloe"}, "parts": 3, "deliver": {"url": challenge_endpoint()}}
    await site_api.done("PUT", "/v1/subscriptions/orders", token=mint(pavo["id"]), json=body)
    due = "2020-01-01T00:00:00.000Z"

    async def fail(route: Route) -> None:
        found = await (await route.fetch()).json()
        found["subscriptions"][0]["deliver"] |= {"state": "failing", "failures": 1, "next_attempt": due}
        await route.fulfill(json=found)

    window = await windows.open(pavo, "/#/people")
    await window.page.route("**/v1/subscriptions", fail)
    await window.go("#/people/subscriptions", "1 failure in a row, tried again in a moment")
    await expect(window.page.get_by_role("listitem").filter(has_text="orders")).to_contain_text(
        "3 parts, which the server sends"
    )
    due = "2099-01-01T00:00:00.000Z"
    await expect(window.page.locator("main")).to_contain_text(re.compile(r"tried again at \d\d:\d\d:\d\d"))
