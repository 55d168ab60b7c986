"""Takes the pictures of the console: ``python docs/screenshots.py [FOLDER]``. It needs Chromium and Pillow.

It starts a demo server, opens the printed link, and writes into ``docs/images`` (or FOLDER) one picture of each view in
light and dark and on a phone, and an animation of the view Streams. Everything shown comes from a running server.
"""

import asyncio
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image
from playwright.async_api import Browser, Locator, Page, async_playwright

IMAGES = Path(__file__).parent / "images"
LINK = re.compile(r"Open this in a browser: (\S+)")
WARM_UP_SECONDS = 45.0  # until plots and columns have something to show

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
WEBP = {"quality": 80, "method": 6}

FRAMES, FRAME_SECONDS = 80, 0.25  # of the animation: twenty seconds
ANIMATION = {"viewport": {"width": 1120, "height": 640}, "color_scheme": "light"}


class View(NamedTuple):
    """A view to picture: its name, its address, and what a person does there before the picture."""

    name: str
    hash: str
    prepare: Callable[[Page], Awaitable[None]] | None = None


async def _look_back(page: Page) -> None:
    """Choose a time on the chart of the last column's rule."""
    column = page.locator(".column").last
    await column.locator(".column-head summary").click()
    await column.get_by_role("button", name="Look back").click()
    await column.locator(".brush").wait_for()
    await page.wait_for_timeout(1500)
    await _drag(page, column.locator(".brush"), ((0.88, 0.5), (0.985, 0.5)))
    await column.locator(".post").first.wait_for()


async def _write_rule(page: Page) -> None:
    """Save two rules, and begin a third with its completions open."""
    field = page.get_by_label("Rule", exact=True)
    for rule, tag in (("coffee lang:en has:hashtags", "drinks"), ('"good morning" OR #redis', "mornings")):
        saved = page.get_by_role("listitem").filter(has_text=rule)
        if await saved.count():
            continue  # it was saved for the picture before
        await field.fill(rule)
        await page.get_by_label("Tag, which").fill(tag)
        await page.get_by_role("button", name="Save the rule").click()
        await saved.wait_for()
    await field.press_sequentially("tea -has:", delay=20)


async def _open_why(page: Page) -> None:
    """Show why the first post of the last column matched."""
    await page.locator(".column").last.get_by_role("button", name="Why").first.click()


async def _open_builder(page: Page) -> None:
    """Fill the window that builds a filter, draw a box, and try the past hour."""
    await page.keyboard.press("c")
    await page.keyboard.type("coffee,#redis,", delay=15)
    await _draw_box(page)
    await page.get_by_role("button", name="Try the past hour").click()
    await page.locator(".trial .post").first.wait_for()
    await page.get_by_role("application").evaluate("map => map.scrollIntoView()")  # the page has scrolled to the posts


async def _draw_box(page: Page) -> None:
    await _drag(page, page.get_by_role("application"), ((0.40, 0.18), (0.62, 0.62)))


async def _drag(page: Page, area: Locator, shares: Sequence[tuple[float, float]]) -> None:
    """Drag over an area, between two places that are given as shares of its size."""
    await area.scroll_into_view_if_needed()
    place = await area.bounding_box()
    assert place is not None
    at = [(place["x"] + place["width"] * x, place["y"] + place["height"] * y) for x, y in shares]
    await page.mouse.move(*at[0])
    await page.mouse.down()
    await page.mouse.move(*at[1], steps=12)
    await page.mouse.up()


VIEWS = (
    View("streams", "#/streams", _open_why),
    View("look-back", "#/streams", _look_back),
    View("builder", "#/streams", _open_builder),
    View("people", "#/people"),
    View("rules", "#/people/rules", _write_rule),
    View("operations", "#/operations"),
)
LOOKS = (("light", DESKTOP), ("dark", DESKTOP), ("phone", PHONE))


async def main(folder: Path) -> None:
    """Take all pictures and the animation."""
    async with _demo() as link, _chromium() as browser:
        state = await _sign_in(browser, link)
        address = link.partition("#")[0]
        for look, options in LOOKS:
            await _picture_views(browser, address, {**options, "storage_state": state}, look, folder)
        await _animate(browser, address, {**ANIMATION, "storage_state": state}, folder / "console.webp")


@asynccontextmanager
async def _demo() -> AsyncIterator[str]:
    """Run a demo server, and yield its link when it has posted for a while."""
    with tempfile.TemporaryDirectory() as folder:
        command = ("-m", "stream_server", "serve", "--demo", "--port", "0", "--data-dir", f"{folder}/data")
        server = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
        assert server.stdout is not None
        try:
            while (found := LINK.search((await server.stdout.readline()).decode())) is None:
                pass
            await asyncio.sleep(WARM_UP_SECONDS)
            yield found[1]
        finally:
            server.terminate()
            await server.communicate()


@asynccontextmanager
async def _chromium() -> AsyncIterator[Browser]:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    flags = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path, args=flags)
        try:
            yield browser
        finally:
            await browser.close()


async def _sign_in(browser: Browser, link: str) -> Any:
    """Open the link, which works once, and return the storage of the page. It signs the other tabs in."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(link)
    await page.locator(".column .post").first.wait_for()
    state = await context.storage_state()
    await context.close()
    return state


async def _picture_views(browser: Browser, address: str, options: dict[str, Any], look: str, folder: Path) -> None:
    context = await browser.new_context(**options, color_scheme="light" if look == "light" else "dark")
    page = await context.new_page()
    for view in VIEWS:
        await page.goto(f"about:blank#{view.name}")
        await page.goto(f"{address}{view.hash}")
        await page.wait_for_timeout(8000)  # plots need some seconds of events
        if view.prepare is not None:
            await view.prepare(page)
            await page.wait_for_timeout(500)
        _save(await page.screenshot(), folder / f"{view.name}-{look}.webp")
    await page.goto(f"{address}docs")
    await page.wait_for_timeout(1500)
    _save(await page.screenshot(), folder / f"docs-{look}.webp")
    await context.close()


def _save(png: bytes, path: Path) -> None:
    Image.open(io.BytesIO(png)).convert("RGB").save(path, **WEBP)


async def _animate(browser: Browser, address: str, options: dict[str, Any], path: Path) -> None:
    """Film a user who adds a column and posts into it. The file leaves out equal frames, so it stays small."""
    context = await browser.new_context(**options)
    page = await context.new_page()
    await page.goto(f"{address}#/streams")
    await page.wait_for_timeout(3000)
    frames: list[bytes] = []
    acting = asyncio.create_task(_act(page))
    for _ in range(FRAMES):
        started = asyncio.get_running_loop().time()
        frames.append(await page.screenshot())
        await asyncio.sleep(max(0.0, FRAME_SECONDS - (asyncio.get_running_loop().time() - started)))
    await acting
    await context.close()
    first, *others = [Image.open(io.BytesIO(frame)).convert("RGB") for frame in frames]
    first.save(
        path, save_all=True, append_images=others, duration=int(FRAME_SECONDS * 1000), loop=0, quality=62, method=4,
        minimize_size=True,
    )  # fmt: skip


async def _act(page: Page) -> None:
    await page.wait_for_timeout(1500)
    await page.keyboard.press("c")
    await page.wait_for_timeout(500)
    await page.keyboard.type("greenhouse,tea,", delay=70)
    await _draw_box(page)
    await page.wait_for_timeout(900)
    await page.get_by_role("button", name=re.compile("^Remove the box")).click()
    await page.get_by_role("button", name="Try the past hour").click()
    await page.wait_for_timeout(900)
    await page.get_by_role("button", name="Add column").click()
    await page.wait_for_timeout(900)
    await page.keyboard.press("n")
    await page.wait_for_timeout(400)
    await page.keyboard.type("Hello from the #greenhouse, tea is ready", delay=45)
    await page.get_by_role("dialog").get_by_role("button", name="Post", exact=True).click()
    await page.wait_for_timeout(1200)
    await page.locator(".column").last.get_by_role("button", name="Why").first.click()


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(target))
    for picture in sorted(target.glob("*.webp")):
        print(f"{picture.name} {picture.stat().st_size // 1024} KiB")  # noqa: T201 - a person runs this
