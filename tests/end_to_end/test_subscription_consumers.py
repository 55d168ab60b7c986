"""The consumers of the guide, as they are written there: each handles every post, also if it is killed."""

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from tests.docs_examples import DOCUMENTED_ADDRESS, blocks
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import ROOT
from tests.waiting import PATIENCE, eventually

PAGE = ROOT / "docs" / "guide" / "subscriptions.md"

WORKER = 'f"{socket.gethostname()}-{os.getpid()}"'
"""How the page names a worker."""


def program(language: str, marked: str = "") -> str:
    """The first program of the page in a language, which contains a text."""
    return next(block.text for block in blocks(PAGE) if block.language == language and marked in block.text)


def command(language: str, folder: Path, address: str, marked: str = "") -> list[str]:
    if language == "sh" and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    file = folder / "program"
    file.write_text(program(language, marked).replace(DOCUMENTED_ADDRESS, address), encoding="utf-8")
    return ["bash" if language == "sh" else sys.executable, str(file)]


@asynccontextmanager
async def consumer(command: list[str], uid: str) -> AsyncIterator[list[str]]:
    """Run the program, which is killed at the end of the block. Yield the lines that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TOKEN": mint(uid)}
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, env=environment, start_new_session=True)
    lines: list[str] = []

    async def read() -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            lines.append(line.decode().strip())  # noqa: PERF401 - it is looked at meanwhile

    reading = asyncio.create_task(read())
    try:
        yield lines
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()
        await asyncio.wait_for(reading, PATIENCE)


@pytest.mark.parametrize("language", ["python", "sh"])
async def test_a_consumer_that_is_killed_again_and_again_handles_each_post(
    api: Api, tmp_path: Path, language: str
) -> None:
    """What it printed and acked does not come again. What it had not acked comes again, in order."""
    uid = await api.user()
    run = command(language, tmp_path, api.server.address)
    await api.done("PUT", "/v1/subscriptions/coffee", token=mint(uid), json={"parameters": {"follow": uid}})
    if language == "python":  # its first act is to put its own filter
        await api.done("DELETE", "/v1/subscriptions/coffee", token=mint(uid))
        async with consumer(run, uid):
            await eventually(lambda: is_read(api, uid))
    handled: list[int] = []
    for round_number in range(3):
        expected = [round_number * 5 + at for at in range(5)]
        for number in expected:
            await api.post(uid, f"coffee {number}")
        async with consumer(run, uid) as lines:
            await eventually(partial(lines.__contains__, f"coffee {expected[-1]}"))
            if round_number == 1:
                await eventually(lambda: is_acked(api, uid))
        numbers = [int(line.removeprefix("coffee ")) for line in lines]
        assert numbers == list(range(numbers[0], expected[-1] + 1)), "in order, without a hole"
        assert numbers[0] <= expected[0]
        if round_number == 2:
            assert numbers[0] >= 9, "what was acked comes again"
        handled += numbers
    assert set(handled) == set(range(15))


@pytest.mark.extended
async def test_workers_that_are_killed_and_come_back_handle_each_post_together(api: Api, tmp_path: Path) -> None:
    """While three of them read, each has a share. What the dead one had not acked, the others handle."""
    uid = await api.user()
    authors = [await api.user() for _ in range(9)]
    put = {"parameters": {"follow": authors}, "parts": 8}  # the filter of the page would find posts of other tests
    await api.done("PUT", "/v1/subscriptions/crowd", token=mint(uid), json=put)
    sent: list[str] = []

    def worker(name: str) -> AbstractAsyncContextManager[list[str]]:
        """A process with the program of the page, as if on a machine with this name."""
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        run = command("python", folder, api.server.address, "crowd")
        text = Path(run[-1]).read_text(encoding="utf-8")
        assert WORKER in text
        changed = text.replace('track="coffee"', f"follow={authors!r}").replace(WORKER, repr(name))
        Path(run[-1]).write_text(changed, encoding="utf-8")
        return consumer(run, uid)

    async def post() -> None:
        sent.extend(f"coffee {len(sent) + at}" for at in range(len(authors)))
        for author, text in zip(authors, sent[-len(authors) :], strict=True):
            await api.post(author, text)

    async with worker("one") as one, worker("two") as two:
        await eventually(lambda: has_workers(api, uid, {"one", "two"}))
        async with worker("three") as three:
            await eventually(lambda: has_workers(api, uid, {"one", "two", "three"}))
            await post()
            await eventually(lambda: {*one, *two, *three} == {*sent})
        await post()
        await eventually(lambda: {*one, *two, *three} == {*sent})
    assert sum(map(bool, (one, two, three))) > 1


async def has_workers(api: Api, uid: str, names: set[str]) -> bool:
    found = await api.done("GET", "/v1/subscriptions/crowd", token=mint(uid))
    return {part["worker"] for part in found["parts"]} == names


async def is_read(api: Api, uid: str) -> bool:
    streams = await api.done("GET", "/v1/streams", token=mint(uid))
    return any(stream["parameters"] == "subscription=coffee" for stream in streams["streams"])


async def is_acked(api: Api, uid: str) -> bool:
    """Whether all but the last post is acked: that one is only when the next event has been asked for."""
    found = await api.done("GET", "/v1/subscriptions/coffee", token=mint(uid))
    return bool(found["behind"] <= 1)


@pytest.mark.parametrize(
    ("readme", "language"), [("README.md", "python"), ("clients/javascript/README.md", "text")], ids=["python", "js"]
)
def test_the_readme_of_a_client_has_the_program_of_the_guide(readme: str, language: str) -> None:
    """So what is tried for the guide holds for both."""
    assert program(language) in {block.text for block in blocks(ROOT / readme)}


def test_the_programs_have_no_file_and_twelve_lines() -> None:
    assert len(program("python").strip().splitlines()) <= 12
    assert len(program("text").strip().splitlines()) <= 12
    assert "open(" not in program("python")
