"""The bytes of a stream, and the choice of the format by `Accept`."""

import pytest

from stream_server.errors import NotAcceptable
from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.messages import ControlMessage
from stream_server.web.streaming.framing import (
    NDJSON,
    SSE,
    encode_ndjson,
    encode_sse,
    encode_sse_control,
    negotiate_media_type,
    wrap_chunk,
)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("*/*", NDJSON),
        ("text/event-stream", SSE),
        ("application/x-ndjson", NDJSON),
        ("TEXT/Event-Stream", SSE),
        ("text/html, text/event-stream", SSE),
        ("*/*, text/event-stream", NDJSON),
        ("*/*;q=0.1, text/event-stream", SSE),
        ("text/event-stream;q=0.2, application/x-ndjson;q=0.9", NDJSON),
        ("text/*", SSE),
    ],
)
def test_the_media_type_is_chosen_by_quality_then_by_order(accept: str, chosen: str) -> None:
    """RFC 9110, section 12.5.1."""
    assert negotiate_media_type(accept) == chosen


@pytest.mark.parametrize("accept", ["text/html", "image/png, text/html", "", "text/event-stream;q=0", "*/*;q=x"])
def test_an_unacceptable_accept_header_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptable) as refused:
        negotiate_media_type(accept)
    assert (refused.value.status, refused.value.param) == (406, "Accept")


def test_an_event_has_id_kind_and_data() -> None:
    entry = Entry(Position(1_704_067_200_001, 0, 1), "user_update", "public", b'{"wire":{"user":{"id":"2"}}}')
    at = '"cursor":"1704067200001-0.1","at":"2024-01-01T00:00:00.001Z"'
    data = f'{{"kind":"user_update",{at},"user":{{"id":"2"}}}}'.encode()
    assert encode_sse(entry, None) == b"id: 1704067200001-0.1\nevent: user_update\ndata: %b\n\n" % data
    assert encode_ndjson(entry, None) == data + b"\n"
    assert encode_ndjson(entry, b"[7]") == data[:-1] + b',"matched":[7]}\n'


def test_only_a_control_message_with_retry_carries_it() -> None:
    assert encode_sse_control(ControlMessage("hello", "5-0.1", b"{}", 2000)).startswith(b"retry: 2000\nid: 5-0.1\n")
    assert b"retry" not in encode_sse_control(ControlMessage("heartbeat", "5-0.1", b"{}"))


def test_a_chunk_length_counts_bytes() -> None:
    assert wrap_chunk("é".encode() * 10) == b"14\r\n" + "é".encode() * 10 + b"\r\n"
