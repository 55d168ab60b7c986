"""The account of a user and the moderation of an administrator: each deed has its effect, and no other."""

import json
import re
from typing import Any

import pytest
from playwright.async_api import ViewportSize, expect

from tests.browser.windows import DESKTOP, Window, Windows, named_user, session
from tests.end_to_end.api import Api, mint
from tests.waiting import eventually

pytestmark = pytest.mark.extended

NARROW: ViewportSize = {"width": 320, "height": 480}
"""What a zoom of 400 % leaves of a usual window."""

ADMIN = "read write stream admin"
CLOCK = r"\w+ \d+, \d{4}, \d\d:\d\d:\d\d"
"""A time with its day, as the browsers of the tests write it."""

PASSWORD = "correct horse"


async def logged_in(api: Api, login: str, agent: str, password: str = PASSWORD) -> Any:
    """Return the answer to a log-in with this User-Agent."""
    body, headers = {"login": login, "password": password}, {"User-Agent": agent}
    return await api.done("POST", "/v1/sessions", json=body, headers=headers)


async def agents(api: Api, token: str) -> set[str]:
    return {one["agent"] for one in (await api.done("GET", "/v1/sessions", token=token))["sessions"]}


async def send_now(window: Window) -> None:
    """Let what can be undone be done: dismiss the notes."""
    for button in await window.page.locator(".notes").get_by_role("button", name="Dismiss").all():
        await button.click()


async def faultless(window: Window) -> None:
    """The page has no faults, and no part of it is wider than a window at 400 %."""
    assert await window.faults() == []
    await window.page.set_viewport_size(NARROW)
    assert await window.page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
    await window.page.set_viewport_size(DESKTOP)


async def test_sessions_end_and_the_password_changes(site_api: Api, windows: Windows) -> None:
    """One session ends, then all others, then others again by the new password; the own one goes on all the time."""
    user = await site_api.sign_up("vera")
    own = await logged_in(site_api, "vera", "own browser")
    for agent in ("lost phone", "tablet", "work"):
        await logged_in(site_api, "vera", agent)
    window = await windows.open(None, "/")
    await window.enter(session(user, "", own["token"]), "/#/streams")
    await window.page.get_by_role("button", name="Signed in as vera").click()
    await window.page.get_by_role("link", name="Account and sessions").click()
    rows = window.page.get_by_role("group", name="Your sessions").locator(".entry:visible")
    await expect(rows.filter(has_text="own browser")).to_contain_text("used now")
    await expect(window.page.locator(".page")).to_contain_text("vera@example.com")
    await faultless(window)
    await rows.filter(has_text="lost phone").get_by_role("button", name="End").click()
    await expect(rows).to_have_count(3)
    assert await agents(site_api, own["token"]) == {"own browser", "lost phone", "tablet", "work"}
    await send_now(window)

    async def has_ended() -> bool:
        return await agents(site_api, own["token"]) == {"own browser", "tablet", "work"}

    await eventually(has_ended, what="the end of one session")
    await window.button("End all other sessions …").click()
    await expect(window.page.get_by_role("dialog")).to_contain_text("2 other sessions")
    assert await agents(site_api, own["token"]) == {"own browser", "tablet", "work"}
    await window.button("End them").click()
    await expect(rows).to_have_count(1)
    assert await agents(site_api, own["token"]) == {"own browser"}

    await logged_in(site_api, "vera", "late")
    await window.page.get_by_role("link", name="Password").click()
    window.expects_refusals = True
    await window.page.get_by_label("Show the passwords").check()
    await expect(window.page.locator("input[name=new_password]")).to_have_attribute("type", "text")
    for present, told in (("wrong one", "The password is wrong."), (PASSWORD, "")):
        await window.page.get_by_label("Your present password").fill(present)
        await window.page.get_by_label("The new password").fill("battery staple")
        await window.button("Change the password").click()
        if told:
            at_field = window.page.locator(".field:has([name=password]) + [role=alert]")
            await expect(at_field).to_have_text(told)
            await expect(window.page.get_by_label("Your present password")).to_be_focused()
    await expect(window.page.locator(".notes")).to_contain_text("Your other sessions and tokens have ended")
    assert await agents(site_api, own["token"]) == {"own browser"}
    await logged_in(site_api, "vera", "new", "battery staple")
    await faultless(window)


async def test_a_session_names_its_program(site_api: Api, windows: Windows) -> None:
    """A browser and its system instead of what it sends, which stays there on hover; other programs as they say."""
    user = await site_api.sign_up("valentin")
    own = await logged_in(site_api, "valentin", "my script/2")
    engine = "AppleWebKit/537.36 (KHTML, like Gecko)"
    for agent in (
        f"Mozilla/5.0 (X11; Linux x86_64) {engine} Chrome/120.0.0.0 Safari/537.36",
        f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {engine} Chrome/120.0.0.0 Safari/537.36 Edg/120.0.0.0",
        f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) {engine} Version/17.0 Mobile/15E148 Safari/604.1",
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:121.0) Gecko/20100101 Firefox/121.0",
    ):
        await logged_in(site_api, "valentin", agent)
    window = await windows.open(None, "/")
    await window.enter(session(user, "", own["token"]), "/#/people/account")
    programs = window.page.get_by_role("group", name="Your sessions").locator(".entry .grow")
    await expect(programs.filter(has_text="my script/2")).to_have_count(1)
    for name in ("Chrome on Linux", "Edge on Windows", "Safari on iOS", "Firefox on macOS"):
        await expect(programs.get_by_text(name, exact=True)).to_have_count(1)
    await expect(programs.filter(has_text="Edge")).to_have_attribute("title", re.compile("Edg/120"))
    await window.page.set_viewport_size({"width": 360, "height": 740})
    lines = "all => all.map(one => one.firstElementChild.getClientRects().length)"  # a word is broken at no letter
    assert await programs.evaluate_all(lines) == [1] * 5
    await window.page.set_viewport_size(DESKTOP)


async def test_a_user_sees_and_ends_own_streams(site_api: Api, windows: Windows) -> None:
    user, other = await named_user(site_api, "wanda"), await named_user(site_api, "wilhelm")
    window = await windows.open(user, "/#/people")
    async with (
        await site_api.stream({"track": "tulips"}, uid=user["id"]) as stream,
        await site_api.stream({"track": "roses"}, uid=other["id"]),
    ):
        await window.go("#/people/account/streams", "tulips")
        rows = window.page.get_by_role("group", name="Your open streams").locator("> div")
        row = rows.filter(has_text="tulips")
        await expect(row).to_contain_text("0 events delivered")
        await expect(row).to_contain_text(f"since {stream.of('hello')[0]['cursor']}")
        await expect(rows.filter(has_text="roses")).to_have_count(0)
        await faultless(window)
        await row.get_by_role("button", name="End").click()
        await expect(row).to_be_hidden()
        await window.button("Undo").click()
        await expect(row).to_be_visible()
        await row.get_by_role("button", name="End").click()
        await send_now(window)
        await stream.until(lambda consumer: consumer.of("goodbye"))
        assert stream.of("goodbye")[0]["code"] == "closed_by_user"


async def test_a_report_is_decided_and_the_audit_tells_of_it(site_api: Api, windows: Windows) -> None:
    """An administrator reads a report, suspends its user, lifts that, and suspends another user with a reason."""
    root, xaver, yoko = [await named_user(site_api, login) for login in ("root", "xaver", "yoko")]
    token = mint(xaver["id"])
    status = await site_api.done("POST", "/v1/statuses", token=token, json={"message": "buy <b>pills</b>"})
    for body in ({"status": status["id"], "reason": "spam"}, {"user": xaver["id"], "reason": "abuse", "note": "rude"}):
        await site_api.done("POST", "/v1/reports", token=mint(yoko["id"]), json=body)
    window = await windows.open(root, "/#/operations", scope=ADMIN)
    to_moderation = window.page.get_by_role("link", name="Moderation")
    await window.button("Signed in as root").click()
    for _ in ("in the window of the session", "in the page"):
        await expect(to_moderation.last).to_have_text(re.compile(r"^Moderation \d+\+? open reports$"))
        await window.page.keyboard.press("Escape")
    await to_moderation.click()
    reports = window.page.get_by_role("article")  # with those of other tests
    spam, abuse = reports.filter(has_text="pills"), reports.filter(has_text="rude")
    await expect(spam).to_have_attribute("aria-label", "Report: spam")
    await expect(spam.locator("blockquote")).to_contain_text("buy <b>pills</b>")
    await expect(spam).to_contain_text("by @yoko")
    await expect(abuse).to_contain_text("rude")
    await expect(abuse.get_by_role("button")).to_have_count(2)
    await faultless(window)
    await spam.get_by_label("Note of the decision").fill("sells pills")
    await spam.get_by_role("button", name="Suspend user").click()
    await expect(spam).to_be_hidden()
    assert (await site_api.call("GET", "/v1/users/me", token=token)).status == 200
    await send_now(window)

    async def is_suspended(user: dict[str, Any]) -> bool:
        return (await site_api.call("GET", "/v1/users/me", token=mint(user["id"]))).status == 403

    await eventually(lambda: is_suspended(xaver), what="the suspension")
    await window.button("Decided").click()
    await expect(spam).to_contain_text("suspended")
    await expect(spam).to_contain_text("by @root: sells pills")

    await window.page.get_by_role("link", name="Suspensions").click()
    row = window.page.locator(".user-row")
    of_xaver = row.filter(has_text="@xaver")
    await expect(of_xaver).to_contain_text(re.compile(rf"since {CLOCK} by @root: sells pillsLift$"))
    await of_xaver.get_by_role("button", name="Lift").click()
    await send_now(window)
    await window.page.get_by_label("Username").fill("@yoko")
    await window.page.get_by_role("textbox", name="Note").fill('reports "all"')
    await window.button("Suspend").click()
    await send_now(window)
    await eventually(lambda: is_suspended(yoko), what="the second suspension")
    await expect(row.filter(has_text="@yoko")).to_be_visible()
    await faultless(window)

    await window.page.get_by_role("link", name="Audit").click()
    rows = window.page.locator(".feed-list .entry")
    decided = "suspended @xaver after a report: sells pills"
    for nth, told in enumerate(('suspended @yoko: reports "all"', "lifted the suspension of @xaver", decided)):
        await expect(rows.nth(nth)).to_have_text(re.compile(f"^{CLOCK}@root {told}$"))
    await expect(rows.nth(2).get_by_role("link", name="@xaver")).to_have_attribute("href", "#/people/@xaver")
    await faultless(window)
    await site_api.done("DELETE", f"/v1/admin/suspensions/{yoko['id']}", token=mint(root["id"], ADMIN))


async def test_people_goes_on_after_its_stream_was_ended(site_api: Api, windows: Windows) -> None:
    """By *Retry*, as in a column. The list of streams then names what the stream reads, although it has a place too."""
    wido = await named_user(site_api, "wido")
    window = await windows.open(wido, "/#/people/account/streams")
    head, main, retry = window.page.locator(".connection"), window.page.locator("main"), window.button("Retry")
    await expect(head).to_have_text("live")
    await expect(retry).to_be_hidden()
    (stream,) = (await site_api.done("GET", "/v1/streams", token=mint(wido["id"])))["streams"]
    await site_api.done("DELETE", f"/v1/streams/{stream['connection']}", token=mint(wido["id"]))
    await expect(head).to_have_text("ended: The user closed this stream.")
    await expect(main).to_contain_text("ended: The user closed this stream.Retry")
    assert await window.faults() == []
    await retry.click()
    await expect(head).to_have_text("live")
    await expect(retry).to_be_hidden()
    await expect(main).to_be_focused()
    await window.button("Load again").click()
    await expect(main).to_contain_text(re.compile(r"/v1/stream/user, since: \d+-\d"))
    await window.go("#/people", "Nothing here yet")
    await site_api.post(wido["id"], "a dhole")
    await expect(window.post("a dhole")).to_be_visible()


async def test_a_suspended_user_is_told_why_the_session_has_ended(site_api: Api, windows: Windows) -> None:
    user = await site_api.sign_up("wenzel")
    own = await logged_in(site_api, "wenzel", "own browser")
    window = await windows.open(None, "/")
    window.expects_refusals = True
    kept = json.loads(session(user, "", own["token"])) | {"refreshToken": own["refresh_token"]}
    await window.enter(json.dumps(kept), "/#/people")
    await expect(window.page.locator(".connection")).to_have_text("live")
    await site_api.done("PUT", f"/v1/admin/suspensions/{user['id']}", token=mint(site_api.admin, ADMIN))
    await expect(window.page.locator(".connection")).to_have_text("ended: This account is suspended.")
    await window.write("a word more")
    await expect(window.page.locator("main").get_by_role("alert")).to_have_text(
        "Your session has ended. This account is suspended."
    )
    await site_api.done("DELETE", f"/v1/admin/suspensions/{user['id']}", token=mint(site_api.admin, ADMIN))
