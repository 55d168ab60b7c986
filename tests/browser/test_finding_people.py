"""The field that finds people while one types, and the people who are suggested to somebody who follows nobody."""

import pytest
from playwright.async_api import expect

from tests.browser.windows import Windows, named_user
from tests.end_to_end.api import Api, mint
from tests.waiting import eventually

pytestmark = pytest.mark.extended


async def test_people_are_suggested_while_one_types(site_api: Api, windows: Windows) -> None:
    """Arrows choose and Enter goes; Escape closes; a click goes; without a choice Enter goes to the first."""
    quinn, zoe = await named_user(site_api, "quinn", "Quinn"), await named_user(site_api, "qz_zoe", "Zoëlle Quist")
    window = await windows.open(quinn, "/#/people")
    field, found = window.page.get_by_role("combobox", name="Find a user"), window.page.locator("#people-found li")
    await field.fill("QUI")
    await expect(found).to_have_count(2)
    await expect(field).to_have_attribute("aria-expanded", "true")
    assert await window.faults() == []
    await field.press("ArrowDown")
    await field.press("ArrowUp")
    await expect(found.and_(window.page.locator("[aria-selected=true]"))).to_have_count(0)
    await field.press("ArrowUp")
    await expect(found.last).to_have_attribute("aria-selected", "true")
    assert await field.get_attribute("aria-activedescendant") == await found.last.get_attribute("id")
    await field.press("Escape")
    await expect(found.first).to_be_hidden()
    await expect(field).to_have_attribute("aria-expanded", "false")
    await expect(field).to_be_focused()
    for act in ("Enter", "click"):
        await window.go("#/people/mentions", "Nobody has mentioned you")
        await field.fill("zoelle")
        await expect(found).to_have_count(1)
        await expect(found).to_contain_text("@qz_zoe")
        if act == "Enter":
            await field.press("ArrowDown")
            await field.press("Enter")
        else:
            await found.click()
        await expect(window.page.get_by_role("heading", name=zoe["name"])).to_be_visible()
        await expect(found.first).to_be_hidden()
    await field.fill("nobodywhatever")
    await expect(window.page.get_by_text("Nobody whose username")).to_be_visible()
    await field.press("Enter")
    await expect(window.page.get_by_role("heading", name="Zoëlle Quist")).to_be_visible()
    for text, title in (("#zoetrope", "#zoetrope"), ("@quinn", "Quinn"), ("qz", "Zoëlle Quist"), ("quin", "Quinn")):
        await field.fill(text)
        await field.press("Enter")
        await expect(window.page.get_by_role("heading", name=title)).to_be_visible()
    await window.follow(window.page.url.partition("#")[0] + "#/streams")
    await window.page.keyboard.press("c")
    await window.page.get_by_role("combobox", name="People", exact=True).fill("zoel")
    await expect(window.page.locator("datalist option[value='qz_zoe · Zoëlle Quist']")).to_have_count(1)


async def test_somebody_who_follows_nobody_is_shown_people(site_api: Api, windows: Windows) -> None:
    """A follow can be undone until it is sent, and goes with its row. Who follows somebody is shown nobody."""
    rolf, sena = await named_user(site_api, "rolf", "Rolf"), await named_user(site_api, "sena", "Sena")
    await site_api.post(sena["id"], "I write")
    for login in ("sena_s_one", "sena_s_two"):  # else people of other tests come before her
        await site_api.follow((await named_user(site_api, login))["id"], sena["id"])
    window = await windows.open(rolf, "/#/people")
    row = window.page.locator(".to-follow .user-row", has_text="@sena")
    await expect(row).to_be_visible()
    assert await window.faults() == []
    await window.button("Follow @sena").click()
    await expect(row).to_be_hidden()
    await window.button("Undo").click()
    await expect(row).to_be_visible()
    assert (await site_api.done("GET", f"/v1/users/{rolf['id']}/following", token=mint(rolf["id"])))["users"] == []
    await window.button("Follow @sena").click()
    await window.button("Dismiss").click()

    async def follows() -> bool:
        found = (await site_api.done("GET", f"/v1/users/{rolf['id']}/following", token=mint(rolf["id"])))["users"]
        return [user["login"] for user in found] == ["sena"]

    await eventually(follows, what="the follow is sent")
    await expect(window.post("I write")).to_have_count(1)
    asked = list[str]()
    window.page.on("request", lambda request: asked.append(request.url))
    await window.go("#/people/mentions", "Nobody has mentioned you")
    await window.go("#/people", "I write")
    await expect(window.page.locator(".to-follow .user-row")).to_have_count(0)
    assert not any("suggested" in url for url in asked)


async def test_an_input_method_is_not_asked_about_halfway(site_api: Api, windows: Windows) -> None:
    """Nobody is told to be missing of whom one has written half a name."""
    rika = await named_user(site_api, "rika", "山田 理香")
    window = await windows.open(rika, "/#/people")
    asked: list[str] = []
    window.page.on("request", lambda request: asked.append(request.url))
    await window.page.get_by_role("combobox", name="Find a user").focus()
    keyboard = await window.page.context.new_cdp_session(window.page)
    for text in ("や", "やまd"):
        composed = {"text": text, "selectionStart": len(text), "selectionEnd": len(text)}
        await keyboard.send("Input.imeSetComposition", composed)
    await window.page.evaluate("new Promise(resolve => setTimeout(resolve, 400))")  # a timer behind that of the field
    await keyboard.send("Input.insertText", {"text": "山田"})
    await expect(window.page.locator("#people-found li")).to_contain_text("@rika")
    assert len([url for url in asked if "/users/search" in url]) == 1
