"""The Lua scripts of ``store/lua``: load them, call them, and repeat a lost write once under the same idempotency key.

A script is called by its SHA-1. Its arguments and the values of its reply have the names of its declaration in Lua.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hiredis import pack_command
from redis.exceptions import NoScriptError, ResponseError

from stream_server.errors import InternalError, Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis import timeout_budget
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.pipelined_connection import NoReply
from stream_server.store.redis.refusals import (
    outcome_unknown_error,
    to_api_error,
    unavailable_error,
    write_error_to_api_error,
)
from stream_server.store.redis.script_settings import (
    REPEATED_REPLY,
    USUAL_RULES,
    SiteRules,
    SizeLimits,
    load_scripts,
)

FIRST_ATTEMPT_SHARE = 0.6
"""Share of a write's time for its first attempt. The retry has the rest, so both stay within the time."""

MIN_ATTEMPT_SHARE = 0.25
"""Smallest share of the timeout for one attempt. A write without time for two attempts makes one with all its time."""

CORE_KEYS = (keys.META, keys.NEVER)
"""Keys that each call of a script declares behind its own key.

In a cluster, a script must not run where only a part of the truth is: while its slot is moved, the log would begin
a second time at the new place. Redis refuses a call of which one key exists and another does not. The truth has
`keys.META`, and `keys.NEVER` never exists. So both nodes refuse every script, and nothing runs by half.
"""

_REQUEST_KEY = keys.key_for("request", "")

ScriptArgument = str | bytes | int


class ScriptCall(NamedTuple):
    """A call of a script: its name, its arguments under the names that its declaration in Lua has, and those behind.

    ``rest`` is for scripts that are declared with ``...`` (:mod:`stream_server.store.redis.lua_library`).
    """

    script: str
    named: Mapping[str, ScriptArgument]
    rest: Sequence[ScriptArgument] = ()


class WriteReply(NamedTuple):
    """The reply of a script that writes.

    Attributes:
        is_repeat: Whether Redis had already made the write under the same idempotency key, so this call wrote nothing.
        value: The value that Redis keeps under the idempotency key. A repeated write returns it again. A value that
            begins with ``unchanged`` is not kept, because the write changed nothing.
        first_time: Further values by name, which Redis does not keep: it is empty for a repeated write. The names are
            those behind ``-->`` in the script's declaration. A script may leave out its last values.
        position: Position of the log entry that the write added, or None if it added none.
    """

    is_repeat: bool
    value: bytes
    first_time: Mapping[str, Any]
    position: Position | None

    @property
    def is_kept(self) -> bool:
        """Whether Redis keeps ``value``: unless the write changed nothing."""
        return not self.value.startswith(b"unchanged")


class _Replies(NamedTuple):
    """The replies to calls of scripts, and the number of replicas that have all their writes, 0 if nobody asked.

    An error stands in the place of a reply. It stands in the place of the number if Redis was demoted while it waited.
    """

    replies: list[Any]
    replica_count: int | ResponseError


class ScriptRunner:
    """Calls the Lua scripts in one Redis.

    A write whose reply is lost is repeated once, under the same idempotency key. What the caller of a write gets::

        the script or Redis refuses the write              the API error of the refusal; nothing was written
        the commands are not sent                          Unavailable; nothing was written
        a reply comes                                      the reply
        no reply comes, and the repetition is answered     the reply: that of the first attempt, if Redis had made it
        no reply comes, and none to the repetition either  OutcomeUnknown
        too few replicas have the write in time            OutcomeUnknown

    A script that Redis does not know, after a restart or a failover, is loaded within an attempt. Calls that keep no
    reply are not repeated: their callers repeat them.

    Attributes:
        on_rights_change: Called after a write that may have taken rights from the tokens of a user, with the user's id.
            None means any user. The declaration of the script says whose rights these are (``RIGHTS``, in
            :mod:`stream_server.store.redis.lua_library`). It is called before the writer gets its answer, and also if
            the outcome is unknown.
        last_written: Position of the newest log entry that this process wrote. The feed checks that it arrives.
    """

    def __init__(
        self, redis: RedisClient, size_limits: SizeLimits, rules: SiteRules = USUAL_RULES,
        min_write_replicas: int = 0, bus_key: bytes = b"",
    ) -> None:  # fmt: skip
        """A write raises `OutcomeUnknown` if fewer than ``min_write_replicas`` replicas acknowledge it in time.

        ``bus_key`` signs the published entries; without it they are not signed.
        """
        self._redis = redis
        self._scripts = load_scripts(size_limits, rules, bus_key)
        self._min_write_replicas = min_write_replicas
        self.size_limits = size_limits
        self.rules = rules
        self.last_written = LOG_START
        self.on_rights_change: Callable[[str | None], None] = lambda _: None  # a process that remembers no token

    async def install(self) -> None:
        """Load all Lua scripts into Redis. Raises `Unavailable` if Redis does not answer in time."""
        await self._load({script.sha1 for script in self._scripts.values()})

    async def write(
        self, script: str, idempotency_key: IdempotencyKey, /, *,
        rest: Sequence[ScriptArgument] = (), **named: ScriptArgument,
    ) -> WriteReply:  # fmt: skip
        """Make the call of `ScriptCall` with these fields, as :meth:`write_call` does."""
        return await self.write_call(ScriptCall(script, named, rest), idempotency_key)

    async def write_call(self, call: ScriptCall, idempotency_key: IdempotencyKey) -> WriteReply:
        """Run a script that writes. If the script or Redis refuses the write, raises the API error for it.

        Raises `Unavailable` if nothing was written, and `OutcomeUnknown` if the write may have been made.
        """
        (reply,) = await self.write_each([(call, idempotency_key)])
        if isinstance(reply, ResponseError):
            raise write_error_to_api_error(reply) from reply
        return reply

    async def write_each(self, writes: Sequence[tuple[ScriptCall, IdempotencyKey]]) -> list[WriteReply | ResponseError]:
        """Run several atomic writes in one round trip. Return each write's reply, or the error that refused it."""
        if not writes:
            return []
        commands = [self._command(call, _REQUEST_KEY + key.value, key.fingerprint, key.ttl_ms) for call, key in writes]
        try:
            raw_replies, replica_count = await self._run_twice(commands)
        except asyncio.CancelledError:  # Redis makes the writes, and nobody reads how many bytes they append
            if (budget := timeout_budget.CURRENT.get()) is not None and budget.is_unread:
                max_chars = self.size_limits.message_max_chars
                budget.appended_bytes += timeout_budget.bound_appended(max_chars, len(writes))
            raise
        finally:
            for call, _ in writes:
                if rights := self._scripts[call.script].declared.rights:
                    self.on_rights_change(None if rights == "*" else str(call.named[rights]))
        replies = [
            raw if isinstance(raw, ResponseError) else self._read_reply(call.script, raw)
            for (call, _), raw in zip(writes, raw_replies, strict=True)
        ]
        if self._min_write_replicas and any(isinstance(reply, WriteReply) for reply in replies):
            self._check_replicas(replica_count)
        return replies

    async def call(
        self, script: str, key: str, /, *, rest: Sequence[ScriptArgument] = (), **named: ScriptArgument
    ) -> Any:
        """Call a script that needs no idempotency key, with the arguments of a `ScriptCall`, and return its reply.

        A reply of several values is a dictionary with the names of the script's declaration; an empty one is empty.
        ``key`` is one of the core's keys.
        """
        (reply,) = await self.call_each(key, [ScriptCall(script, named, rest)])
        return reply

    async def call_each(self, key: str, calls: Sequence[ScriptCall]) -> list[Any]:
        """Do the same as :meth:`call` for several calls, in one round trip. Raises the first error."""
        commands = [self.call_command(key, call) for call in calls]
        try:
            replies, _ = await self._run(commands, time.monotonic() + self._redis.remaining_seconds)
        except NoReply as lost:
            raise unavailable_error(TimeoutError()) from lost
        for reply in replies:
            if isinstance(reply, ResponseError):
                raise to_api_error(reply) from reply
        names = [self._scripts[call.script].declared.results for call in calls]
        return [
            dict(zip(each, reply, strict=False)) if each else reply for each, reply in zip(names, replies, strict=True)
        ]

    def call_command(self, key: str, call: ScriptCall) -> Command:
        """Return the command of :meth:`call`, to send it with others. Redis may not know the script any more."""
        return self._command(call, key, "-", 0)

    def _command(self, call: ScriptCall, key: str, fingerprint: str, keep_ms: int) -> Command:
        """Return the command of a call: its arguments stand in the order of the script's declaration.

        ``fingerprint`` and ``keep_ms`` are about the kept reply (``lua/reply.lua``). Raises TypeError or KeyError if
        the names are not those of the declaration.
        """
        _, sha1, declared, order = self._scripts[call.script]
        if len(call.named) != len(declared.parameters) or (call.rest and not declared.takes_rest):
            raise TypeError(f"the arguments of {call.script} are {declared.parameters}, not {tuple(call.named)}")
        return (
            "EVALSHA", sha1, 1 + len(CORE_KEYS), key, *CORE_KEYS, fingerprint, keep_ms, *order(call.named), *call.rest
        )  # fmt: skip

    async def _load(self, sha1s: set[str], max_seconds: float = math.inf) -> None:
        texts = [script.text for script in self._scripts.values() if script.sha1 in sha1s]
        await self._redis.execute(*(("SCRIPT", "LOAD", text) for text in texts), max_seconds=max_seconds)

    def _check_replicas(self, count: int | ResponseError) -> None:
        """Raise `OutcomeUnknown` if too few replicas have the writes."""
        known = 0 if isinstance(count, ResponseError) else count
        if known < self._min_write_replicas:
            confirmed = f"{known} of the {self._min_write_replicas} replicas that must confirm it did so"
            raise outcome_unknown_error(f"the write was made, but {confirmed}, so a failover may lose it")

    async def _run_twice(self, commands: list[Command]) -> "_Replies":
        """Return the replies to commands, which are repeated once if these were lost. Both attempts share one timeout.

        Raises `Unavailable` if nothing was sent, and `OutcomeUnknown` if Redis may have run them.
        """
        start, total_seconds = time.monotonic(), self._redis.remaining_seconds
        # An attempt given up just before its reply is made again for nothing. So a short time is not split.
        has_time_for_two = total_seconds >= 2 * MIN_ATTEMPT_SHARE * self._redis.timeout_seconds
        first_deadline = start + total_seconds * (FIRST_ATTEMPT_SHARE if has_time_for_two else 1)
        try:
            return await self._run(commands, first_deadline, self._min_write_replicas)
        except NoReply:  # Redis may have run them; then the reply to the repetition does not tell what they appended
            sent = [pack_command(tuple(each)) for each in commands]  # type: ignore[arg-type]  # any length
            timeout_budget.charge_lost(sum(map(len, sent)))
        # The retry is safe: if Redis ran the first attempt, it kept the reply under the idempotency key.
        try:
            repeated = await self._run(commands, start + total_seconds, self._min_write_replicas)
        except (NoReply, Unavailable) as lost:
            raise outcome_unknown_error() from lost
        for reply in repeated.replies:
            if isinstance(reply, ResponseError) and isinstance(to_api_error(reply), Unavailable):
                raise outcome_unknown_error() from reply  # Redis may have run the first attempt
        return repeated

    async def _run(self, commands: list[Command], deadline: float, min_write_replicas: int = 0) -> "_Replies":
        """Run calls of Lua scripts. If Redis does not know some scripts, load those and repeat the calls that failed.

        After a failover Redis knows none. To load one script takes 0.4 ms, once. To load all of them together would
        take a busy Redis longer than one write may take. With ``min_write_replicas``, Redis counts the replicas that
        have all writes.
        """
        seconds_left = max(0.0, deadline - time.monotonic())
        wait: list[Command] = []
        if min_write_replicas:
            # From Redis 7.2 on, WAIT asks only for what its own connection has changed. A write that Redis had made
            # already, or that finds nothing to change, changes nothing. So each call changes something before WAIT.
            # The rest of the time is for the reply. WAIT would wait for 0 ms without limit.
            wait = [("SET", keys.CONFIRMED, ""), ("WAIT", min_write_replicas, max(1, int(seconds_left * 1000 * 0.8)))]
        replies = await self._redis.run_pipeline([*commands, *wait], seconds_left)
        replica_count = _pop_replica_count(replies) if wait else 0
        unknown = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:
            try:
                await self._load({str(commands[i][1]) for i in unknown}, deadline - time.monotonic())
                missed = [commands[i] for i in unknown]
                again = await self._redis.run_pipeline([*missed, *wait], max(0.0, deadline - time.monotonic()))
            except Unavailable as error:
                if len(unknown) < len(commands):
                    raise NoReply from error  # Redis ran the other commands
                raise
            replica_count = _pop_replica_count(again) if wait else 0
            for i, reply in zip(unknown, again, strict=True):
                replies[i] = reply
        return _Replies(replies, replica_count)

    def _read_reply(self, script: str, reply: list[Any] | bytes) -> WriteReply:
        """Return the reply of a script that writes: an array, or the text of an ingested line (``lua/ingest.lua``).

        Tell the feed and the present request of the write.
        """
        appended, value, *extra = reply.split(b"\n") if isinstance(reply, bytes) else reply
        is_repeat = appended == REPEATED_REPLY.encode()
        position = parse_reply_position(value)
        if position is not None and position > self.last_written:
            self.last_written = position
        budget = timeout_budget.CURRENT.get()
        if budget is not None:
            budget.has_written = True
            if not is_repeat:
                budget.appended_bytes += int(appended)
                if budget.trace is not None and position is not None:
                    budget.trace.written = max(position, budget.trace.written or position)
        first_time = dict(zip(self._scripts[script].declared.results, extra, strict=False))
        return WriteReply(is_repeat, value, first_time, position)


def _pop_replica_count(replies: list[Any]) -> int | ResponseError:
    """Take the replies of SET and WAIT from the end. Return the number of replicas, or the error of either command."""
    changed, count = replies[-2:]
    del replies[-2:]
    return changed if isinstance(changed, ResponseError) else count


def parse_reply_position(reply: bytes) -> Position | None:
    """Return the position ``<ms>-<seq> <n>`` that begins a write's reply, or None if the write added no log entry."""
    entry_id, n, *_ = *reply.split(b" "), b""
    ms, _, seq = entry_id.partition(b"-")
    return Position(int(ms), int(seq), int(n)) if seq and n.isdigit() else None


def position_of(reply: WriteReply) -> Position:
    """Return the position of the log entry that a write added. Raises `InternalError` if the reply has no position."""
    if reply.position is None:
        raise InternalError("the data store answered without a position")
    return reply.position
