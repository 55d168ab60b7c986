"""Moderation in the console says what is true: of what waits to be sent, and of what the server would refuse."""

from playwright.async_api import expect

from tests.browser.windows import Windows, named_user
from tests.end_to_end.api import Api, mint
from tests.waiting import eventually

ADMIN = "read write stream admin"
NOBODY = "Nobody is suspended."


async def test_a_suspension_that_cannot_be_is_refused_at_the_field(site_api: Api, windows: Windows) -> None:
    """Oneself, who is suspended already, and who is not there. Nothing is told as done, and the field has the focus."""
    mara, nils = await named_user(site_api, "mara_m"), await named_user(site_api, "nils_m")
    window = await windows.open(mara, "/#/people/moderation/suspensions", scope=ADMIN)
    window.expects_refusals = True
    page = window.page
    field, problem = page.get_by_label("Username"), page.locator(".login-form").get_by_role("alert")
    suspend, notes = window.button("Suspend"), page.locator(".note")
    for login, words in (
        ("@Mara_M", "You cannot suspend yourself."),
        ("nobody_here", "There is no user @nobody_here, or the account is suspended or hides from you."),
    ):
        await field.fill(login)
        await suspend.click()
        await expect(problem).to_have_text(words)
        await expect(field).to_be_focused()
        await expect(notes).to_have_count(0)
    await field.fill("nils_m")
    await suspend.click()
    await expect(notes).to_have_count(1)
    await page.get_by_role("textbox", name="Note").fill("once more")
    await field.fill("nils_m")
    await suspend.click()
    await expect(problem).to_have_text("@nils_m is suspended already.")
    await expect(notes).to_have_count(1)
    await window.button("Undo").click()
    await expect(page.locator(".user-row").filter(has_text="@nils_m")).to_have_count(0)
    assert (await site_api.call("GET", "/v1/users/me", token=mint(nils["id"]))).status == 200


async def test_the_list_of_suspensions_has_what_waits(site_api: Api, windows: Windows) -> None:
    """While it can be undone, and on another visit of the page, too. Lifting it takes it back."""
    olaf, petra = await named_user(site_api, "olaf_m"), await named_user(site_api, "petra_m")
    window = await windows.open(olaf, "/#/people/moderation/suspensions", scope=ADMIN)
    page, nobody = window.page, window.page.get_by_text(NOBODY)
    row = page.locator(".user-row").filter(has_text="@petra_m")
    field = page.get_by_label("Username")
    await field.fill("petra_m")
    await page.get_by_role("textbox", name="Note").fill("sells pills")
    await window.button("Suspend").click()
    await expect(row).to_contain_text("by @olaf_m: sells pills")
    await expect(nobody).to_be_hidden()
    await window.go("#/people/moderation/audit", "Audit")
    await window.go("#/people/moderation/suspensions", "@petra_m")
    await expect(row).to_contain_text("by @olaf_m: sells pills")
    await expect(nobody).to_be_hidden()
    assert (await site_api.call("GET", "/v1/users/me", token=mint(petra["id"]))).status == 200
    await row.get_by_role("button", name="Lift").click()
    await expect(row).to_have_count(0)
    await expect(page.locator(".note")).to_have_count(0)
    await field.fill("petra_m")
    await window.button("Suspend").click()
    await window.button("Dismiss").click()

    async def is_suspended() -> bool:
        return (await site_api.call("GET", "/v1/users/me", token=mint(petra["id"]))).status == 403

    await eventually(is_suspended)
    await expect(row).to_be_visible()
    await site_api.done("DELETE", f"/v1/admin/suspensions/{petra['id']}", token=mint(olaf["id"], ADMIN))


async def test_a_report_that_waits_stands_among_the_decided(site_api: Api, windows: Windows) -> None:
    """Until it is undone. Administrators are not offered to suspend themselves."""
    rosa, sven = await named_user(site_api, "rosa_m"), await named_user(site_api, "sven_m")
    body = {"user": rosa["id"], "reason": "abuse", "note": "rosa_m does abuse"}
    await site_api.done("POST", "/v1/reports", token=mint(sven["id"]), json=body)
    window = await windows.open(rosa, "/#/people/moderation", scope=ADMIN)
    report = window.page.get_by_role("article").filter(has_text="rosa_m does abuse")
    await expect(report.get_by_role("button")).to_have_text(["Dismiss"])
    await report.get_by_label("Note of the decision").fill("no harm")
    await report.get_by_role("button", name="Dismiss").click()
    await expect(report).to_be_hidden()
    await window.button("Decided").click()
    await expect(report).to_contain_text("by @rosa_m: no harm")
    await window.button("Undo").click()
    await expect(report).to_have_count(0)
    await window.button("Open").click()
    await expect(report.get_by_role("button")).to_have_text(["Dismiss"])
    await report.get_by_role("button", name="Dismiss").click()
    await window.button("Dismiss").last.click()  # the note
    await window.button("Decided").click()
    await expect(report).to_contain_text("dismissed")


async def test_a_suspension_by_a_report_is_in_the_list_once_it_is_done(site_api: Api, windows: Windows) -> None:
    """Of a page that was opened before."""
    ute, vito = await named_user(site_api, "ute_m"), await named_user(site_api, "vito_m")
    body = {"user": vito["id"], "reason": "spam", "note": "vito_m sells"}
    await site_api.done("POST", "/v1/reports", token=mint(ute["id"]), json=body)
    window = await windows.open(ute, "/#/people/moderation", scope=ADMIN)
    report = window.page.get_by_role("article").filter(has_text="vito_m sells")
    await report.get_by_role("button", name="Suspend user").click()
    await window.page.get_by_role("link", name="Suspensions").click()
    await expect(window.page.locator(".feed-list")).to_have_attribute("aria-busy", "false")
    await window.button("Dismiss").click()  # the note
    await expect(window.page.locator(".user-row").filter(has_text="@vito_m")).to_be_visible()


async def test_no_list_says_that_nobody_is_there_while_somebody_is_added(site_api: Api, windows: Windows) -> None:
    """A block that waits is told as done."""
    tilda, udo = await named_user(site_api, "tilda_m"), await named_user(site_api, "udo_m")
    window = await windows.open(tilda, f"/#/people/@{udo['login']}")
    await window.page.locator(".profile .menu summary").click()
    await window.button("Block").click()
    await expect(window.page.locator(".note")).to_contain_text("@udo_m is blocked")
    await window.go("#/people/privacy/blocked", "the users whom you block")
    await expect(window.page.locator(".feed-list")).to_have_attribute("aria-busy", "false")
    await expect(window.page.locator("main")).not_to_contain_text("You have blocked nobody.")
    await window.button("Undo").click()
    await window.go("#/people/privacy/muted", "You have muted nobody.")
