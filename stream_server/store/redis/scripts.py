"""The Lua scripts of ``store/lua``: load them, call them, and repeat a lost write once under the same idempotency key.

A script is called by its SHA-1. After a restart or a failover Redis does not know the script, and gets it again.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Self

from redis.exceptions import NoScriptError, ResponseError

from stream_server.config.settings import Config
from stream_server.errors import InternalError, Unavailable
from stream_server.events import bus_signature, visibility
from stream_server.events.position import LOG_START, Position
from stream_server.store import keys, status_row
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis import timeout_budget
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.lua_library import LuaLibrary, Script, make_scripts, read_library
from stream_server.store.redis.pipelined_connection import NoReply
from stream_server.store.redis.refusals import (
    outcome_unknown_error,
    to_api_error,
    unavailable_error,
    write_error_to_api_error,
)
from stream_server.store.redis.stored_form import STORED_FORM

JOB_GRACE_MS = 3000
"""Delay in milliseconds until a new job is due. Until then the request that added the job may do its first pass."""

JOB_LEASE_MS = 10_000
"""Time in milliseconds for which a worker holds a claimed job."""

REFILL_AUTHORS_PER_PASS = 50
"""Number of authors whose statuses one pass of a refill reads."""

FIRST_ATTEMPT_SHARE = 0.6
"""Share of a write's time for its first attempt. The retry has the rest, so both stay within the time."""

MIN_ATTEMPT_SHARE = 0.25
"""Smallest share of the timeout for one attempt. A write without time for two attempts makes one with all its time."""

REPLICA_WAIT_SHARE = 0.8
"""Share of an attempt's time for which Redis waits for its replicas. The rest is for the reply."""

CORE_KEYS = (keys.META, keys.NEVER)
"""Keys that each call of a script declares behind its own key.

In a cluster, a script must not run where only a part of the truth is: while its slot is moved, the log would begin
a second time at the new place. Redis refuses a call of which one key exists and another does not. The truth has
`keys.META`, and `keys.NEVER` never exists. So both nodes refuse every script, and nothing runs by half.
"""

_REQUEST_KEY = keys.key_for("request", "")

REPEATED_REPLY = "repeated"
"""Stands in a script's reply in the place of the appended bytes, if Redis had made the write before."""

RIGHTS_SCRIPTS = frozenset((
    "account_delete", "ingest_delete_user", "ingest_suspension", "password_change", "report_decide", "scopes_grant",
    "session_end", "session_refresh", "session_start", "sessions_end_all", "suspension_change", "token_revoke",
))  # fmt: skip
"""The scripts that may take rights from the tokens of a user: of the one whose id is their argument ``uid``.

Those without such an argument may take them from any user.
"""

ScriptArgument = str | bytes | int


class ScriptCall(NamedTuple):
    """A call of a script: its name, its arguments under the names that its declaration in Lua has, and those behind.

    ``rest`` is for scripts that are declared with ``...`` (:mod:`stream_server.store.redis.lua_library`).
    """

    script: str
    named: Mapping[str, ScriptArgument]
    rest: Sequence[ScriptArgument] = ()


class SizeLimits(NamedTuple):
    """Settings of the Lua scripts: sizes of the log, a timeline, a pass of a job and followed users; and of consent.

    The script of a post or a delete changes fewer than ``step_timelines`` timelines itself, and leaves a job for more.
    It is 0 if the keys of timelines may be on other servers than the truth.

    One of ``adds_per_trim`` additions of a status to a timeline also trims the timeline. In between the timeline grows
    beyond its maximum, by more than 512 statuses with a probability below 10⁻⁷. Readers of a timeline use its newest
    statuses only, up to the maximum.

    Each write bounds the number of entries of the log by ``log_max_entries``. It is so high that age and bytes bound a
    log first, which the operator sets. A number is a poor bound: one entry may be a thousand times as large as another.

    With ``ask_strangers``, a user is asked before another user, whom the user does not follow, adds the user to a group
    or a talk.

    With ``foreign_subjects``, the foreign id of a user (:mod:`stream_server.store.social.ingest`) is the ``sub`` by
    which an outside issuer names the user.
    """

    log_max_entries: int = 100_000_000
    timeline_max: int = 1000
    fanout_batch_size: int = 1000
    following_max: int = 20_000
    ask_strangers: bool = False
    step_timelines: int = 100
    adds_per_trim: int = 32
    foreign_subjects: bool = True
    message_max_chars: int = 280

    @classmethod
    def of_settings(cls, config: Config) -> Self:
        """Return the limits of a server, a job worker or another command with these settings."""
        return cls(
            timeline_max=config.timeline_max, fanout_batch_size=config.fanout_batch_size,
            ask_strangers=config.consent == "on", foreign_subjects=config.ingest_subjects == "on",
            message_max_chars=config.message_max_chars,
        )  # fmt: skip

    @property
    def foreign_users_key(self) -> str:
        """The Redis key of the hash with the own ids of users by foreign id."""
        return keys.key_for("subjects" if self.foreign_subjects else "foreign")


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


class Scripts:
    """Calls the Lua scripts in one Redis.

    Attributes:
        on_rights_change: Called after a write that may have changed the rights of a user, with the user's id. None
            means any user. It is called before the writer gets its answer, and also if the outcome is unknown.
        last_written: Position of the newest log entry that this process wrote. The feed checks that it arrives.
    """

    def __init__(
        self, redis: RedisClient, size_limits: SizeLimits, min_write_replicas: int = 0, bus_key: bytes = b""
    ) -> None:
        """A write raises `OutcomeUnknown` if fewer than ``min_write_replicas`` replicas acknowledge it in time.

        ``bus_key`` signs the published entries; without it they are not signed.
        """
        self._redis = redis
        self._scripts = load_scripts(size_limits, bus_key)
        self._min_write_replicas = min_write_replicas
        self.size_limits = size_limits
        self.last_written = LOG_START
        self.on_rights_change: Callable[[str | None], None] = _ignore_rights

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
                if call.script in RIGHTS_SCRIPTS:
                    self.on_rights_change(str(call.named["uid"]) if "uid" in call.named else None)
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
        except NoReply:
            pass
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
        if min_write_replicas:  # WAIT would wait for 0 ms without limit
            wait = [("WAIT", min_write_replicas, max(1, int(seconds_left * 1000 * REPLICA_WAIT_SHARE)))]
        replies = await self._redis.run_pipeline([*commands, *wait], seconds_left)
        replica_count = replies.pop() if wait else 0
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
            replica_count = again.pop() if wait else 0
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


def parse_reply_position(reply: bytes) -> Position | None:
    """Return the position ``<ms>-<seq> <n>`` that begins a write's reply, or None if the write added no log entry."""
    entry_id, n, *_ = *reply.split(b" "), b""
    ms, _, seq = entry_id.partition(b"-")
    return Position(int(ms), int(seq), int(n)) if seq and n.isdigit() else None


def _ignore_rights(user_id: str | None) -> None:
    """Do nothing: the ``on_rights_change`` of a process that remembers no token."""


def position_of(reply: WriteReply) -> Position:
    """Return the position of the log entry that a write added. Raises `InternalError` if the reply has no position."""
    if reply.position is None:
        raise InternalError("the data store answered without a position")
    return reply.position


@cache
def load_scripts(size_limits: SizeLimits, bus_key: bytes = b"") -> Mapping[str, Script]:
    """Return all Lua scripts by name. Each text is complete: it has the key names, limits and functions it uses."""
    pads = bus_signature.lua_pads(bus_key) if bus_key else ("", "")
    return make_scripts(LuaLibrary(read_library().values(), lua_constants(size_limits, pads)))


def lua_constants(size_limits: SizeLimits, pads: tuple[str, str]) -> dict[str, str]:
    """Return the values of the constants of scripts, as texts of Lua, by name.

    ``pads`` are the pads of the signature of published entries; both are empty without a signature.
    """
    names = {each.name: str(each.value) for each in (*visibility.VisibilityFact, *visibility.Visibility)}
    return (
        keys.lua_key_names()
        | status_row.LUA_CONSTANTS
        | names
        | {
            "LOG_MAX_ENTRIES": f"'{size_limits.log_max_entries}'",
            "TIMELINE_MAX": str(size_limits.timeline_max),
            "FANOUT_BATCH_SIZE": str(size_limits.fanout_batch_size),
            "STEP_TIMELINES": str(size_limits.step_timelines),
            "ADDS_PER_TRIM": str(size_limits.adds_per_trim),
            "HOME_TIMELINE": f"'{keys.key_for('home')}'" if size_limits.step_timelines else "''",
            "LIST_TIMELINE": f"'{keys.key_for('timeline')}'" if size_limits.step_timelines else "''",
            "FOLLOWING_MAX": str(size_limits.following_max),
            "ASK_STRANGERS": str(size_limits.ask_strangers).lower(),
            "NO_USER": f"'{keys.NO_USER.decode()}'",
            "STORED_FORM": f"'{STORED_FORM}'",
            "REPEATED_REPLY": f"'{REPEATED_REPLY}'",
            "FOREIGN_USERS": f"'{size_limits.foreign_users_key}'",
            "MAC_INNER_PAD": f"'{pads[0]}'",
            "MAC_OUTER_PAD": f"'{pads[1]}'",
            "JOB_GRACE_MS": str(JOB_GRACE_MS),
            "JOB_LEASE_MS": str(JOB_LEASE_MS),
            "REFILL_AUTHORS_PER_PASS": str(REFILL_AUTHORS_PER_PASS),
            "VISIBILITY_TABLE": f"('{visibility.visibility_table()}')",
        }
    )
