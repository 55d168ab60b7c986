"""The operations of a client on its open stream: `update` its filters, prolong it by a `token`, `ack`, `ping`.

An operation is one JSON object in a text message. Its answer has its ``id``. An answer has no cursor, except that of an
update, which is a message of the stream: `effective`. A wrong operation is answered by an `error`, and changes nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import lru_cache, partial
from typing import Any, NamedTuple

from stream_server.errors import ApiError, BadRequest, Forbidden, InternalError, InvalidCursor, RateLimited, Unavailable
from stream_server.events.one_line import encode_json
from stream_server.events.position import Position, format_iso_time
from stream_server.hub.client import BoundFilters, StreamToken
from stream_server.hub.disconnect import DisconnectReason
from stream_server.hub.messages import StreamNotice
from stream_server.hub.stream_session import StreamSession
from stream_server.security.claims import Claims, Reader
from stream_server.store.social.subscriptions import Ack
from stream_server.web.http.app_keys import ACKS, HUB, METRICS
from stream_server.web.http.authentication import authenticate_token
from stream_server.web.http.body import decode_object
from stream_server.web.http.middleware import to_api_error
from stream_server.web.http.opening import FREE_OPENING
from stream_server.web.http.request_limits import LIMITS, StreamSlot
from stream_server.web.limits.rate_limits import ANONYMOUS, CONNECTS
from stream_server.web.route import AppValues
from stream_server.web.streaming.parameters import member_pairs
from stream_server.web.streaming.stream import attach_stream, filter_warnings
from stream_server.web.streaming.stream_plan import (
    StreamPlan,
    bind_filters,
    bind_user_filters,
    load_viewer,
    parse_filters,
    read_user_stream_kinds,
    require_scopes,
    show_to_reader,
)
from stream_server.web.streaming.stream_start import StreamStart, read_cursor
from stream_server.web.streaming.subscription_parser import (
    SUBSCRIPTION_PARAMETER,
    SUBSCRIPTION_PARSER,
    NamedFilters,
    describe,
)
from stream_server.web.websocket.connection import WebSocketConnection
from stream_server.web.websocket.framing import encode_text

logger = logging.getLogger(__name__)

STREAM_SCOPE = "stream"

MAX_ID_CHARS = 128
"""Longest ``id`` of an operation, in characters."""

Bind = Callable[[Position], Awaitable[BoundFilters]]
"""Returns filters with what they take from the user, for a stream that stands at a position."""


class Operation(NamedTuple):
    """An operation of a client: its name, its other members, and the member ``id`` that the answer repeats."""

    name: str
    members: dict[str, Any]
    echo: dict[str, object]


class Grant(NamedTuple):
    """The rights that a token gives to a stream: scopes and, for a reader token, limits. ``jti`` is the token's id."""

    jti: str
    scopes: frozenset[str]
    reader: Reader | None


def parse_operation(payload: bytes) -> Operation:
    """Return the operation in a client's message.

    Raises BadRequest unless it is a JSON object with the member ``op``, a text. A member ``id`` must be short.
    """
    members = decode_object(payload, "message")
    echo: dict[str, object] = {}
    if "id" in members:
        given = echo["id"] = members.pop("id")
        if isinstance(given, bool) or not isinstance(given, str | int) or len(str(given)) > MAX_ID_CHARS:
            raise BadRequest(f"must be a text or a whole number of at most {MAX_ID_CHARS} characters", param="id")
    name = members.pop("op", None)
    if not isinstance(name, str):
        raise BadRequest("name the operation", code="missing_parameter", param="op")
    return Operation(name, members, echo)


def encode_answer(kind: str, echo: dict[str, object], **members: object) -> bytes:
    """Return the frame of an answer."""
    return encode_text(encode_json({"kind": kind, **echo, **members}))


def encode_error(error: ApiError, echo: dict[str, object]) -> bytes:
    """Return the frame of an `error`, in the shape of all errors."""
    return encode_answer("error", echo, **error.body())


def as_refusal(error: Exception) -> ApiError:
    """Return the API error for an exception. Log an unexpected exception."""
    refused = to_api_error(error)
    if refused is None:
        logger.error("unhandled error in an operation of a WebSocket", exc_info=error)
        return InternalError("internal error; it was logged")
    return refused


def count_refusal(app: AppValues, error: ApiError) -> None:
    """Count an error that was sent to a client, as HTTP errors are counted."""
    app[METRICS].http.refusals[error.error_code] += 1
    if isinstance(error, RateLimited):
        app[LIMITS].hits.add(error.limit)


class Update:
    """The change of an open stream's filters that a client asked for.

    `stream_server.hub.client` says how the hub uses it.
    """

    def __init__(self, bind: Bind, described: str, echo: dict[str, object], refuse: Callable[[ApiError], None]) -> None:
        self._bind = bind
        self.parameters = described
        self._echo = echo
        self._warnings: list[StreamNotice] = []
        self.refuse = refuse

    async def bind(self, position: Position) -> BoundFilters:
        """Return the new filters. Raises an ApiError if Redis cannot be read, or a plug-in fails."""
        try:
            bound = await self._bind(position)
            self._warnings = filter_warnings(bound.subscription, position)
        except Exception as error:
            raise as_refusal(error) from error
        return bound

    def notices(self, position: Position) -> Iterable[StreamNotice]:
        """Return the notices for filters that now hold: an `effective` with the parameters, then the warnings."""
        members = {**self._echo, "parameters": self.parameters}
        return [StreamNotice("effective", position, members), *self._warnings]


class Operations:
    """Handles the messages of one client on its WebSocket, such as a change of its filters, one after another."""

    __slots__ = ("_app", "_connection", "_grant", "_session", "_slot", "_subscription", "_task")

    def __init__(
        self, app: AppValues, connection: WebSocketConnection, session: StreamSession, claims: Claims,
        slot: StreamSlot, subscription: Ack | None,
    ) -> None:  # fmt: skip
        """``slot`` is that of the stream. ``subscription`` is what it reads, None for no subscription."""
        self._app = app
        self._connection = connection
        self._session = session
        self._grant = _grant_of(claims)
        self._slot = slot
        self._subscription = subscription
        self._task: asyncio.Task[None] | None = None

    def on_text(self, payload: bytes) -> None:
        """Answer a client's operation: at once, or by a task if Redis must be asked."""
        echo: dict[str, object] = {}
        try:
            operation = parse_operation(payload)
            echo = operation.echo
            if operation.name == "ping":
                _refuse_other(operation.members)
                now = format_iso_time(self._app[HUB].now_ms())
                self._connection.send(encode_answer("pong", echo, at=now))
                return
            if operation.name == "ack":
                self._ack(operation)
                return
            handle = {"update": self._update, "token": self._prolong}.get(operation.name)
            if handle is None:
                message = "the operations are update, token, ack and ping"
                raise BadRequest(message, code="unknown_parameter", param="op")
        except ApiError as error:
            self._answer_error(error, echo)
            return
        self._connection.set_busy(is_busy=True)
        self._task = self._app[HUB].background_tasks.start(self._run(handle, operation), "operation of a WebSocket")

    def _ack(self, operation: Operation) -> None:
        """Acknowledge everything up to a cursor within a second. There is no answer, unless the ack is wrong."""
        cursor = read_cursor(operation.members.pop("cursor", None))
        _refuse_other(operation.members)
        read = self._subscription
        if read is None:
            raise BadRequest("this stream reads no subscription", param="op")
        if cursor > self._app[HUB].head:
            raise InvalidCursor("this stream has not sent this cursor", param="cursor")
        self._app[ACKS].add(read._replace(cursor=cursor))

    async def _run(self, handle: Callable[[Operation], Coroutine[Any, Any, None]], operation: Operation) -> None:
        try:
            async with self._app[LIMITS].openings.slot():
                await self._connection.payer.run_steps(handle(operation))
        except Exception as error:  # noqa: BLE001 - the stream goes on
            self._answer_error(as_refusal(error), operation.echo)
        finally:
            self._task = None
        self._connection.set_busy(is_busy=False)

    def _answer_error(self, error: ApiError, echo: dict[str, object]) -> None:
        count_refusal(self._app, error)
        self._connection.send(encode_error(error, echo))

    async def _update(self, operation: Operation) -> None:
        """Check the parameters of an update, then change the filters of the stream."""
        if self._subscription is not None:
            raise BadRequest("the parameters of a subscription are changed by PUT /v1/subscriptions", param="op")
        given = operation.members.pop("parameters", None)
        _refuse_other(operation.members)
        if not isinstance(given, dict):
            raise BadRequest("must be a JSON object with the filters", param="parameters")
        client, app = self._session, self._app
        await app[LIMITS].use_without_request(CONNECTS, client.user_id or self._slot.address, self._scopes)
        parameters = dict(member_pairs(given, app[SUBSCRIPTION_PARSER].separators))
        if "since" in parameters:
            raise BadRequest("an open stream goes on from its position", param="since")
        described = describe(parameters)
        bind = await self._plan(client.user_id, parameters)
        refuse = partial(self._answer_error, echo=operation.echo)
        if not self._session.change_filters(Update(bind, described, operation.echo, refuse)):
            message = "the update before this one is not in force yet"
            raise RateLimited(message, limit="concurrent updates", retry_after=1)

    async def _plan(self, uid: str, parameters: dict[str, str]) -> Bind:
        """Check the parameters of an update. Return a function that binds the new filters at a position of the log."""
        app, view = self._app, self._session.private_view
        if view is not None and view.is_own_stream:
            kinds = read_user_stream_kinds(parameters)

            async def bind_own(position: Position) -> BoundFilters:
                return bind_user_filters(app, kinds, await load_viewer(app, uid, FREE_OPENING), position)

            return bind_own
        filters = app[SUBSCRIPTION_PARSER].read_stream(parameters)
        if isinstance(filters, NamedFilters):
            raise BadRequest("open another stream for a subscription", param=SUBSCRIPTION_PARAMETER)
        if filters.summary_ms != self._session.framing.summary_ms:
            raise BadRequest("an open stream keeps its summary: send the same, or none if it has none", param="summary")
        subscription = await parse_filters(app, filters, self._scopes, self._connection.payer, FREE_OPENING)
        if self._grant.reader is not None:
            subscription = show_to_reader(subscription, self._grant.reader)

        async def bind(position: Position) -> BoundFilters:
            viewer = None if subscription.viewer_independent else await load_viewer(app, uid, FREE_OPENING)
            start, payer = StreamStart(position), self._connection.payer
            bound = await bind_filters(app, uid, subscription, viewer, start, FREE_OPENING, payer)
            if bound.position != position:
                message = "rules that you had at this position are forgotten; try again when the stream is at the head"
                raise Unavailable(message, retry_after=1)
            require_scopes(subscription, self._scopes)  # again: another token may have come meanwhile
            return bound

        return bind

    @property
    def _scopes(self) -> frozenset[str]:
        """The scopes of the stream's token. If the token was replaced over HTTP, only the scopes that it must have."""
        client = self._session
        if client.token.jti == self._grant.jti:
            return self._grant.scopes
        return client.subscription.required_scopes | {STREAM_SCOPE}

    async def _prolong(self, operation: Operation) -> None:
        """Let the stream go on with another token of the same user, or with a reader token that has the same rule."""
        token = take_token(operation.members)
        client, app = self._session, self._app
        claims = await check_token(app, token, self._slot.address)
        if claims.sub != client.user_id:
            raise Forbidden("this token is of another user", code="not_yours", param="token")
        reader = self._grant.reader
        if reader is not None and (claims.reader is None or claims.reader.within != reader.within):
            raise Forbidden("this token has another `within`", code="not_yours", param="token")
        if missing := client.subscription.required_scopes - claims.scopes:
            raise Forbidden(f"the token lacks the scope {' '.join(sorted(missing))}", param="token")
        if client.disconnect_reason is not None:
            return  # the stream ends, and its goodbye is on the way
        if claims.reader is not None:
            self._slot.count_for(app[LIMITS].limited_token(claims.jti, claims.reader, self._slot.token))
        app[HUB].registry.prolong(client, StreamToken(claims.jti, claims.session, claims.iat, claims.exp))
        self._grant = _grant_of(claims)
        expires = format_iso_time(int(claims.exp * 1000))
        self._connection.send(encode_answer("token", operation.echo, expires=expires))

    def on_fault(self, reason: DisconnectReason) -> None:
        """End the stream with a goodbye and a close frame."""
        self._session.disconnect(reason)

    def stop(self) -> None:
        """Stop the stream and the running operation."""
        self._cancel()
        self._session.stop()

    def connection_lost(self) -> None:
        """Clean up after the connection has ended."""
        self._cancel()
        self._session.connection_lost()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def start_stream(
    app: AppValues, claims: Claims, plan: StreamPlan, connection: WebSocketConnection, slot: StreamSlot
) -> None:
    """Start the planned stream on ``connection``, and handle what its client sends. `hello` has been sent."""
    session = attach_stream(app[HUB], plan, connection, slot)
    operations = Operations(app, connection, session, claims, slot, plan.subscription)
    connection.receiver = connection.listener = operations


def take_token(members: dict[str, Any]) -> str:
    """Return the member ``token`` of an operation. Raises BadRequest if it is missing or is not the only member."""
    token = members.pop("token", None)
    _refuse_other(members)
    if not isinstance(token, str):
        raise BadRequest("send the token as text", code="missing_parameter", param="token")
    return token


async def check_token(app: AppValues, token: str, address: str) -> Claims:
    """Return the claims of a token for streams. Count an invalid one for the address: it may be a guess."""
    try:
        claims = await authenticate_token(app, token)
    except ApiError as error:
        if error.status == 401:
            await app[LIMITS].use_without_request(ANONYMOUS, address)
        raise
    if STREAM_SCOPE not in claims.scopes:
        raise Forbidden(f"the token lacks the scope {STREAM_SCOPE}", param="token")
    return claims


def _refuse_other(members: dict[str, Any]) -> None:
    for name in members:
        raise BadRequest("unknown member of this operation", code="unknown_parameter", param=name[:64])


def _grant_of(claims: Claims) -> Grant:
    return Grant(claims.jti, _share(claims.scopes), claims.reader)


@lru_cache(256)
def _share(scopes: frozenset[str]) -> frozenset[str]:
    """Return an equal set that other streams use too, to save memory."""
    return scopes
