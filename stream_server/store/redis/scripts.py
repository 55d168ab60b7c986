"""The Lua files beside this module, each one verb; a lost write is repeated once, under the same request key.

A script is called by its hash; a Redis that does not know it (restarted, failed over) is given it again.
"""

import math
import re
import time
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha1
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from redis.exceptions import NoScriptError, ResponseError

from stream_server.errors import InternalError, Unavailable
from stream_server.events import redis_position, visibility
from stream_server.events.entry import LOG_START, Position
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis import timeout_budget
from stream_server.store.redis.client import Command, NoReply, RedisClient
from stream_server.store.redis.refusals import to_api_error, write_error_to_api_error

JOB_GRACE_MS = 3000
"""A job left by a write is due so much later; until then it is the request's that made it."""

JOB_LEASE_MS = 10_000
"""How long a claimed job is held."""

REFILL_AUTHORS_PER_PASS = 50
"""Users of one pass of a refill."""

FIRST_ATTEMPT_SHARE = 0.6
"""What the first attempt of a write has of its time; its repetition has the rest, so that both stay within it."""

MIN_ATTEMPT_SHARE = 0.25
"""Less than this of the time-out is no attempt: a write that has no time for two of them has one, with all of it."""

REPLICA_WAIT_SHARE = 0.8
"""What the replicas have of an attempt's time: the rest is for saying that they did not answer."""

ScriptArgument = str | bytes | int

_PARTS = re.compile(r"-- parts: (.*)\n")
_KEY = re.compile(r"\bKEY\.(\w+)")


class Script(NamedTuple):
    """One verb: its whole text, and the SHA-1 by which Redis knows it."""

    text: str
    sha1: str


class SizeLimits(NamedTuple):
    """Bounds that scripts keep: entries of the log, statuses of a timeline, people in one pass of a job."""

    log_max_entries: int = 1_000_000
    timeline_max: int = 1000
    fanout_batch_size: int = 1000


class WriteReply(NamedTuple):
    """What a write answered: ``value`` is kept under its request key, ``first_time_extra`` comes the first time only."""

    is_repeat: bool
    value: bytes
    first_time_extra: list[Any]


class Scripts:
    """Calls the scripts of one Redis; a write is one when so many ``replicas`` have it, too.

    ``last_written`` is the newest entry of the log that this process wrote, so that a feed knows of something that it should
    have heard by now.
    """

    def __init__(self, redis: RedisClient, size_limits: SizeLimits, min_write_replicas: int = 0) -> None:
        self._redis = redis
        self._scripts = load_scripts(size_limits)
        self._min_write_replicas = min_write_replicas
        self.size_limits = size_limits
        self.last_written = LOG_START

    async def install(self, max_seconds: float = math.inf) -> None:
        """Give all scripts to Redis, within ``max_seconds`` or the link's time-out if that is less; raises Unavailable."""
        await self._redis.execute(
            *(("SCRIPT", "LOAD", script.text) for script in self._scripts.values()), max_seconds=max_seconds
        )

    async def write(self, script_name: str, idempotency_key: IdempotencyKey, *arguments: ScriptArgument) -> WriteReply:
        """One write; raises what the script refused with, Unavailable, or OutcomeUnknown."""
        (answer,) = await self._run_writes([self._write_command(script_name, idempotency_key, arguments)])
        if isinstance(answer, ResponseError):
            raise write_error_to_api_error(answer) from answer
        return answer

    async def write_each(
        self, writes: Sequence[tuple[str, IdempotencyKey, tuple[ScriptArgument, ...]]]
    ) -> list[WriteReply | ResponseError]:
        """Several writes in one round trip, each its own step; a refusal stands in its place."""
        return await self._run_writes([self._write_command(*write) for write in writes]) if writes else []

    async def call(self, script_name: str, key: str, *arguments: ScriptArgument) -> Any:
        """One script that keeps no answer; ``key`` says on which shard."""
        (reply,) = await self.call_each(script_name, key, [arguments])
        return reply

    async def call_each(self, script_name: str, key: str, calls: Sequence[tuple[ScriptArgument, ...]]) -> list[Any]:
        """The same script for each of these arguments, in one round trip; the first refusal is raised."""
        digest = self._scripts[script_name].sha1
        commands: list[Command] = [("EVALSHA", digest, 1, key, "-", 0, *arguments) for arguments in calls]
        try:
            replies = await self._run_installing_missing(commands, time.monotonic() + self._redis.remaining_seconds)
        except NoReply as lost:
            raise Unavailable("the data store did not answer", retry_after=1) from lost
        for reply in replies:
            if isinstance(reply, ResponseError):
                raise to_api_error(reply) from reply
        return replies

    def _write_command(
        self, script_name: str, idempotency_key: IdempotencyKey, arguments: tuple[ScriptArgument, ...]
    ) -> Command:
        key = keys.key_for("request", idempotency_key.value)
        return (
            "EVALSHA",
            self._scripts[script_name].sha1,
            1,
            key,
            idempotency_key.fingerprint,
            idempotency_key.ttl_ms,
            *arguments,
        )

    async def _run_writes(self, commands: list[Command]) -> list[WriteReply | ResponseError]:
        """The answers, once as many replicas as are wanted have what was written; raises OutcomeUnknown otherwise."""
        replies = await self._run_with_retry(commands)
        copies = replies.pop() if self._min_write_replicas else 0
        answers = [reply if isinstance(reply, ResponseError) else self._parse_write_reply(reply) for reply in replies]
        if all(isinstance(answer, ResponseError) for answer in answers):
            return answers
        spent = timeout_budget.current_budget()
        if spent is not None:
            spent.has_written = True
        # Redis answers with an error in the place of a number when it was demoted while it waited for its replicas.
        if isinstance(copies, ResponseError) or copies < self._min_write_replicas:
            raise timeout_budget.outcome_unknown_error()
        return answers

    async def _run_with_retry(self, commands: list[Command]) -> list[Any]:
        """The replies to the first attempt, or to the second if they were lost; both within the time of one."""
        began, whole = time.monotonic(), self._redis.remaining_seconds
        # One given up a moment before its answer costs a connection, and whoever asks next the time for another one.
        share = FIRST_ATTEMPT_SHARE if whole >= 2 * MIN_ATTEMPT_SHARE * self._redis.timeout_seconds else 1
        try:
            return await self._run_installing_missing(commands, began + whole * share, self._min_write_replicas)
        except NoReply:
            pass
        # Safe, because the first attempt kept its answer under the request key if it was run at all.
        try:
            replies = await self._run_installing_missing(commands, began + whole, self._min_write_replicas)
        except (NoReply, Unavailable) as lost:
            raise timeout_budget.outcome_unknown_error() from lost
        for reply in replies:
            if isinstance(reply, ResponseError) and isinstance(to_api_error(reply), Unavailable):
                raise timeout_budget.outcome_unknown_error() from reply  # what is refused now may have been taken the first time
        return replies

    async def _run_installing_missing(
        self, commands: list[Command], deadline: float, min_write_replicas: int = 0
    ) -> list[Any]:
        """The replies; those that Redis did not know the script for are asked again after it was given.

        With ``min_write_replicas`` the last one says how many of them have all that was written until then.
        """
        replies = await self._run_pipeline(commands, deadline, min_write_replicas)
        unknown = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:
            try:
                await self.install(deadline - time.monotonic())
                again = await self._run_pipeline([commands[i] for i in unknown], deadline, min_write_replicas)
            except Unavailable as error:
                if len(unknown) < len(commands):
                    raise NoReply from error  # the others were run
                raise
            for i, reply in zip([*unknown, -1] if min_write_replicas else unknown, again, strict=True):
                replies[i] = reply
        return replies

    async def _run_pipeline(self, commands: list[Command], deadline: float, min_write_replicas: int) -> list[Any]:
        """In one round trip, on one connection: WAIT is about what was written on it, and about all before that."""
        left = max(0.0, deadline - time.monotonic())
        if min_write_replicas:
            commands = [
                *commands,
                ("WAIT", min_write_replicas, max(1, int(left * 1000 * REPLICA_WAIT_SHARE))),
            ]  # 0 would be for ever
        return await self._redis.run_pipeline(commands, left)

    def _parse_write_reply(self, reply: list[Any]) -> WriteReply:
        again, value, *extra = reply
        place = redis_position.parse_reply_position(value)
        if place is not None and place > self.last_written:
            self.last_written = place
        return WriteReply(bool(again), value, extra)


def position_of(reply: WriteReply) -> Position:
    """The place of the entry that a write made; an answer without one is our own fault."""
    place = redis_position.parse_reply_position(reply.value)
    if place is None:
        raise InternalError("the data store answered without a position")
    return place


@cache
def load_scripts(size_limits: SizeLimits) -> Mapping[str, Script]:
    """All scripts by name, each with what stands before it: names, numbers, the prelude and the parts that it needs."""
    folder = resources.files("stream_server.store").joinpath("lua")
    prelude = folder.joinpath("prelude.lua").read_text("utf-8")
    verbs = [file for file in folder.iterdir() if file.name.endswith(".lua") and file.name != "prelude.lua"]
    return {
        file.name.removesuffix(".lua"): _build_script(prelude, file.read_text("utf-8"), folder, size_limits)
        for file in verbs
    }


def _build_script(prelude: str, body_text: str, folder: Traversable, size_limits: SizeLimits) -> Script:
    parts = _PARTS.match(body_text)
    names = parts[1].split() if parts else []
    body = "\n".join(
        [prelude, *(folder.joinpath("parts", f"{name}.lua").read_text("utf-8") for name in names), body_text]
    )
    head = (
        f"{keys.lua_key_table(set(_KEY.findall(body)))}\n"
        f"local LOG_MAX_ENTRIES,TIMELINE_MAX,FANOUT_BATCH_SIZE='{size_limits.log_max_entries}',{size_limits.timeline_max},{size_limits.fanout_batch_size}\n"
        f"local JOB_GRACE_MS,JOB_LEASE_MS,REFILL_AUTHORS_PER_PASS={JOB_GRACE_MS},{JOB_LEASE_MS},{REFILL_AUTHORS_PER_PASS}\n"
        f"local VISIBILITY_TABLE='{visibility.visibility_table()}'\n"
    )
    text = head + body
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())
