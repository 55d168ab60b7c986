"""Ingest: users, statuses and relations of another site, under the ids of that site (foreign ids).

Each line is one atomic script. The script finds the own ids of the users and statuses that the line names. It keeps its
reply under the line's name for ever, in ``{core}:ingested``. So a line that comes again gets the same reply and changes
nothing, also after a restart of all processes. A line about a state, without an id of its own, is compared with the
state instead: a profile, a pair of users, a suspension.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, NamedTuple

from redis.exceptions import ResponseError

from stream_server.errors import ApiError
from stream_server.events.language import LanguageDetector
from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.refusals import write_error_to_api_error
from stream_server.store.redis.scripts import ScriptCall, ScriptRunner, WriteReply, position_of
from stream_server.store.social.noun import Noun
from stream_server.store.social.statuses import StatusDraft, edit_call, post_call
from stream_server.store.social.users import profile_arguments
from stream_server.store.timelines.syndication import FanOut, Syndication, TimelineChange


class IngestWrite(NamedTuple):
    """One line that is ready to be written.

    Attributes:
        op: What the line does, such as ``user``, ``post`` or ``follow``.
        name: The line's id: the foreign id of the status or change. A name with a comma is that of a state.
        call: The call of the script that makes the write.
    """

    op: str
    name: str
    call: ScriptCall


class Ingested(NamedTuple):
    """The result of one line.

    Attributes:
        id: The own id of its user or status.
        position: The position of the log where the line took effect.
        outcome: Of a ``user`` line: ``created``, ``updated`` or ``unchanged``. Empty for others.
        login: Of a ``user`` line: the user's login. Empty for others.
    """

    id: str
    position: Position
    outcome: str = ""
    login: str = ""


class Ingest(Noun):
    """Writes the lines of another site."""

    def __init__(
        self, redis: RedisClient, scripts: ScriptRunner, syndication: Syndication, detect_language: LanguageDetector
    ) -> None:
        super().__init__(redis, scripts, syndication)
        self._detect_language = detect_language

    async def begin(self, uid: str, token_digest: str) -> None:
        """Record in the audit log that a token of ``uid`` ingests, once for each token (hexadecimal digest of its id).

        Raises `Unavailable` if Redis does not answer.
        """
        await self._scripts.call("ingest_begin", keys.META, uid=uid, digest=token_digest)

    def user(
        self, foreign_id: str, login: str, profile: Mapping[str, str | bool | None], change_id: str | None = None
    ) -> IngestWrite:
        """Return the line that creates a user, or changes the user's profile as :meth:`Users.update` does.

        A new user gets ``login`` if nobody has it, and else `u` and the own id. The login of a known user stays.
        ``profile`` maps names of :class:`ProfileCard` members to values; None removes a value. With ``change_id``, the
        site's id of this change, the line takes effect once.
        """
        named = {"foreign_id": foreign_id, "login": login}
        call = ScriptCall("ingest_user", named, profile_arguments(profile, login or foreign_id[:50]))
        return IngestWrite("user", change_id or f"{foreign_id},", call)

    def post(self, foreign_id: str, author: str, draft: StatusDraft, posted_ms: int | None) -> IngestWrite:
        """Return the line that posts a status. ``author`` and the ids of ``draft`` are foreign ids.

        ``posted_ms`` is the time that the status shows, in ms since 1970; None for the time of its arrival.
        """
        call = post_call(author, draft, self._detect_language, foreign_id, posted_ms)
        return IngestWrite("post", foreign_id, call._replace(script="ingest_post"))

    def edit(self, foreign_id: str, changes: Mapping[str, Any], change_id: str | None) -> IngestWrite:
        """Return the line that edits a status as :meth:`Statuses.edit` does, whatever its age.

        ``change_id`` is as in :meth:`change_relation`.
        """
        call = edit_call("ingest_edit", changes, self._detect_language, foreign_id=foreign_id)
        return IngestWrite("edit", change_id or f"{foreign_id},", call)

    def delete(self, foreign_id: str) -> IngestWrite:
        """Return the line that deletes a status."""
        return IngestWrite("delete", foreign_id, ScriptCall("ingest_delete", {"foreign_id": foreign_id}))

    def change_relation(self, op: str, source: str, target: str, change_id: str | None) -> IngestWrite:
        """Return the line by which ``source`` follows, blocks or mutes ``target``, or ends that.

        With ``change_id``, the site's id of this change, the line takes effect once. Without it, the line takes effect
        whenever the two users do not have the wanted state.
        """
        users = {"foreign_source": source, "foreign_target": target}
        if op in {"follow", "unfollow", "block"}:
            call = ScriptCall(f"ingest_{op}", users)
        else:
            call = ScriptCall("ingest_relation", {**users, "kind": op})
        return IngestWrite(op, change_id or f"{source},{target}", call)

    def change_suspension(self, op: str, foreign_id: str, change_id: str | None, by: str) -> IngestWrite:
        """Return the line that suspends a user or reinstates one (``op``). ``by`` is the own id of the token's user.

        ``change_id`` is as in :meth:`change_relation`.
        """
        call = ScriptCall("ingest_suspension", {"foreign_id": foreign_id, "admin": by, "kind": op})
        return IngestWrite(op, change_id or f"{foreign_id},", call)

    def delete_user(self, foreign_id: str, change_id: str | None, by: str) -> IngestWrite:
        """Return the line that deletes the account of a user. ``by`` is the own id of the token's user.

        ``change_id`` is as in :meth:`change_relation`.
        """
        call = ScriptCall("ingest_delete_user", {"foreign_id": foreign_id, "admin": by})
        return IngestWrite("delete_user", change_id or f"{foreign_id},", call)

    async def write(self, lines: Sequence[IngestWrite]) -> tuple[list[Ingested | ApiError], Awaitable[object]]:
        """Write lines in their order, in one round trip. Return the result or refusal of each, and what must follow.

        The second value updates timelines: the caller awaits it before or after the answer. If nobody does, job workers
        update them. Raises `Unavailable` if nothing was written, and `OutcomeUnknown` if replies were lost. In both
        cases the lines may be written again.
        """
        writes = [(line.call, IdempotencyKey("ingest", f"{line.op}:{line.name}", 0)) for line in lines]
        replies = await self._scripts.write_each(writes)
        done = [
            (line, reply)
            for line, reply in zip(lines, replies, strict=True)
            if isinstance(reply, WriteReply) and reply.first_time
        ]
        posted = [_fan_out_of(reply) for line, reply in done if line.op == "post"]
        others = [self._follow_up(line, reply) for line, reply in done if line.op != "post"]
        results = [
            write_error_to_api_error(reply) if isinstance(reply, ResponseError) else _result_of(reply)
            for reply in replies
        ]
        return results, asyncio.gather(self._syndication.fan_out_each(posted), *others)

    async def _follow_up(self, line: IngestWrite, reply: WriteReply) -> None:
        """Update the timelines of the first readers after the line was written.

        If that fails, a job worker updates them.
        """
        if line.op == "delete":
            await self._syndication.withdraw(_fan_out_of(reply))
            return
        first = reply.first_time
        source, target = first["uid"].decode(), _result_of(reply).id
        mode = "merge" if line.op == "follow" else "remove"
        changes = [TimelineChange("home", source, target, mode, first["fence"], first["newest"].split())]
        if "fence_back" in first:  # a block
            newest = first["newest_back"].split()
            changes.append(TimelineChange("home", target, source, mode, first["fence_back"], newest))
        await self._syndication.apply_changes(*changes)


def _fan_out_of(reply: WriteReply) -> FanOut:
    """Return which timelines to update, from the script's reply to a line ``post`` or ``delete``."""
    first = reply.first_time
    followers, lists, asleep = (first[name].split() for name in ("followers", "lists", "asleep"))
    return FanOut(first["uid"].decode(), _result_of(reply).id, first["fence"], followers, lists, asleep)


def _result_of(reply: WriteReply) -> Ingested:
    _, _, *outcome_and_login, own_id = reply.value.decode().split(" ")
    return Ingested(own_id, position_of(reply), *outcome_and_login)
