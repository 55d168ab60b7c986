"""Shared subscriptions: several workers read one subscription, and each event is for one of them."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.test_subscriptions import receive, seen, websocket
from tests.waiting import eventually

AUTHORS = 12


class Work:
    """A shared subscription of a user, and authors whose posts it has."""

    def __init__(self, api: Api, uid: str, authors: list[str]) -> None:
        self.api, self.uid, self.authors = api, uid, authors
        self.posted: list[str] = []

    async def put(self, parts: int = 8) -> None:
        body = {"parameters": {"follow": self.authors}, "parts": parts}
        await self.api.done("PUT", "/v1/subscriptions/work", token=mint(self.uid), json=body)

    async def post(self) -> list[str]:
        """Let each author post once. Return the ids."""
        new = [str((await self.api.post(author, "hello"))["id"]) for author in self.authors]
        self.posted += new
        return new

    async def read(self, worker: str | None = None) -> Consumer:
        return await self.api.stream(self.query(worker), uid=self.uid, framing="ndjson")

    def query(self, worker: str | None = None, **more: str) -> dict[str, str]:
        return {"subscription": "work", **({"worker": worker} if worker else {}), **more}

    async def kept(self) -> dict[str, Any]:
        found: dict[str, Any] = await self.api.done("GET", "/v1/subscriptions/work", token=mint(self.uid))
        return found

    async def holders(self) -> list[str | None]:
        return [part["worker"] for part in (await self.kept())["parts"]]

    async def counts(self) -> list[int]:
        """How many parts each worker holds, and last how many nobody holds."""
        held = Counter(await self.holders())
        free = held.pop(None, 0)
        return [*sorted(held.values(), reverse=True), *([free] if free else [])]

    async def ack(self, consumer: Consumer, cursor: str) -> None:
        body = {"cursor": cursor, "connection": consumer.messages[0]["connection"]}
        await self.api.done("POST", "/v1/subscriptions/work/ack", token=mint(self.uid), json=body)


@pytest.fixture
async def work(api: Api) -> Work:
    made = Work(api, await api.user(), [await api.user() for _ in range(AUTHORS)])
    await made.put()
    return made


def ids(consumers: Iterable[Consumer]) -> list[str]:
    return [one for consumer in consumers for one in seen(consumer.messages)]


def ended_by(consumer: Consumer) -> tuple[str, float | None]:
    last = consumer.messages[-1]
    return last["code"], last["retry_after"]


@asynccontextmanager
async def several(work: Work, *workers: str | None) -> AsyncIterator[list[Consumer]]:
    """Streams of workers that all hold their fair shares. Those that are closed while others come, come back."""
    open_ones: dict[int, Consumer] = {}
    try:
        for at, worker in enumerate(workers):
            before, were_open, fair = await work.holders(), {**open_ones}, divmod(8, at + 1)
            open_ones[at] = await work.read(worker)

            async def is_fair(
                low: int = fair[0], more: int = fair[1], count: int = at + 1,
                before: Sequence[str | None] = before, were_open: dict[int, Consumer] = were_open,
            ) -> bool:  # fmt: skip
                now = await work.holders()
                losers = {one for one, other in zip(before, now, strict=True) if one != other}
                for other, stream in [*open_ones.items()]:
                    if stream is were_open.get(other) and workers[other] in losers - {None}:
                        await stream.until_end()  # it still holds other parts, so they do not tell that it was closed
                    if stream.ended:
                        assert ended_by(stream) == ("rebalanced", 0.1)
                        open_ones[other] = await work.read(workers[other])
                return await work.counts() == [low + 1] * more + [low] * (count - more)

            await eventually(is_fair)
        yield [*open_ones.values()]
    finally:
        for stream in open_ones.values():
            await stream.close()


@pytest.mark.parametrize("names", [("a", "b", "c"), (None, None, None)])
async def test_each_event_reaches_one_worker_and_those_of_an_author_the_same(
    work: Work, names: tuple[str | None, ...]
) -> None:
    async with several(work, *names) as streams:
        assert await work.counts() == [3, 3, 2]
        for _ in range(2):
            await work.post()
        await eventually(lambda: len(ids(streams)) >= 2 * AUTHORS)
        assert sorted(ids(streams)) == sorted(work.posted)
        for stream in streams:
            mine = seen(stream.messages)
            assert mine == sorted(mine, key=int)
            authors = [event["status"]["uid"] for event in stream.events]
            assert set(Counter(authors).values()) <= {2}
        if names[0]:
            assert {part["worker"] for part in (await work.kept())["parts"]} == {*names}


async def test_what_a_dead_worker_had_not_acked_comes_again_and_nothing_else(work: Work) -> None:
    """The parts of both workers have cursors of their own. One worker then reads them all as one stream, in order."""
    async with several(work, "a", "b") as (first, second):
        await work.post()
        await eventually(lambda: len(ids([first, second])) == AUTHORS)
        await work.ack(first, first.cursor)
        await work.ack(second, second.events[0]["cursor"])
        rest = seen(second.messages)[1:]
        new = await work.post()
        await eventually(lambda: len(ids([first, second])) == 2 * AUTHORS)
    await eventually(lambda: is_free(work))
    async with await work.read("c") as last:
        await last.until(lambda c: len(c.events) >= len(rest) + AUTHORS)
        assert seen(last.messages) == [*rest, *new]
        await work.ack(last, last.cursor)
        assert {part["cursor"] for part in (await work.kept())["parts"]} == {last.cursor}
        assert (await work.kept())["behind"] == 0


async def is_free(work: Work) -> bool:
    return {*await work.holders()} == {None}


async def test_an_ack_of_a_connection_that_lost_parts_leaves_their_cursors(work: Work) -> None:
    """It handled their events too, but the worker that has them now gets them again: it cannot know."""
    async with await work.read("a") as first:
        await work.post()
        await first.until(lambda c: len(c.events) == AUTHORS)
        async with await work.read("b") as second:
            await first.until_end()
            assert ended_by(first) == ("rebalanced", 0.1)
            await work.ack(first, first.events[-1]["cursor"])
            parts = (await work.kept())["parts"]
            assert [part["cursor"] == first.events[-1]["cursor"] for part in parts] == [
                part["worker"] != "b" for part in parts
            ]
            async with await work.read("a") as third:
                await work.post()
                late = await work.api.call(
                    "POST", "/v1/subscriptions/work/ack", token=mint(work.uid),
                    json={"cursor": third.cursor, "connection": first.messages[0]["connection"]},
                )  # fmt: skip
                assert late.error == (409, "not_reading", "connection")
                await eventually(lambda: set(ids([second, third])) | set(work.posted[:AUTHORS]) == set(work.posted))
                assert set(seen(third.messages)).isdisjoint(work.posted[:AUTHORS])


async def test_a_websocket_acks_its_own_parts(work: Work) -> None:
    async with websocket(work.api, work.uid, work.query("a")) as socket:
        await work.post()
        messages = await receive(socket, AUTHORS)
        cursor = messages[-1]["cursor"]
        await socket.send_json({"op": "ack", "cursor": cursor})

        async def is_acked() -> bool:
            return {part["cursor"] for part in (await work.kept())["parts"]} == {cursor}

        await eventually(is_acked)


async def test_workers_that_poll_share_as_well(work: Work) -> None:
    """A worker is who says the same name. A poll that is sent again, with an old connection, acks nothing."""
    workers = {"a": work.query("a"), "b": work.query("b")}
    got: dict[str, list[str]] = {"a": [], "b": []}
    for query in workers.values():
        await work.api.poll(query, uid=work.uid)
    assert await work.counts() == [4, 4]
    await work.post()
    for _ in range(2):
        for one, query in workers.items():
            page = await work.api.poll(query, uid=work.uid)
            got[one] += seen(page["events"])
            workers[one] = work.query(one, cursor=page["cursor"], connection=page["connection"])
    assert sorted(got["a"] + got["b"]) == sorted(work.posted)
    await work.post()
    old = workers["a"]
    fresh = await work.api.poll(old, uid=work.uid)
    again = await work.api.call("GET", "/v1/events", token=mint(work.uid), params={**old, "wait": "0"})
    assert again.error == (409, "not_reading", "connection")
    assert seen((await work.api.poll(work.query("a"), uid=work.uid))["events"]) == seen(fresh["events"])


async def test_a_worker_that_waits_for_a_part_gets_one_when_another_leaves(api: Api) -> None:
    uid = await api.user()
    work = Work(api, uid, [uid])
    await work.put(1)
    first = await work.read("a")
    second = await work.read("b")
    await first.until(lambda c: c.messages)
    await work.post()
    await first.until(lambda c: c.events)
    await first.close()
    await second.until_end()
    assert ended_by(second) == ("rebalanced", 0.1)
    assert second.events == []
    async with await work.read("b") as third:
        await third.until(lambda c: c.events)
        assert seen(third.messages) == work.posted


async def test_a_wrong_request_is_refused_by_name(work: Work, subtests: pytest.Subtests) -> None:
    api, token = work.api, mint(work.uid)
    await api.done("PUT", "/v1/subscriptions/sole", token=token, json={"parameters": {"track": "tea"}})
    before = await work.kept()
    bad = [
        ("/v1/stream?subscription=work&worker=a+b", 400, "invalid_parameter", "worker"),
        ("/v1/stream?subscription=work&worker=", 400, "invalid_parameter", "worker"),
        ("/v1/stream?subscription=sole&worker=a", 400, "invalid_parameter", "worker"),
        ("/v1/stream?subscription=work&connection=c", 400, "conflicting_parameters", "connection"),
        ("/v1/stream?track=tea&worker=a", 400, "unknown_parameter", "worker"),
        ("/v1/events?subscription=work", 400, "missing_parameter", "worker"),
        (f"/v1/events?subscription=work&worker=a&cursor={before['cursor']}", 400, "missing_parameter", "connection"),
    ]
    for path, *refusal in bad:
        with subtests.test(path=path):
            assert (await api.call("GET", path, token=token)).error == tuple(refusal)
    puts = [({"parts": 9}, "parts"), ({"parts": 1}, "parts")]
    for body, param in puts:
        answer = await api.call(
            "PUT", "/v1/subscriptions/work", token=token, json={"parameters": {"track": "x"}, **body}
        )
        assert answer.error == (400, "invalid_parameter", param)
    nameless = await api.call("POST", "/v1/subscriptions/work/ack", token=token, json={"cursor": before["cursor"]})
    assert nameless.error == (400, "missing_parameter", "connection")
    async with api.session.head(
        "/v1/stream?subscription=work&worker=a", headers={"Authorization": f"Bearer {token}"}
    ) as head:
        assert head.status == 200
    after = await work.kept()
    assert after == {**before, "used": after["used"]}


async def test_a_deleted_subscription_ends_the_streams_of_all_its_workers(work: Work) -> None:
    async with several(work, "a", "b") as streams:
        await work.api.done("DELETE", "/v1/subscriptions/work", token=mint(work.uid))
        for stream in streams:
            await stream.until_end()
            assert ended_by(stream) == ("closed_by_user", None)
