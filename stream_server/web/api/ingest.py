"""Ingest: the writes of another site as lines of JSON. Each is answered by a line, in order, while others arrive."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple, cast

import msgspec
from aiohttp import hdrs, web
from msgspec import UNSET, Meta, UnsetType

from stream_server.errors import ApiError, BadRequest, TooLarge, Unavailable, UnsupportedMediaType
from stream_server.store.social.ingest import Ingest, Ingested, IngestWrite
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.social.users import ProfileCard
from stream_server.web.api.statuses import MAX_MEDIA, GeoPoint, MediaLink, NamedPlace, check_message_text
from stream_server.web.api.users import Bio, PlaceText
from stream_server.web.http import fields, validation
from stream_server.web.http.app_keys import CLAIMS, CONFIG, HUB, REFUSE_WRITES, REQUEST_ID, SHUTDOWN, STORE
from stream_server.web.http.authentication import check_token_again, token_digest
from stream_server.web.http.body import normalise_json
from stream_server.web.http.cors import add_cors_headers
from stream_server.web.http.fields import Body, DisplayName, ForeignId, Id, Language, Login
from stream_server.web.http.line_reader import Line, LineReader
from stream_server.web.http.middleware import X_REQUEST_ID
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.responses import ErrorDetail
from stream_server.web.streaming.response_head import STREAM_HEADERS

NDJSON = "application/x-ndjson"
LINE_MEDIA_TYPES = frozenset({NDJSON, "application/ndjson", "application/jsonl", "application/x-jsonlines"})

BATCH_LINES = 100
"""Most lines of one round trip. Redis needs 10 to 30 ms for them, between which it serves others."""

BATCH_BYTES = 64 * 1024
"""Size in bytes after which a batch takes no further line. The event loop is held while a batch is parsed."""

CHECK_SECONDS = 0.5
"""Seconds between two looks at the token and at the shutdown, while no line arrives."""

MAX_BATCHES_BEHIND = 2
"""Most batches that are answered while their timelines are still written. With one, Redis would stand still until the
server has heard of the timelines and has sent the next batch."""

MAX_FUTURE_SECONDS = 60
"""Seconds by which the clock of the site may be ahead of this server's."""

_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$(?!\n)"
PastTime = Annotated[str, Meta(pattern=_TIME, description="a time such as 2026-01-31T12:00:00Z, since 1970")]
ChangeId = Annotated[ForeignId, Meta(description="the site's own id of this change; with it, the line counts once")]


class IngestedUser(Body, kw_only=True):
    """A user of the site. Without ``login``, the server makes one. Without ``name``, the login or foreign id is it."""

    foreign_id: ForeignId
    login: Login | None = None
    name: DisplayName | None = None
    bio: Bio | None = None
    url: fields.HttpUrl | None = None
    place: PlaceText | None = None
    lang: Language | None = None
    protected: bool = False


class IngestedStatus(StatusDraft, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A status of the site. ``author``, ``in_reply_to`` and ``origin`` are foreign ids. ``posted`` is what it shows."""

    foreign_id: ForeignId
    author: ForeignId
    message: str = ""
    location: GeoPoint | None = None
    place: NamedPlace | None = None
    in_reply_to: ForeignId | None = None
    origin: ForeignId | None = None
    lang: Language | None = None
    media: Annotated[list[MediaLink], Meta(max_length=MAX_MEDIA)] = msgspec.field(default_factory=list)
    meta: dict[str, Any] | None = None
    posted: PastTime | None = None

    def __post_init__(self) -> None:
        fields.check_text("message", self.message, allowed_controls="\n\t")
        if self.meta is not None:
            fields.check_meta(self.meta)
        if self.group is not None:
            raise ValueError("`group` must be left out: a site's statuses are in no group")


class UserLine(msgspec.Struct, tag_field="op", tag="user", forbid_unknown_fields=True):
    """Creates a user."""

    user: IngestedUser


class PostLine(msgspec.Struct, tag_field="op", tag="post", forbid_unknown_fields=True):
    """Posts a status."""

    status: IngestedStatus


class DeleteLine(msgspec.Struct, tag_field="op", tag="delete", forbid_unknown_fields=True):
    """Deletes a status."""

    status: ForeignId


class FollowLine(msgspec.Struct, tag_field="op", tag="follow", forbid_unknown_fields=True):
    """Makes the source follow the target. Both are foreign ids of users."""

    source: ForeignId
    target: ForeignId
    id: ChangeId | None = None


class UnfollowLine(FollowLine, tag_field="op", tag="unfollow", forbid_unknown_fields=True):
    """Ends the source's follow of the target."""


AnyLine = UserLine | PostLine | DeleteLine | FollowLine | UnfollowLine
LINES = (UserLine, PostLine, DeleteLine, FollowLine, UnfollowLine)
OPS = "user, post, delete, follow, unfollow"
_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)
_encoder = msgspec.json.Encoder()


class LineAnswer(msgspec.Struct):
    """The answer to one line: its number, and the own id of its user or status with a cursor, or an error."""

    line: Annotated[int, Meta(ge=1, description="the number of the line in the body")]
    id: Id | UnsetType = UNSET
    cursor: Annotated[str, Meta(description="the place in streams where the line took effect")] | UnsetType = UNSET
    error: ErrorDetail | UnsetType = UNSET

    @classmethod
    def of(cls, line: int, result: Ingested | ApiError) -> "LineAnswer":
        """Return the answer for the result of a line."""
        if isinstance(result, ApiError):
            return cls(line, error=msgspec.convert(result.body()["error"], ErrorDetail))
        return cls(line, result.id, result.position.cursor)


def parse_line(text: bytes, ingest: Ingest, message_max_chars: int) -> IngestWrite:
    """Check a line, and return its write. Raises ApiError that names the wrong member."""
    line = _decode(text)
    match line:
        case UserLine(user):
            name = user.name or user.login or user.foreign_id[:50]
            card = ProfileCard(name, user.bio, user.url, user.place, user.lang, user.protected)
            return ingest.user(user.foreign_id, user.login, card)
        case PostLine(status):
            check_message_text(status.message, message_max_chars, "status.message")
            if not status.message and status.origin is None:
                message = "a status needs a message, or an origin to repost"
                raise BadRequest(message, code="missing_parameter", param="status.message")
            return ingest.post(status.foreign_id, status.author, status, _parse_posted(status.posted))
        case DeleteLine(status_id):
            return ingest.delete(status_id)
        case FollowLine(source, target, change_id):
            if source == target:
                raise BadRequest("must be another user", param="target")
            op = "unfollow" if isinstance(line, UnfollowLine) else "follow"
            return ingest.change_follow(op, source, target, change_id)


def _decode(text: bytes) -> AnyLine:
    """Decode a line. Raises ApiError that names the wrong member."""
    text = normalise_json(text)
    try:
        return _decoder.decode(text)
    except msgspec.ValidationError as error:
        found = validation.to_api_error(str(error), cast("type", AnyLine))
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = BadRequest("the line is not JSON in UTF-8", code="malformed_body")
    if found.error_code == "malformed_body":
        raise BadRequest("the line must be a JSON object in UTF-8", code="malformed_body")
    if found.param == "op" and found.error_code == "invalid_parameter":
        raise BadRequest(f"`op` must be one of {OPS}", param="op")
    raise found


def _parse_posted(posted: str | None) -> int | None:
    """Return the time in ms since 1970. Raises BadRequest for a time that does not exist, or is in the future."""
    if posted is None:
        return None
    try:
        seconds = datetime.fromisoformat(posted).timestamp()
    except ValueError:
        raise BadRequest("there is no such time", param="status.posted") from None
    if not 0 <= seconds <= time.time() + MAX_FUTURE_SECONDS:
        raise BadRequest("must be between 1970 and now", param="status.posted")
    return round(seconds * 1000)


async def ingest(request: web.Request) -> web.StreamResponse:
    """``POST /v1/ingest``: write the lines of another site, and answer each with a line."""
    if request.content_type not in LINE_MEDIA_TYPES:
        raise UnsupportedMediaType(f"send {NDJSON}: one JSON object a line", param="Content-Type")
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise UnsupportedMediaType("send the body without a content coding", param="Content-Encoding")
    app, limits = request.app, request.app[LIMITS]
    app[REFUSE_WRITES]()
    with limits.running(request, limits.ingests):
        await app[STORE].ingest.begin(request[CLAIMS].sub, token_digest(request[CLAIMS].jti)[:32])
        return await IngestExchange(request).run()


class Batch(NamedTuple):
    """Lines that go to Redis together. ``parsed`` has the write or the refusal of each. ``next_line`` follows them."""

    lines: Sequence[Line]
    parsed: Sequence[IngestWrite | ApiError]
    next_line: int


class IngestExchange:
    """One ingest: reads lines in batches, writes each batch in one round trip, and sends the answers of the batch.

    While Redis writes a batch, the next one is read and parsed. It is written after the answers of the first were sent,
    and only if none of them is a failure. While the client takes no answers, sending waits, and so no third batch is
    read.
    """

    def __init__(self, request: web.Request) -> None:
        config = request.app[CONFIG]
        self._request = request
        self._ingest = request.app[STORE].ingest
        self._message_max_chars = config.message_max_chars
        self._lines = LineReader(request.content, config.body_max_bytes)
        self._response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: NDJSON, **STREAM_HEADERS})
        self._next_line = 1
        self._reading: asyncio.Task[Batch] | None = None
        self._timelines = deque[Awaitable[object]]()

    async def run(self) -> web.StreamResponse:
        """Answer all lines. A failure of this server, or the end of the token, is the last answer."""
        await self._begin()
        try:
            await self._answer_all()
        except ApiError as error:
            await self._send([LineAnswer.of(self._next_line, error)])
            self._response.force_close()
        finally:
            await self._stop_reading()
        while self._timelines:
            await self._timelines.popleft()
        await self._response.write_eof()
        return self._response

    async def _answer_all(self) -> None:
        self._read_ahead()
        while self._reading is not None:
            batch = await self._reading
            self._read_ahead()
            await self._answer(batch)

    def _read_ahead(self) -> None:
        """Begin to read the next batch, if there is one."""
        self._reading = None if self._lines.is_finished else asyncio.create_task(self._read(), name="ingest batch")

    async def _read(self) -> Batch:
        lines = await self._lines.take(BATCH_LINES, BATCH_BYTES, CHECK_SECONDS)
        return Batch(lines, [self._parse(line) for line in lines], self._lines.next_number)

    async def _stop_reading(self) -> None:
        """End the reading of a batch that nobody will write."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
            _ = self._reading.cancelled() or self._reading.exception()  # or asyncio logs an error that nobody took

    async def _begin(self) -> None:
        headers = self._response.headers
        headers[X_REQUEST_ID] = self._request[REQUEST_ID]
        add_cors_headers(self._request, headers)
        await self._response.prepare(self._request)

    async def _answer(self, batch: Batch) -> None:
        """Write a batch, and send its answers. Raises ApiError if the ingest must end."""
        await self._check_may_go_on()
        results = await self._write(batch.parsed)
        failure = next((result for result in results if isinstance(result, ApiError) and result.status >= 500), None)
        answered = results if failure is None else results[: results.index(failure)]
        numbered = zip(batch.lines, answered, strict=False)
        await self._send([LineAnswer.of(line.number, result) for line, result in numbered])
        self._next_line = batch.next_line
        if failure is not None:
            self._next_line = batch.lines[len(answered)].number
            raise failure

    async def _check_may_go_on(self) -> None:
        app = self._request.app
        if app[HUB].is_stopping:
            message = "this server is shutting down; send this line and those behind it again"
            raise Unavailable(message, retry_after=app[SHUTDOWN].next_retry_after())
        app[REFUSE_WRITES]()
        await check_token_again(self._request)

    def _parse(self, line: Line) -> IngestWrite | ApiError:
        try:
            if line.text is None:
                raise TooLarge("the line is too long")
            return parse_line(line.text, self._ingest, self._message_max_chars)
        except ApiError as error:
            return error

    async def _write(self, parsed: Sequence[IngestWrite | ApiError]) -> list[Ingested | ApiError]:
        """Write the valid lines in one round trip. Return the results of all lines, in their order."""
        writes = [each for each in parsed if isinstance(each, IngestWrite)]
        if not writes:
            return [each for each in parsed if isinstance(each, ApiError)]
        written, timelines = await self._ingest.write(writes)
        self._timelines.append(timelines)
        if len(self._timelines) > MAX_BATCHES_BEHIND:
            await self._timelines.popleft()
        results = iter(written)
        return [each if isinstance(each, ApiError) else _named(each.op, next(results)) for each in parsed]

    async def _send(self, answers: Sequence[LineAnswer]) -> None:
        if answers:
            await self._response.write(_encoder.encode_lines(answers))


_ACTORS = {"post": "author", "follow": "source", "unfollow": "source"}
"""The member with the user who acts, by the line's ``op``. Scripts refuse a suspended user without a parameter."""

_OBJECTS = {"post": "status.", "user": "user."}
"""The object that has the members of a line, by the line's ``op``."""


def _named(op: str, result: Ingested | ApiError) -> Ingested | ApiError:
    """Return a refusal with the parameter as the line calls it. Scripts call the target `id`."""
    if isinstance(result, ApiError) and result.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        param = "target" if result.param == "id" else result.param
        if result.error_code == "suspended":
            param = _ACTORS.get(op)
        result.param = param and _OBJECTS.get(op, "") + param
    return result
