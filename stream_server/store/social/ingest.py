"""Ingest: users, statuses and follows of another site, under the ids of that site (foreign ids).

Each line is one atomic script. The script finds the own ids of the users and statuses that the line names. It keeps its
reply under the line's name for ever, in ``{core}:ingested``. So a line that comes again gets the same reply and changes
nothing, also after a restart of all processes.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from redis.exceptions import ResponseError

from stream_server.errors import ApiError, InternalError
from stream_server.events.language import LanguageDetector
from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.refusals import write_error_to_api_error
from stream_server.store.redis.replies import parse_reply_position
from stream_server.store.redis.scripts import ScriptArgument, Scripts, WriteReply
from stream_server.store.social.noun import Noun
from stream_server.store.social.statuses import StatusDraft, post_arguments
from stream_server.store.social.stored_json import encode_json, flag_text
from stream_server.store.social.users import ProfileCard
from stream_server.store.timelines.syndication import FanOut, Syndication, TimelineChange

_TIMELINE_MODES = {"follow": "merge", "unfollow": "remove"}


class IngestWrite(NamedTuple):
    """One line that is ready to be written.

    Attributes:
        op: What the line does: ``user``, ``post``, ``delete``, ``follow`` or ``unfollow``. A script has its name.
        name: The line's id: the foreign id of the user, status or change, or two foreign ids with a comma between.
        arguments: Arguments of the script.
    """

    op: str
    name: str
    arguments: tuple[ScriptArgument, ...]


class Ingested(NamedTuple):
    """The result of one line: the own id of its user or status, and the position of the log where it took effect."""

    id: str
    position: Position


class Ingest(Noun):
    """Writes the lines of another site."""

    def __init__(
        self, redis: RedisClient, scripts: Scripts, syndication: Syndication, detect_language: LanguageDetector
    ) -> None:
        super().__init__(redis, scripts, syndication)
        self._detect_language = detect_language

    async def begin(self, uid: str, token_digest: str) -> None:
        """Record in the audit log that a token of ``uid`` ingests, once for each token (hexadecimal digest of its id).

        Raises `Unavailable` if Redis does not answer.
        """
        await self._scripts.call("ingest_begin", keys.META, uid, token_digest)

    def user(self, foreign_id: str, login: str | None, card: ProfileCard) -> IngestWrite:
        """Return the line that creates a user. Without ``login``, the login is `u` and the user's id."""
        members = card.json_members() + b',"foreign_id":' + encode_json(foreign_id)
        texts = {"name": card.name, "bio": card.bio, "url": card.url, "place": card.place, "lang": card.lang}
        fields = [part for name, text in texts.items() if text for part in (name, text)]
        return IngestWrite("user", foreign_id, (login or "", members, flag_text(card.protected), *fields))

    def post(self, foreign_id: str, author: str, draft: StatusDraft, posted_ms: int | None) -> IngestWrite:
        """Return the line that posts a status. ``author`` and the ids of ``draft`` are foreign ids.

        ``posted_ms`` is the time that the status shows, in ms since 1970; None for the time of its arrival.
        """
        arguments = post_arguments(draft, self._detect_language, foreign_id, posted_ms)
        return IngestWrite("post", foreign_id, (author, *arguments))

    def delete(self, foreign_id: str) -> IngestWrite:
        """Return the line that deletes a status."""
        return IngestWrite("delete", foreign_id, (foreign_id,))

    def change_follow(self, op: str, source: str, target: str, change_id: str | None) -> IngestWrite:
        """Return the line that makes the user ``source`` follow ``target``, or end that. ``op`` says which.

        With ``change_id``, the site's id of this change, the line takes effect once. Without, it takes effect whenever
        the state of the two users is not yet as the line wants it.
        """
        return IngestWrite(op, change_id or f"{source},{target}", (source, target))

    async def write(self, lines: Sequence[IngestWrite]) -> tuple[list[Ingested | ApiError], Awaitable[object]]:
        """Write lines in their order, in one round trip. Return the result or refusal of each, and what must follow.

        The second value updates timelines: the caller awaits it before or after the answer. If nobody does, job workers
        update them. Raises `Unavailable` if nothing was written, and `OutcomeUnknown` if replies were lost. In both
        cases the lines may be written again.
        """
        writes = [(f"ingest_{line.op}", IdempotencyKey("ingest", f"{line.op}:{line.name}", 0), line.arguments)
                  for line in lines]  # fmt: skip
        replies = await self._scripts.write_each(writes)
        done = [
            (line, reply)
            for line, reply in zip(lines, replies, strict=True)
            if isinstance(reply, WriteReply) and reply.first_time_extra
        ]
        posted = [_fan_out_of(reply) for line, reply in done if line.op == "post"]
        others = [self._follow_up(line, reply) for line, reply in done if line.op != "post"]
        return [_result(reply) for reply in replies], asyncio.gather(self._syndication.fan_out_each(posted), *others)

    async def _follow_up(self, line: IngestWrite, reply: WriteReply) -> None:
        """Update the timelines of the first readers. A failure is left to a job worker."""
        if line.op == "delete":
            await self._syndication.withdraw(_fan_out_of(reply))
        else:
            actor, fence, newest = reply.first_time_extra
            mode, own_id = _TIMELINE_MODES[line.op], _result_of(reply).id
            change = TimelineChange("home", actor.decode(), own_id, mode, fence, newest.split())
            await self._syndication.apply_changes(change)


def _fan_out_of(reply: WriteReply) -> FanOut:
    """Return the timelines that follow from a reply to ``post`` or ``delete``."""
    actor, fence, *readers = reply.first_time_extra
    return FanOut(actor.decode(), _result_of(reply).id, fence, *(words.split() for words in readers))


def _result(reply: WriteReply | ResponseError) -> Ingested | ApiError:
    return write_error_to_api_error(reply) if isinstance(reply, ResponseError) else _result_of(reply)


def _result_of(reply: WriteReply) -> Ingested:
    position = parse_reply_position(reply.value)
    if position is None:
        raise InternalError("the data store answered without a position")
    return Ingested(reply.value.rpartition(b" ")[2].decode(), position)
