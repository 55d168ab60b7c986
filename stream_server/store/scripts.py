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

from stream_server import sight
from stream_server.errors import Internal, Unavailable
from stream_server.events import START, Position
from stream_server.store import budget, keys, position
from stream_server.store.link import Command, Link, Lost
from stream_server.store.refusals import refused, refused_write
from stream_server.store.request import Request

GRACE_MS = 3000
"""A job left by a write is due so much later; until then it is the request's that made it."""

LEASE_MS = 10_000
"""How long a claimed job is held."""

FOLLOWED = 50
"""Users of one pass of a refill."""

FIRST_SHARE = 0.6
"""What the first attempt of a write has of its time; its repetition has the rest, so that both stay within it."""

ATTEMPT_SHARE = 0.25
"""Less than this of the time-out is no attempt: a write that has no time for two of them has one, with all of it."""

WAIT_SHARE = 0.8
"""What the replicas have of an attempt's time: the rest is for saying that they did not answer."""

Argument = str | bytes | int

_PARTS = re.compile(r"-- parts: (.*)\n")
_KEY = re.compile(r"\bKEY\.(\w+)")


class Script(NamedTuple):
    """One verb: its whole text, and the SHA-1 by which Redis knows it."""

    text: str
    digest: str


class Sizes(NamedTuple):
    """Bounds that scripts keep: entries of the log, statuses of a timeline, people in one pass of a job."""

    log_max_entries: int = 1_000_000
    timeline_max: int = 1000
    pass_size: int = 1000


class Answer(NamedTuple):
    """What a write answered: ``value`` is kept under its request key, ``extra`` comes the first time only."""

    again: bool
    value: bytes
    extra: list[Any]


class Scripts:
    """Calls the scripts of one Redis; a write is one when so many ``replicas`` have it, too.

    ``written`` is the newest entry of the log that this process wrote, so that a feed knows of something that it should
    have heard by now.
    """

    def __init__(self, link: Link, sizes: Sizes, replicas: int = 0) -> None:
        self._link = link
        self._scripts = load(sizes)
        self._replicas = replicas
        self.sizes = sizes
        self.written = START

    async def install(self, seconds: float = math.inf) -> None:
        """Give all scripts to Redis, within ``seconds`` or the link's time-out if that is less; raises Unavailable."""
        await self._link.ask(*(("SCRIPT", "LOAD", script.text) for script in self._scripts.values()), seconds=seconds)

    async def write(self, verb: str, request: Request, *arguments: Argument) -> Answer:
        """One write; raises what the script refused with, Unavailable, or OutcomeUnknown."""
        (answer,) = await self._run([self._command(verb, request, arguments)])
        if isinstance(answer, ResponseError):
            raise refused_write(answer) from answer
        return answer

    async def write_each(
        self, writes: Sequence[tuple[str, Request, tuple[Argument, ...]]]
    ) -> list[Answer | ResponseError]:
        """Several writes in one round trip, each its own step; a refusal stands in its place."""
        return await self._run([self._command(*write) for write in writes]) if writes else []

    async def read(self, verb: str, key: str, *arguments: Argument) -> Any:
        """One script that keeps no answer; ``key`` says on which shard."""
        (reply,) = await self.read_each(verb, key, [arguments])
        return reply

    async def read_each(self, verb: str, key: str, calls: Sequence[tuple[Argument, ...]]) -> list[Any]:
        """The same script for each of these arguments, in one round trip; the first refusal is raised."""
        digest = self._scripts[verb].digest
        commands: list[Command] = [("EVALSHA", digest, 1, key, "-", 0, *arguments) for arguments in calls]
        try:
            replies = await self._known(commands, time.monotonic() + self._link.allowed_seconds)
        except Lost as lost:
            raise Unavailable("the data store did not answer", retry_after=1) from lost
        for reply in replies:
            if isinstance(reply, ResponseError):
                raise refused(reply) from reply
        return replies

    def _command(self, verb: str, request: Request, arguments: tuple[Argument, ...]) -> Command:
        key = keys.named("request", request.key)
        return ("EVALSHA", self._scripts[verb].digest, 1, key, request.fingerprint, request.ttl_ms, *arguments)

    async def _run(self, commands: list[Command]) -> list[Answer | ResponseError]:
        """The answers, once as many replicas as are wanted have what was written; raises OutcomeUnknown otherwise."""
        replies = await self._repeated(commands)
        copies = replies.pop() if self._replicas else 0
        answers = [reply if isinstance(reply, ResponseError) else self._answer(reply) for reply in replies]
        if all(isinstance(answer, ResponseError) for answer in answers):
            return answers
        spent = budget.current()
        if spent is not None:
            spent.written = True
        # Redis answers with an error in the place of a number when it was demoted while it waited for its replicas.
        if isinstance(copies, ResponseError) or copies < self._replicas:
            raise budget.unknown()
        return answers

    async def _repeated(self, commands: list[Command]) -> list[Any]:
        """The replies to the first attempt, or to the second if they were lost; both within the time of one."""
        began, whole = time.monotonic(), self._link.allowed_seconds
        # One given up a moment before its answer costs a connection, and whoever asks next the time for another one.
        share = FIRST_SHARE if whole >= 2 * ATTEMPT_SHARE * self._link.timeout_seconds else 1
        try:
            return await self._known(commands, began + whole * share, self._replicas)
        except Lost:
            pass
        # Safe, because the first attempt kept its answer under the request key if it was run at all.
        try:
            replies = await self._known(commands, began + whole, self._replicas)
        except (Lost, Unavailable) as lost:
            raise budget.unknown() from lost
        for reply in replies:
            if isinstance(reply, ResponseError) and isinstance(refused(reply), Unavailable):
                raise budget.unknown() from reply  # what is refused now may have been taken the first time
        return replies

    async def _known(self, commands: list[Command], ends: float, replicas: int = 0) -> list[Any]:
        """The replies; those that Redis did not know the script for are asked again after it was given.

        With ``replicas`` the last one says how many of them have all that was written until then.
        """
        replies = await self._exchange(commands, ends, replicas)
        unknown = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:
            try:
                await self.install(ends - time.monotonic())
                again = await self._exchange([commands[i] for i in unknown], ends, replicas)
            except Unavailable as error:
                if len(unknown) < len(commands):
                    raise Lost from error  # the others were run
                raise
            for i, reply in zip([*unknown, -1] if replicas else unknown, again, strict=True):
                replies[i] = reply
        return replies

    async def _exchange(self, commands: list[Command], ends: float, replicas: int) -> list[Any]:
        """In one round trip, on one connection: WAIT is about what was written on it, and about all before that."""
        left = max(0.0, ends - time.monotonic())
        if replicas:
            commands = [*commands, ("WAIT", replicas, max(1, int(left * 1000 * WAIT_SHARE)))]  # 0 would be for ever
        return await self._link.exchange(commands, left)

    def _answer(self, reply: list[Any]) -> Answer:
        again, value, *extra = reply
        place = position.parse(value)
        if place is not None and place > self.written:
            self.written = place
        return Answer(bool(again), value, extra)


def position_of(answer: Answer) -> Position:
    """The place of the entry that a write made; an answer without one is our own fault."""
    place = position.parse(answer.value)
    if place is None:
        raise Internal("the data store answered without a position")
    return place


@cache
def load(sizes: Sizes) -> Mapping[str, Script]:
    """All scripts by name, each with what stands before it: names, numbers, the prelude and the parts that it needs."""
    folder = resources.files(__package__).joinpath("lua")
    prelude = folder.joinpath("prelude.lua").read_text("utf-8")
    verbs = [file for file in folder.iterdir() if file.name.endswith(".lua") and file.name != "prelude.lua"]
    return {file.name.removesuffix(".lua"): _script(prelude, file.read_text("utf-8"), folder, sizes) for file in verbs}


def _script(prelude: str, verb: str, folder: Traversable, sizes: Sizes) -> Script:
    parts = _PARTS.match(verb)
    names = parts[1].split() if parts else []
    body = "\n".join([prelude, *(folder.joinpath("parts", f"{name}.lua").read_text("utf-8") for name in names), verb])
    head = (
        f"{keys.lua_table(set(_KEY.findall(body)))}\n"
        f"local LIMIT,CAP,PASS='{sizes.log_max_entries}',{sizes.timeline_max},{sizes.pass_size}\n"
        f"local GRACE_MS,LEASE_MS,FOLLOWED={GRACE_MS},{LEASE_MS},{FOLLOWED}\n"
        f"local SIGHT='{sight.table()}'\n"
    )
    text = head + body
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())
