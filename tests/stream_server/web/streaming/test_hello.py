"""The `hello` of a stream is the same whether its text is filled into a pattern or encoded as a whole."""

from types import SimpleNamespace
from typing import Any

import pytest

from filters.subscription import Subscription
from filters.track import Track
from stream_server.events.position import Position
from stream_server.hub import messages
from stream_server.hub.client import StreamToken, SubscribeRequest
from stream_server.web.http.app_keys import CONFIG, HUB
from stream_server.web.streaming.framing import NDJSON, SSE, select_framing
from stream_server.web.streaming.stream import HELLO_LIMITS, HELLO_SERVER, hello_bytes
from stream_server.web.streaming.stream_plan import StreamPlan
from stream_server.web.websocket.framing import select_framing as select_websocket_framing

NOW_MS, RETRY_MS, BEAT = 1_795_197_600_123, 2500, 0.25
FRAMINGS = {
    SSE: select_framing(SSE, chunked=True),
    NDJSON: select_framing(NDJSON, chunked=False),
    "websocket": select_websocket_framing(compresses=False),
    "compressed websocket": select_websocket_framing(compresses=True),
}


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("position", [Position(0, 0, 0), Position(NOW_MS, 7, 12_345_678)], ids=["start", "later"])
def test_the_first_message_is_that_of_its_encoder(framing: Any, position: Position) -> None:
    config = SimpleNamespace(retry_ms=RETRY_MS, heartbeat_seconds=BEAT)
    app: Any = {CONFIG: config, HUB: SimpleNamespace(now_ms=lambda: NOW_MS)}
    for connection in ("0123456789abcdef", "fedcba9876543210"):
        subscription = Subscription([Track.parse("zebra")])
        asked = SubscribeRequest(connection, "1", StreamToken("j"), subscription, framing, position)
        hello = messages.hello_message(position, NOW_MS, connection, HELLO_LIMITS, HELLO_SERVER, RETRY_MS, BEAT)
        assert b'"heartbeat_seconds":0.25,' in hello.data
        plan = StreamPlan(asked, (), may_warn=False)
        assert hello_bytes(app, plan) == framing.encode_control(hello)
