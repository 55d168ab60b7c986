"""A WebSocket without a token: it is open before its user is known, and its first message must bring the token.

Few such sockets are open at the same time, and none for long. The parameters are checked after the token, as those of
other requests. A fault is reported by an `error` message and a close frame, because the answer 101 has been sent.
"""

import asyncio
from collections.abc import Awaitable, Callable

from websockets.frames import CloseCode

from stream_server.errors import ApiError, BadRequest, Unauthorized
from stream_server.hub.client_registry import EMPTY_CONTEXT
from stream_server.hub.disconnect import DisconnectReason
from stream_server.web.http.app_keys import CLAIMS, HUB, OPENING, UNPROVEN
from stream_server.web.http.authentication import require_route_for_readers
from stream_server.web.http.opening import Opening, OpeningState
from stream_server.web.http.request_limits import LIMITS, StreamSlot, reject_when_draining
from stream_server.web.limits.rate_limits import CONNECTS
from stream_server.web.route import Request
from stream_server.web.streaming.stream import hello_bytes
from stream_server.web.streaming.stream_plan import StreamPlan
from stream_server.web.websocket.connection import CLOSE_CODES, WebSocketConnection
from stream_server.web.websocket.operations import (
    Operation,
    as_refusal,
    check_token,
    count_refusal,
    encode_error,
    parse_operation,
    start_stream,
    take_token,
)

TOKEN_SECONDS = 5.0
"""Seconds in which a WebSocket that was opened without a token has to send one."""


class FirstMessage:
    """Waits for the token of one WebSocket, then starts its stream."""

    def __init__(
        self, request: Request, plan: Callable[[], Awaitable[StreamPlan]], connection: WebSocketConnection,
        slot: StreamSlot,
    ) -> None:  # fmt: skip
        """``plan`` plans the stream of the request, once its claims are known. ``slot`` is that of this socket."""
        self._request = request
        self._app = request.app
        self._plan = plan
        self._connection = connection
        self._slot = slot
        self._task: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        late = Unauthorized("no token came in time")
        self._timer = loop.call_later(TOKEN_SECONDS, self._refuse, late, {}, context=EMPTY_CONTEXT)
        connection.receiver = connection.listener = self
        self._app[UNPROVEN].add(self.go_away)

    def on_text(self, payload: bytes) -> None:
        """Check the token in the client's first message. Any other message closes the socket."""
        try:
            operation = parse_operation(payload)
            if operation.name != "token":
                raise BadRequest("the first message must bring the token", param="op")
        except ApiError as error:
            self._refuse(error, {})
            return
        self._connection.set_busy(is_busy=True)
        self._task = self._app[HUB].background_tasks.start(self._prove(operation), "first message of a WebSocket")

    async def _prove(self, operation: Operation) -> None:
        """Check the token and the parameters, then send `hello` and start the stream."""
        request, app, limits = self._request, self._app, self._app[LIMITS]
        try:
            async with limits.openings.slot() as asking:
                request[OPENING] = Opening(OpeningState.WITH_SLOT, asking)
                claims = request[CLAIMS] = await check_token(app, take_token(operation.members), self._slot.address)
                if claims.reader is not None:
                    require_route_for_readers(request.route)
                await limits.check(request, (CONNECTS,))
                plan = await self._plan()
                reject_when_draining(request)
                slot = limits.take_stream(request)
                slot.release, self._slot.release = self._slot.release, None
                self._forget()
                self._connection.payer = limits.payer(request)
                self._connection.write(hello_bytes(app, plan))
                start_stream(app, claims, plan, self._connection, slot)
        except Exception as error:  # noqa: BLE001 - the client is told
            self._refuse(as_refusal(error), operation.echo)
        finally:
            self._task = None
        self._connection.set_busy(is_busy=False)

    def _refuse(self, error: ApiError, echo: dict[str, object]) -> None:
        """Tell the client what is wrong, and close the socket."""
        count_refusal(self._app, error)
        self._connection.send(encode_error(error, echo))
        later = CloseCode.TRY_AGAIN_LATER
        codes = {429: later, 500: CloseCode.INTERNAL_ERROR, 503: later}
        self._close(codes.get(error.status, CloseCode.POLICY_VIOLATION), error.message)

    def go_away(self) -> None:
        """Close the socket, because the server stops."""
        self._close(CloseCode.GOING_AWAY, "the server is stopping")

    def on_fault(self, reason: DisconnectReason) -> None:
        """Close the socket, because the client broke the protocol."""
        self._close(CLOSE_CODES[reason.code], reason.text)

    def _close(self, code: CloseCode, reason: str) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._timer.cancel()
        self._connection.close(code, reason)

    def stop(self) -> None:
        """Stop the check of a token."""
        if self._task is not None:
            self._task.cancel()

    def connection_lost(self) -> None:
        """Forget the socket, which has ended before its token was known."""
        self.stop()
        self._forget()

    def _forget(self) -> None:
        """Remove the socket from the sockets without a token."""
        self._timer.cancel()
        self._app[UNPROVEN].discard(self.go_away)
        self._slot()
