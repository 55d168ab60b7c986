"""One process of a host hears Redis for all workers. It may die or stand still, and nothing is lost."""

import os
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.consumer import Consumer
from tests.end_to_end.faults.author import Author, in_log_order
from tests.end_to_end.faults.site import Site, all_until, close, site
from tests.processes import alive, children
from tests.waiting import eventually

pytestmark = pytest.mark.extended


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Site]:
    async with site(tmp_path, "two workers", direct=True) as made:
        yield made


def relays(host: Site) -> list[int]:
    """Return the process id of the relay."""
    head = host.servers[0].process
    assert head is not None
    return [one for one in children(head.pid) if b"--relay" in Path(f"/proc/{one}/cmdline").read_bytes()]


def subscribers(host: Site) -> int:
    with host.redis.client() as client:
        return len(client.client_list(_type="pubsub"))


async def only_the_relay_hears(host: Site) -> None:
    await eventually(lambda: subscribers(host) == 1, seconds=60, what="one subscriber")


def has(cursor: str, stream: Consumer) -> bool:
    return any(message["cursor"] == cursor for message in stream.messages)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_relay_that_dies_or_stands_still_under_load_loses_nothing(host: Site, number: signal.Signals) -> None:
    """The workers hear for themselves meanwhile. Then a new relay hears for them again."""
    await only_the_relay_hears(host)
    authors = [Author(await host.apis[0].user(), *host.apis) for _ in range(2)]
    streams = await host.streams(*(author.uid for author in authors))
    async with authors[0], authors[1]:
        await authors[0].has_posted(20)
        (relay,) = relays(host)
        os.kill(relay, number)
        await eventually(lambda: subscribers(host) >= 2, seconds=60, what="workers that hear for themselves")
        await authors[0].has_posted(20)
        await eventually(lambda: not alive(relay), seconds=60, what="the end of the relay")
        await eventually(lambda: relays(host), seconds=60, what="another relay")
        await only_the_relay_hears(host)
        await authors[0].has_posted(20)
    await all_until(streams, partial(has, host.head()))
    for stream in streams:
        assert stream.received == in_log_order(authors)
    await close(streams)
