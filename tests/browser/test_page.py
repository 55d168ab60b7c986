"""The example's page as a person uses it: log in, listen, and miss nothing while the server is away."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import served
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server, restartable

pytestmark = pytest.mark.extended

PASSWORD = "correct horse"  # of those who sign up by the front door


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """Start a server with short-lived tokens, on a port that it keeps after a restart."""
    with restartable(tmp_path / "own", "--token-ttl-seconds", "3", "--heartbeat-seconds", "0.2") as server:
        yield server


async def listen(tab: Page, address: str, login: str, track: str) -> None:
    await tab.goto(address)
    await tab.fill("[name=login]", login)
    await tab.fill("[name=password]", PASSWORD)
    await tab.fill("[name=track]", track)
    await tab.click("button")
    await expect(tab.get_by_role("status")).to_have_text("listening")


async def test_it_shows_what_is_posted(api: Api, site: str, tab: Page) -> None:
    """The page shows each post as text, whatever its characters, and removes deleted posts."""
    ann = await api.sign_up("ann")
    await listen(tab, site, "ann", "page")
    gone = await api.post(ann["id"], "page one")
    await api.post(ann["id"], "page <img src=x onerror=alert(1)>")
    await expect(tab.locator("li")).to_have_text(["@ann: page one", "@ann: page <img src=x onerror=alert(1)>"])
    assert await tab.locator("li img").count() == 0
    await api.delete(ann["id"], gone["id"])
    await expect(tab.locator("li")).to_have_count(1)


async def test_it_goes_on_with_another_ticket(own: Server, tmp_path: Path, tab: Page) -> None:
    """The server is killed and tokens expire. The page still shows each post once and in order."""
    with served(own, tmp_path / "site") as address:
        async with Api(own) as api:
            ann = await api.sign_up("ann")
            await listen(tab, address, "ann", "page")
            await api.post(ann["id"], "page one")
            await expect(tab.locator("li")).to_have_count(1)
            own.kill()
            await expect(tab.get_by_role("status")).to_have_text("lost the connection")
            own.start()
            await api.post(ann["id"], "page two")
            await expect(tab.locator("li")).to_have_count(2)
            async with tab.expect_response(lambda answer: "/v1/sessions" in answer.url):
                pass  # the token has ended, and the page has got another
            await expect(tab.get_by_role("status")).to_have_text("listening")
            await api.post(ann["id"], "page three")
            await expect(tab.locator("li")).to_have_text(["@ann: page one", "@ann: page two", "@ann: page three"])


async def test_a_wrong_password_is_not_a_lost_connection(api: Api, site: str, tab: Page) -> None:
    """A wrong password is not reported as a lost connection."""
    await tab.goto(site)
    for name in ("login", "password", "track"):
        await tab.fill(f"[name={name}]", "nobody")
    await tab.click("button")
    await expect(tab.get_by_role("status")).to_have_text("log in again")
