"""Encoding of v1.1 messages."""

import json
from typing import Any

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub import disconnect, messages
from stream_server.hub.messages import ControlMessage, Gap
from stream_server.web.dialects.v1_framing import V1FramingOptions, encode_delimited, encode_plain, select_v1_framing
from tests.stream_server.web.dialects.status_json import status

AT = Position(1_795_197_600_000, 0, 7)
NOW_MS = 1_795_197_600_005

PLAIN = select_v1_framing(V1FramingOptions("filter"))
COUNTED = select_v1_framing(V1FramingOptions("filter", delimited=True, stall_warnings=True))


def entry(kind: str, wire: dict[str, Any]) -> Entry:
    return Entry(AT, kind, "public", json.dumps({"wire": wire}).encode())


POST = entry("post", {"status": status(message="tea\r\nfor 😍 &\u2028two")})
DELETE = entry("delete", {"status": {"id": "10", "uid": "2", "deleted": True}})


def test_a_message_is_one_line_that_ends_with_crlf() -> None:
    made = encode_plain(POST, None)
    assert made.endswith(b"}\r\n")
    assert made.count(b"\r") == 1
    assert json.loads(made)["text"] == "tea\r\nfor 😍 &\u2028two"
    assert json.loads(encode_plain(DELETE, None)) == {
        "delete": {
            "status": {"id": 10, "id_str": "10", "user_id": 2, "user_id_str": "2"},
            "timestamp_ms": "1795197600000",
        }
    }


@pytest.mark.parametrize("one", [POST, DELETE])
def test_a_length_counts_the_bytes_with_the_line_end(one: Entry) -> None:
    length, _, rest = encode_delimited(one, None).partition(b"\r\n")
    assert rest == encode_plain(one, None)
    assert int(length) == len(rest)


def test_an_edit_is_a_delete_and_the_new_status() -> None:
    """Each has a length of its own."""
    edit = entry("edit", {"status": status(message="tea")})
    told = [json.loads(line) for line in encode_plain(edit, None).splitlines()]
    assert [one.get("text", "delete") for one in told] == ["delete", "tea"]
    assert told[0]["delete"]["status"]["id_str"] == told[1]["id_str"]
    lines = encode_delimited(edit, None).split(b"\r\n")
    assert [int(length) for length in lines[:-1:2]] == [len(line) + 2 for line in lines[1::2]]
    assert b"".join(line + b"\r\n" for line in lines[1::2]) == encode_plain(edit, None)


@pytest.mark.parametrize("kind", ["like", "follow", "comment"])
def test_other_kinds_give_no_bytes(kind: str) -> None:
    one = entry(kind, {"status": status()})
    assert encode_plain(one, None) == encode_delimited(one, None) == b""


@pytest.mark.parametrize(
    "wire",
    [
        {"status": {"id": "10", "uid": "2"}},
        {"status": status(id="ten")},
        {"status": status(posted="yesterday")},
        {"status": status(location=[1, 2])},
        {"status": None},
        {},
    ],
)
def test_an_incomplete_status_is_logged_and_skipped(wire: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    assert encode_plain(Entry(AT, "post", "public", json.dumps({"wire": wire or {"x": 1}}).encode()), None) == b""
    assert AT.cursor in caplog.text


@pytest.mark.parametrize("made", [PLAIN, COUNTED])
def test_heartbeat_and_hello_are_a_blank_line(made: Any) -> None:
    assert made.encode_control(messages.heartbeat_message(AT, NOW_MS, 0)) == b"\r\n"
    assert made.encode_control(messages.hello_message(AT, NOW_MS, "c", "{}", "s")) == b"\r\n"


@pytest.mark.parametrize(
    ("why", "code"),
    [
        (disconnect.shutdown_reason(1.0), 1),
        (disconnect.TOO_SLOW, 4),
        (disconnect.TOKEN_REVOKED, 6),
        (disconnect.TOKEN_EXPIRED, 6),
        (disconnect.SUSPENDED, 6),
        (disconnect.BACKFILL_DONE, 9),
        (disconnect.RESYNC, 12),
        (disconnect.DisconnectReason("unheard_of", "Who knows.", None), 10),
    ],
)
def test_a_disconnect_message_has_code_and_stream_name(why: disconnect.DisconnectReason, code: int) -> None:
    message = json.loads(PLAIN.encode_control(messages.goodbye_message(AT, NOW_MS, why)))
    assert message == {"disconnect": {"code": code, "stream_name": "filter", "reason": why.text}}


def test_every_disconnect_reason_has_its_own_code() -> None:
    reasons = [one for one in vars(disconnect).values() if isinstance(one, disconnect.DisconnectReason)]
    ours = [one.code for one in reasons if one is not disconnect.GONE]
    assert len(ours) > 5
    for code in ours:
        goodbye = messages.goodbye_message(AT, NOW_MS, disconnect.DisconnectReason(code, "", None))
        message = json.loads(PLAIN.encode_control(goodbye))
        assert message["disconnect"]["code"] != 10, code


@pytest.mark.parametrize(("missed", "number"), [(5, 5), (None, 0)])
def test_a_gap_is_a_limit_message(missed: int | None, number: int) -> None:
    message = json.loads(PLAIN.encode_control(messages.gap_message(Gap("c", AT, "trimmed", missed), NOW_MS)))
    assert message == {"limit": {"track": number, "timestamp_ms": "1795197600005"}}


def test_warnings_are_sent_on_request_only() -> None:
    body = b'{"kind":"warning","code":"falling_behind","percent":60}'
    warning = ControlMessage("warning", AT.cursor, body)
    assert PLAIN.encode_control(warning) == b""
    length, _, message = COUNTED.encode_control(warning).partition(b"\r\n")
    assert int(length) == len(message)
    assert json.loads(message) == {
        "warning": {"code": "FALLING_BEHIND", "message": "Falling behind", "percent_full": 60}
    }


def test_equal_options_share_their_encoded_bytes() -> None:
    assert select_v1_framing(V1FramingOptions("filter")) is PLAIN
    assert select_v1_framing(V1FramingOptions("sample")).encode_entry is PLAIN.encode_entry
    assert select_v1_framing(V1FramingOptions("filter", chunked=False)).wrap(b"x") == b"x"
    assert PLAIN.wrap(b"x") == b"1\r\nx\r\n"
