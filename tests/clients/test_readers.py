"""The readers of the guide, in languages without a client library: as they stand there, at a server that is killed."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.clients.toolchains import BUILD_SECONDS, COMPILERS, Command, compiled
from tests.docs_examples import DOCUMENTED_ADDRESS, blocks
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server, restartable
from tests.end_to_end.test_subscription_consumers import consumer
from tests.program import ROOT
from tests.tiers import sample
from tests.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.extended, pytest.mark.timeout(2 * BUILD_SECONDS)]

PROGRAMS = {
    block.language: block.text
    for block in blocks(ROOT / "docs" / "guide" / "readers.md")
    if block.language in COMPILERS
}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """Start a server on a port that it keeps after a restart."""
    with restartable(tmp_path / "own") as server:
        yield server


def test_the_guide_has_a_reader_in_each_language() -> None:
    assert PROGRAMS.keys() == COMPILERS.keys()


LANGUAGES = sample(COMPILERS, lambda _: False, lambda language: language in {"csharp", "rust"})
"""Go compiles all of its libraries, and Java and Kotlin have slow compilers, so only ``--full`` waits for them."""


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_reader_loses_no_event_when_the_server_or_itself_is_killed(
    own: Server, tmp_path: Path, language: str
) -> None:
    """Each post is printed, in order. One comes twice only if the server or the reader was killed before its ack.

    What must not go on ends: it takes a minute to compile all readers, so this is tried here too.
    """
    text = PROGRAMS[language].replace(DOCUMENTED_ADDRESS, own.address)
    assert own.address in text
    run = await asyncio.to_thread(compiled, language, text, tmp_path)
    async with Api(own) as first:
        uid = await first.user()
        await first.done("PUT", "/v1/subscriptions/coffee", token=mint(uid), json={"parameters": {"follow": uid}})
        await _post(first, uid, range(3))
    async with consumer(run, uid) as before:
        await eventually(partial(before.__contains__, "coffee 2"))
        own.kill()
        own.start()
        async with Api(own) as second:
            await _post(second, uid, range(3, 6))
            await eventually(partial(before.__contains__, "coffee 5"))
            await eventually(partial(_is_acked, second, uid))
    async with Api(own) as third:
        await _post(third, uid, range(6, 9))
        async with consumer(run, uid) as after:
            await eventually(partial(after.__contains__, "coffee 8"))
            await eventually(partial(_is_acked, third, uid))
        await _check_that_it_ends(third, run)
    assert list(dict.fromkeys(before)) == [f"coffee {number}" for number in range(6)]
    assert before[-3:] == ["coffee 3", "coffee 4", "coffee 5"], "only what was read before the kill comes again"
    assert after == ["coffee 6", "coffee 7", "coffee 8"], "what was acked comes again"


async def _check_that_it_ends(api: Api, run: Command) -> None:
    """A reader ends when the server refuses it, and when another reader takes its subscription over."""
    uid = await api.user()
    assert await _exit_code(run, mint(uid)) not in {0, None}, "there is no such subscription"
    await api.done("PUT", "/v1/subscriptions/coffee", token=mint(uid), json={"parameters": {"follow": uid}})
    async with await api.stream({"subscription": "coffee"}, uid=uid) as first:
        reading = asyncio.create_task(_exit_code(run, mint(uid)))
        await first.until_end()
        assert first.messages[-1]["code"] == "taken_over", "by the first poll of the reader"
    async with await api.stream({"subscription": "coffee"}, uid=uid):
        assert await reading not in {0, None}


async def _exit_code(run: Command, token: str) -> int | None:
    process = await asyncio.create_subprocess_exec(*run, stdout=DEVNULL, stderr=PIPE, env={"TOKEN": token, "PATH": ""})
    try:
        _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert b"refused" in said or b"the server ends this" in said, said
        return process.returncode
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _post(api: Api, uid: str, numbers: range) -> None:
    for number in numbers:
        await api.post(uid, f"coffee {number}")


async def _is_acked(api: Api, uid: str) -> bool:
    found = await api.done("GET", "/v1/subscriptions/coffee", token=mint(uid))
    return bool(found["behind"] == 0)
