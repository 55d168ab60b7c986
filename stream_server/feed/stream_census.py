"""All open streams of all server processes, for an operator: the largest first, a page at a time. And the end of any.

The process that is asked asks all others, on the channel by which the streams of a user are found. Each answers with
its own page, and the pages are merged. So the numbers are those of the moment, and nothing is kept for them.
"""

import asyncio
import logging
import math
import secrets
import time
from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import Literal, NamedTuple

import msgspec

from stream_server.errors import ApiError, InvalidCursor
from stream_server.feed.stream_description import StreamDescription, describe_stream, entries_behind
from stream_server.feed.stream_sums import MAX_SUMS, SumOrder, SumTable, UserSum
from stream_server.hub.client import Client
from stream_server.hub.hub import Hub
from stream_server.store.social.open_streams import ANSWER_SECONDS, CensusQuestion, OpenStreams

logger = logging.getLogger(__name__)

SLICE_CLIENTS = 1000
"""Clients that are looked at in one iteration of the event loop, about 1 ms."""

Order = Literal["behind", "buffer", "delivered", "opened"]


class StreamRow(StreamDescription):
    """One open stream of any process. ``rank`` is its value in the order that was asked for, ``framing`` a name."""

    rank: float
    uid: str
    reader: str
    process: str
    worker: int
    framing: str
    buffer_bytes: int


class CensusAnswer(msgspec.Struct):
    """The answer of one process: how many streams it has that are asked for, and the first of them or their sums."""

    total: int
    rows: list[StreamRow]
    sums: list[UserSum] = []


class CensusPage(NamedTuple):
    """A page of open streams.

    Attributes:
        rows: The streams, in the order that was asked for.
        next: Where the next page begins. None at the end.
        total: The number of streams on all pages.
        complete: Whether all processes have answered in time.
    """

    rows: list[StreamRow]
    next: str | None
    total: int
    complete: bool


class StreamCensus:
    """Lists the open streams of all processes, and finds one of them."""

    def __init__(self, hub: Hub, streams: OpenStreams, process: str, worker: int) -> None:
        """``process`` is the id of this process in the table of open streams, ``worker`` its number on this machine."""
        self._hub = hub
        self._streams = streams
        self._process = process
        self._worker = worker

    async def read_page(
        self, order: Order, count: int, before: str | None = None, user: str | None = None
    ) -> CensusPage:
        """Return a page of at most ``count`` streams, the largest or newest first, of one user or of all.

        ``before`` is the ``next`` of another page. Numbers change between two pages, so a stream whose rank has changed
        may stand on both or on none. Raises InvalidCursor for another text.
        """
        place = None if before is None else _parse_place(before)
        answers, complete = await self._ask_all(CensusQuestion(order, count + 1, "", before=place, user=user))
        rows = nlargest(count + 1, (row for answer in answers for row in answer.rows), key=_place_of)
        page = rows[:count]
        following = "{!r}~{}".format(*_place_of(page[-1])) if len(rows) > count else None
        return CensusPage(page, following, sum(answer.total for answer in answers), complete)

    async def read_sums(
        self, order: SumOrder, count: int, user: str | None = None
    ) -> tuple[list[UserSum], int, bool]:
        """Return the sums of at most ``count`` users, the largest first, or of one user.

        And the number of their streams, and whether all processes have answered in time.
        """
        answers, complete = await self._ask_all(CensusQuestion(order, MAX_SUMS, "", sums=True, user=user))
        table = SumTable()
        for answer in answers:
            table.add(answer.sums)
        return table.largest(order, count), sum(answer.total for answer in answers), complete

    async def find(self, connection: str) -> StreamRow | None:
        """Return the stream with this id, in whichever process it is. None if no process tells of it in time."""
        answers, _ = await self._ask_all(CensusQuestion("opened", 1, "", connection=connection))
        return next((row for answer in answers for row in answer.rows), None)

    async def answer(self, question: CensusQuestion) -> None:
        """Answer the question of another process."""
        try:
            await self._streams.answer(question, [msgspec.json.encode(await self._count_own(question))])
        except ApiError as error:
            logger.debug("a list of streams was not answered: %s", error.message)

    async def _ask_all(self, question: CensusQuestion) -> tuple[list[CensusAnswer], bool]:
        """Return the answers of this process and the others, and whether all have answered.

        Without Redis, only this process can answer. The operator may want to know just then.
        """
        question.answers = f"all}}{self._process}-{secrets.token_hex(6)}"
        found: list[bytes] = []
        try:
            others = await self._streams.living_processes(self._hub.now_ms()) - {self._process}
            if others:
                await self._streams.ask(question)
            own = await self._count_own(question)
            deadline = time.monotonic() + ANSWER_SECONDS
            while len(found) < len(others) and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
                found = await self._streams.read_answers(question)
        except ApiError:
            return [await self._count_own(question)], False
        return [own, *(msgspec.json.decode(each, type=CensusAnswer) for each in found)], len(found) >= len(others)

    async def _count_own(self, question: CensusQuestion) -> CensusAnswer:
        """Return the answer of this process. It looks at all its clients, a slice in each iteration of the loop."""
        if question.sums:
            return await self._sum_own(question)
        clients = self._clients_of(question)
        first: list[tuple[float, str, Client]] = []
        total = 0
        for start in range(0, len(clients), SLICE_CLIENTS):
            ranked = list(self._rank(question, clients[start : start + SLICE_CLIENTS]))
            total += len(ranked)
            if question.before is not None:
                ranked = [one for one in ranked if one[:2] < question.before]
            first = nlargest(question.count, [*first, *ranked], key=lambda one: one[:2])
            await asyncio.sleep(0)
        return CensusAnswer(total, [self._describe(rank, client) for rank, _, client in first])

    def _clients_of(self, question: CensusQuestion) -> Sequence[Client]:
        registry, user = self._hub.registry, question.user
        return registry.list_clients() if user is None else registry.clients_of(user)

    async def _sum_own(self, question: CensusQuestion) -> CensusAnswer:
        clients, table, total = self._clients_of(question), SumTable(), 0
        for start in range(0, len(clients), SLICE_CLIENTS):
            head = self._hub.head
            rows = [
                UserSum(
                    each.user_id, "" if each.user_id else each.token.jti, 1, each.delivered,
                    entries_behind(each, head), _buffer_bytes(each),
                )
                for each in clients[start : start + SLICE_CLIENTS]
                if not each.is_poll and each.disconnect_reason is None
            ]  # fmt: skip
            total += len(rows)
            table.add(rows)
            await asyncio.sleep(0)
        return CensusAnswer(total, [], table.largest(question.order, question.count))

    def _rank(self, question: CensusQuestion, clients: Sequence[Client]) -> Iterator[tuple[float, str, Client]]:
        order, wanted, head = question.order, question.connection, self._hub.head
        for client in clients:
            if client.is_poll or client.disconnect_reason is not None:
                continue  # no bytes are written to it
            if wanted is not None and client.connection_id != wanted:
                continue
            if order == "opened":
                rank: float = client.opened_ms
            elif order == "delivered":
                rank = client.delivered
            else:
                rank = entries_behind(client, head) if order == "behind" else _buffer_bytes(client)
            yield rank, client.connection_id, client

    def _describe(self, rank: float, client: Client) -> StreamRow:
        return StreamRow(
            **msgspec.structs.asdict(describe_stream(client, self._hub.head)), rank=rank, uid=client.user_id,
            reader="" if client.user_id else client.token.jti, process=self._process, worker=self._worker,
            framing=client.framing.name, buffer_bytes=_buffer_bytes(client),
        )  # fmt: skip


def _buffer_bytes(client: Client) -> int:
    try:
        return int(client.buffered_bytes())
    except RuntimeError:
        return 0  # its transport is closed


def _place_of(row: StreamRow) -> tuple[float, str]:
    return row.rank, row.connection


def _parse_place(text: str) -> tuple[float, str]:
    rank, _, connection = text.partition("~")
    try:
        place = float(rank), connection
    except ValueError:
        place = math.nan, ""
    if not math.isfinite(place[0]) or not connection:
        raise InvalidCursor("must be the `next` of another page", param="before")
    return place
