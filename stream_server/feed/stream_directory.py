"""The directory of open streams: it lists, limits, closes and prolongs the streams of a user over all processes.

A process knows its own streams, and records them in Redis a moment later. A command for a stream of another process
goes through the log, so it arrives even if that process is disconnected from Redis at this moment.
"""

import asyncio
import logging
import secrets
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from stream_server.errors import ApiError
from stream_server.feed.stream_census import StreamCensus
from stream_server.feed.stream_description import StreamDescription, describe_stream
from stream_server.hub import disconnect as reasons
from stream_server.hub.client import Client, StreamToken
from stream_server.hub.hub import Hub
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.open_streams import (
    ANSWER_SECONDS,
    CensusQuestion,
    OpenStream,
    OpenStreams,
    StreamQuestion,
    parse_question,
)

logger = logging.getLogger(__name__)

MAX_RECORDED_AT_ONCE = 500

MAX_KEPT_CLOSED = 20_000
"""Most closed streams that wait to be recorded while the server of their users is away, about 10 MB.

The rows of others stay until they expire. The process does not find these streams, so nobody sees them in a list.
"""

RENEW_SECONDS = 10.0
"""Interval in seconds at which the process renews its lease."""


OrderedStream = tuple[float, StreamDescription]
"""A stream behind the time at which it was opened, in ms since 1970, by which the streams of a user are in order."""


class StreamDirectory:
    """Lists, closes and prolongs the open streams of a user, in this process and in the others.

    Attributes:
        process: Random id of this process.
        census: The open streams of all users, for an operator.
        on_too_many: Called for each stream that is closed because its user has too many.
    """

    def __init__(self, hub: Hub, streams: OpenStreams, streams_per_user: Callable[[], int], worker: int = 1) -> None:
        """``streams_per_user`` returns the most open streams of one user; 0 sets no limit. ``worker`` is a number."""
        self.process = secrets.token_hex(6)
        self.census = StreamCensus(hub, streams, self.process, worker)
        self.on_too_many: Callable[[], None] = lambda: None
        self._hub = hub
        self._streams = streams
        self._streams_per_user = streams_per_user
        self._changed: dict[str, Client | OpenStream] = {}  # by connection: an open stream, or the row of a closed one
        self._has_changed = asyncio.Event()
        self._next_lease = self._next_repeat = 0.0
        self._has_failed = False
        hub.registry.on_stream = self._on_stream

    async def run(self) -> None:
        """Record in Redis which streams opened and closed, until cancelled. Keep the changes while Redis is away."""
        try:
            while True:
                self._has_changed.clear()
                try:
                    await self._record()
                except ApiError as error:
                    logger.debug("open streams are recorded later: %s", error.message)
                await asyncio.sleep(0.1)  # so that many streams share a round trip
                with suppress(TimeoutError):
                    async with asyncio.timeout(RENEW_SECONDS):
                        await self._has_changed.wait()
        finally:
            with suppress(ApiError, TimeoutError):  # without an answer, the lease ends by itself
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._streams.end_lease(self.process)

    async def _record(self) -> None:
        """Renew the lease of the process if it is time, and record in Redis which streams opened and closed.

        Every hour all streams are recorded again, in case Redis has lost them or keeps dead ones.
        """
        now = time.monotonic()
        if now >= self._next_lease:
            try:
                was_alive = await self._streams.renew_lease(self.process, self._hub.now_ms())
            except ApiError as error:  # on a cluster, the server with the leases may be away alone
                logger.debug("the lease of the streams is renewed later: %s", error.message)
            else:
                self._next_lease = now + RENEW_SECONDS
                if not was_alive:
                    self._next_repeat = now  # the others may have forgotten the streams of this process
        is_repeat = now >= self._next_repeat
        if is_repeat:
            for client in self._hub.registry.list_clients():
                if client.user_id and not client.is_poll:
                    self._changed.setdefault(client.connection_id, client)
            self._next_repeat = now + 3600.0
        has_failed = False
        changes = list(self._changed.items())
        for start in range(0, len(changes), MAX_RECORDED_AT_ONCE):
            some = changes[start : start + MAX_RECORDED_AT_ONCE]
            has_failed |= not await self._record_some(some, is_repeat=is_repeat)
        if self._has_failed and not has_failed:
            self._next_repeat = 0.0  # the server that was away may have come back without its data
        if has_failed:  # the number of open streams is limited anyway
            closed = [connection for connection, change in self._changed.items() if isinstance(change, OpenStream)]
            for connection in closed[: max(0, len(closed) - MAX_KEPT_CLOSED)]:
                del self._changed[connection]
        self._has_failed = has_failed

    async def _record_some(self, changes: list[tuple[str, Client | OpenStream]], *, is_repeat: bool) -> bool:
        """Record some opened and closed streams in Redis, and keep those that failed. Return whether none failed."""
        opened = [self._row(change) for _, change in changes if isinstance(change, Client)]
        closed = [change for _, change in changes if isinstance(change, OpenStream)]
        recorded = await self._streams.record(opened, closed)
        failed = {row.connection for row in (*opened, *closed) if row.uid in recorded.failed_users}
        for connection, change in changes:
            if connection not in failed and self._changed.get(connection) is change:
                del self._changed[connection]
        await self._close_surplus(recorded.counts, is_repeat=is_repeat)
        return not recorded.failed_users

    def _row(self, client: Client) -> OpenStream:
        scopes = "+".join(sorted(client.subscription.required_scopes))
        return OpenStream(client.user_id, client.connection_id, self.process, client.opened_ms, scopes)

    def _on_stream(self, client: Client, is_open: bool) -> None:  # noqa: FBT001 - the registry calls it
        """Record that a stream opened or ended.

        If its user has too many streams in this process, close the oldest ones. Nobody lists the streams of reader
        tokens, which have no user.
        """
        if not client.user_id:
            return
        self._changed[client.connection_id] = client if is_open else self._row(client)
        self._has_changed.set()
        maximum = self._streams_per_user() if is_open else 0
        if not maximum or self._hub.registry.count_of(client.user_id) <= maximum:
            return
        mine = self._own_streams(client.user_id)
        mine.sort(key=lambda client: (client.opened_ms, client.connection_id))
        for oldest in mine[: max(0, len(mine) - maximum)]:
            self._close_oldest(oldest)

    def _close_oldest(self, client: Client) -> None:
        client.disconnect(reasons.TOO_MANY_STREAMS)
        self.on_too_many()

    async def _close_surplus(self, counts: dict[str, int], *, is_repeat: bool) -> None:
        """Close the oldest streams of users who have too many over all processes.

        Reading a user's streams forgets those of dead processes. A repeat reads all that may have some, because a user
        with few streams, or without a limit, would keep the dead ones for as long as others are opened.
        """
        maximum = self._streams_per_user() or sys.maxsize
        for uid, count in counts.items():
            if count > maximum or (is_repeat and count > self._hub.registry.count_of(uid)):
                found = await self._streams.list_streams(uid, self._hub.now_ms())
                for one in found[: max(0, len(found) - maximum)]:
                    if one.process != self.process:  # this process has closed its own already, or does so now
                        await self._send(one, action="close", code=reasons.TOO_MANY_STREAMS.code)
                    elif (client := self._find(uid, one.connection)) is not None:
                        self._close_oldest(client)

    async def list_streams(self, uid: str) -> list[StreamDescription]:
        """Return the open streams of a user in all processes, the oldest first.

        A stream of a process that does not answer in time is left out.
        """
        found = [self._describe(client) for client in self._own_streams(uid)]
        others = [
            one for one in await self._streams.list_streams(uid, self._hub.now_ms()) if one.process != self.process
        ]
        if others:
            # On a cluster, the uid as hash tag puts the answers on the server of the user's streams. It has answered.
            question = StreamQuestion(uid, f"{uid}}}{self.process}-{secrets.token_hex(6)}")
            await self._streams.ask(question)
            deadline = time.monotonic() + ANSWER_SECONDS
            answers: list[bytes] = []
            while len(answers) < len(others) and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
                answers = await self._streams.read_answers(question)
            found += [msgspec.json.decode(answer, type=OrderedStream) for answer in answers]
        found.sort(key=lambda each: (each[0], each[1].connection))
        return [stream for _, stream in found]

    async def answer(self, message: bytes) -> None:
        """Answer a question of another process: about all streams, or about those of a user, if it has any here."""
        question = parse_question(message)
        if question is None or f"{self.process}-" in question.answers:
            return
        if isinstance(question, CensusQuestion):
            await self.census.answer(question)
            return
        described = [msgspec.json.encode(self._describe(client)) for client in self._own_streams(question.uid)]
        if described:
            try:
                await self._streams.answer(question, described)
            except ApiError as error:
                logger.debug("a list of streams was not answered: %s", error.message)

    async def close(self, uid: str, connection: str) -> bool:
        """End a stream of a user, in whichever process. Return whether the user has such a stream."""
        client = self._find(uid, connection)
        if client is not None:
            client.disconnect(reasons.CLOSED_BY_USER)
            return True
        other = await self._find_elsewhere(uid, connection)
        if other is not None:
            await self._send(other, action="close", code=reasons.CLOSED_BY_USER.code)
        return other is not None

    async def required_scopes(self, uid: str, connection: str) -> frozenset[str] | None:
        """Return the scopes that a stream of a user needs. None if the user has no such stream."""
        client = self._find(uid, connection)
        if client is not None:
            return client.subscription.required_scopes
        other = await self._find_elsewhere(uid, connection)
        return None if other is None else frozenset(filter(None, other.scopes.split("+")))

    async def prolong(self, uid: str, connection: str, token: StreamToken, scopes: frozenset[str]) -> None:
        """Let a stream go on with another token that has ``scopes``. The caller has checked both.

        Another process checks the scopes again: an update of the stream may have come into force there.
        """
        client = self._find(uid, connection)
        if client is not None:
            self._hub.registry.prolong(client, token)
            return
        other = await self._find_elsewhere(uid, connection)
        if other is not None:
            await self._send(other, action="prolong", token=token._asdict(), scopes=sorted(scopes))

    async def _send(self, stream: OpenStream, **command: object) -> None:
        whole = {"connection": stream.connection, **command}
        await self._streams.send_command(stream.uid, whole, IdempotencyKey.generate())

    async def _find_elsewhere(self, uid: str, connection: str) -> OpenStream | None:
        """Return a stream of another process, or None. A stream that opened a moment ago may not be recorded yet."""
        for seconds in (0.25, 0.0):
            found = await self._streams.list_streams(uid, self._hub.now_ms())
            match = next((one for one in found if one.connection == connection and one.process != self.process), None)
            if match is not None or not seconds:
                return match
            await asyncio.sleep(seconds)
        return None

    def _find(self, uid: str, connection: str) -> Client | None:
        return next((each for each in self._own_streams(uid) if each.connection_id == connection), None)

    def _own_streams(self, uid: str) -> list[Client]:
        clients = self._hub.registry.clients_of(uid)
        return [client for client in clients if not client.is_poll and client.disconnect_reason is None]

    def _describe(self, client: Client) -> OrderedStream:
        return client.opened_ms, describe_stream(client, self._hub.head)
