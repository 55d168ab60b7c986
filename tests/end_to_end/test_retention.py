"""The trimmed log: its effect on open streams, on cursors, and on clients that read it during a trim."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from stream_server.store import keys
from tests.command_line import COMMAND, running
from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import number
from tests.end_to_end.faults.clients import RawClient
from tests.end_to_end.server import Server, environment
from tests.waiting import eventually

pytestmark = pytest.mark.extended

OFTEN = ("--heartbeat-seconds", "0.2", "--ring-bytes", "0")

EVERYTHING = {"firehose": "true"}

Row = dict[str, Any]


class Site:
    def __init__(self, server: Server, api: Api, uid: str) -> None:
        self.server = server
        self.api = api
        self.uid = uid
        self.redis = server.redis_client()

    async def post(self, count: int, text: str = "hello") -> list[str]:
        made = [await self.api.post(self.uid, f"{text} {number}") for number in range(count)]
        return [status["id"] for status in made]

    def numbers(self) -> list[int]:
        return [int(fields[b"n"]) for _, fields in self.redis.xrange(keys.LOG)]


@asynccontextmanager
async def site(folder: Path, *flags: str) -> AsyncIterator[Site]:
    async with Server(folder, *OFTEN, *flags) as server, Api(server) as api:
        made = Site(server, api, await api.user())
        try:
            yield made
        finally:
            made.redis.close()


async def test_an_idle_server_whose_log_has_aged_out_goes_on(own_folder: Path) -> None:
    """Its streams stay open and the cursor of `hello` is valid.

    An old cursor gets a gap with the number of missing entries. The newest entry stays on the log, so that a client at
    the head has a position on the log. A restarted server continues after it, with its numbers and cursors.
    """
    async with site(own_folder, "--log-max-seconds", "1") as here:
        async with await here.api.stream(EVERYTHING) as early:
            posted = await here.post(300)
            await early.until(lambda c: len(c.events) == 300)
            await eventually(lambda: len(here.numbers()) < 100, what="the end of the old entries")
            left = here.numbers()
            assert left[-1] == 300
            async with await here.api.stream(EVERYTHING) as fresh:
                head = fresh.cursor
            assert number(head) == 300
            old = early.events[9]["cursor"]
            async with (
                await here.api.stream({**EVERYTHING, "since": head}) as resumed,
                await here.api.stream({**EVERYTHING, "since": old}) as behind,
            ):
                new = (await here.post(1, "after all that"))[0]
                for stream in (early, resumed, behind):
                    await stream.until(lambda c: c.events and c.events[-1]["status"]["id"] == new)
                    assert not stream.of("goodbye")
                assert (early.of("gap"), resumed.of("gap")) == ([], [])
                assert [event["status"]["id"] for event in resumed.events] == [new]
                (gap,) = behind.of("gap")
                assert (gap["from"], gap["reason"]) == (old, "trimmed")
                first = number(gap["to"]) + 1
                assert left[0] <= first <= here.numbers()[0]
                assert gap["count"] == first - 1 - 10
                assert [e["status"]["id"] for e in behind.events] == [*posted[first - 1 :], new]
        assert (await here.api.call("GET", "/readyz")).status == 200
        assert await here.api.metric("log_trimmed_total") >= 200
        assert await here.api.metric("log_number") == 301
        assert "rolled back" not in here.server.log
        here.server.kill()
    async with (
        Server(own_folder, *OFTEN, "--log-max-seconds", "1") as server,
        Api(server) as api,
        await api.stream({**EVERYTHING, "since": head}) as resumed,
    ):
        again = await api.post(api.admin, "after the restart")
        await resumed.until(lambda c: len(c.events) == 2)
        assert resumed.received == [("post", new), ("post", again["id"])]
        assert (resumed.of("gap"), number(resumed.cursor)) == ([], 302)


async def test_a_reader_whose_log_is_trimmed_gets_a_gap_with_the_count(own_folder: Path) -> None:
    """A client that catches up slowly gets each entry, or a gap with the right number. Then it goes live."""
    async with site(own_folder, "--message-max-chars", "20000") as here:
        start = await here.api.head()
        await asyncio.gather(*(here.post(80, "x" * 15_000) for _ in range(4)))
        async with await RawClient.connect(here.server.address, receive_bytes=4096) as slow:
            await slow.ask(f"/v1/stream?firehose=true&since={start}", mint(here.uid))
            came = await slow.read_until(b'"kind":"post"')
            assert here.redis.xtrim(keys.LOG, maxlen=50, approximate=False) == 270
            last = (await here.post(1, "the last one"))[0]
            came += await slow.read_until(b"the last one 0")
            came += await slow.read_until(b"\n")  # the last read may end within a row
        rows = [json.loads(line) for line in came.split(b"\n") if line.startswith(b"{") and line.endswith(b"}")]
        assert _accounted(rows) == list(range(1, 322))
        gaps = [row for row in rows if row["kind"] == "gap"]
        assert [(gap["reason"], number(gap["to"])) for gap in gaps] == [("trimmed", 270)]
        posts = [row for row in rows if row["kind"] == "post"]
        assert posts[-1]["status"]["id"] == last


def _accounted(rows: list[Row]) -> list[int]:
    """Return the numbers of the posts and of the entries that a gap announces as missing, in order."""
    numbers: list[int] = []
    for row in rows:
        if row["kind"] == "post":
            numbers.append(number(row["cursor"]))
        elif row["kind"] == "gap":
            missing = range(number(row["from"]) + 1, number(row["to"]) + 1)
            assert row["count"] == len(missing)
            numbers += missing
    return numbers


async def test_the_log_is_kept_within_its_bytes(own_folder: Path) -> None:
    """The log exceeds its limit for a few seconds at most. Its size is in the metrics."""
    bound = 200_000
    flags = ("--log-max-bytes", str(bound), "--message-max-chars", "20000")
    async with site(own_folder, *flags, "--workers", "2", "--job-workers", "0") as here:
        await here.post(60, "x" * 15_000)
        await eventually(lambda: here.redis.memory_usage(keys.LOG, samples=0) < bound + 40_000, what="a smaller log")
        # A trim goes on below the limit of this wait, so the test reads the log anew at each look at the metric.

        async def agree() -> bool:
            return set(await here.api.samples("log_entries")) == {len(here.numbers())}

        await eventually(agree, what="both workers measure the log as it is")
        left = here.numbers()
        assert left == list(range(left[0], 61))
        assert len(left) >= 3
        assert 0 < max(await here.api.samples("log_bytes")) < bound + 40_000
        assert 0 < max(await here.api.samples("log_age_seconds")) < 600


async def test_a_worker_without_a_server_trims_the_log(own_folder: Path, tmp_path: Path) -> None:
    """`stream-server worker` trims the log as servers do, by its own settings."""
    async with site(own_folder) as here:
        await here.post(200)
        command = (*COMMAND, "worker", "--data-dir", here.server.data, "--log-max-seconds", "0.001")
        with running(*command, folder=tmp_path / "worker", env=environment()) as worker:
            await asyncio.to_thread(worker.until, lambda: len(here.numbers()) < 100, 40.0)
            assert worker.interrupt() == 0
        assert await here.api.metric("log_trimmed_total") == 0
        assert here.numbers()[-1] == 200
