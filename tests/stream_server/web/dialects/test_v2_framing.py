"""Encoding of v2 messages: Tweets, matching rules, heartbeats and errors."""

import json
from typing import Any

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub import disconnect, messages
from stream_server.hub.disconnect import DisconnectReason
from stream_server.hub.messages import ControlMessage, Gap, StreamNotice
from stream_server.web.dialects.v2_framing import TweetEncoder, select_v2_framing
from stream_server.web.dialects.v2_parameters import EXPANSIONS, TWEET_FIELDS, FieldSelection, read_fields
from tests.stream_server.web.dialects.status_json import status

AT = Position(1_795_197_600_000, 0, 7)


def entry(kind: str = "post", **wire: Any) -> Entry:
    """Return a log entry with a known author."""
    facts = {"author": {"id": "2", "login": "ada", "name": "Ada L"}}
    body = json.dumps({"wire": wire or {"status": status()}, "facts": facts}).encode()
    return Entry(AT, kind, "public", body)


def parse_frame(frame: bytes) -> Any:
    """Return the one object of a frame. The only line end must be the last."""
    assert frame.endswith(b"\r\n")
    assert frame.count(b"\r") == frame.count(b"\n") == 1
    return json.loads(frame)


def test_a_post_is_one_line() -> None:
    one = entry(status=status(message="a\r\nb"))
    frame = one.frame(TweetEncoder(FieldSelection()))
    assert parse_frame(frame) == {"data": {"id": "10", "text": "a\r\nb", "edit_history_tweet_ids": ["10"]}}


def test_matching_rules_are_added_behind_the_shared_bytes() -> None:
    encode, one = TweetEncoder(read_fields({"expansions": "author_id"})), entry()
    frames = [one.frame(encode, b'[{"id":"%d","tag":""}]' % n) for n in (1, 2)]
    data = {"id": "10", "text": "tea", "edit_history_tweet_ids": ["10"], "author_id": "2"}
    users = [{"id": "2", "name": "Ada L", "username": "ada"}]
    assert [parse_frame(frame) for frame in frames] == [
        {"data": data, "includes": {"users": users}, "matching_rules": [{"id": str(n), "tag": ""}]} for n in (1, 2)
    ]
    assert frames[0].startswith(one.frame(encode)[:-3])


def test_a_delete_gives_no_bytes() -> None:
    gone = {"id": "10", "uid": "2", "deleted": True}
    assert entry("delete", status=gone).frame(TweetEncoder(FieldSelection())) == b""


@pytest.mark.parametrize("member", [name for name in status() if name not in {"meta", "group"}])
def test_an_incomplete_status_is_logged_and_skipped(member: str, caplog: pytest.LogCaptureFixture) -> None:
    written = {name: value for name, value in status().items() if name != member}
    everything = TweetEncoder(read_fields({"tweet.fields": ",".join(TWEET_FIELDS), "expansions": ",".join(EXPANSIONS)}))
    broken = entry(status=written)
    for matched in (None, b"[]"):
        assert broken.frame(everything, matched) == b""
    assert AT.cursor in caplog.text


def test_equal_fields_share_a_framing() -> None:
    first = select_v2_framing(read_fields({"tweet.fields": "lang,geo"}), chunked=True)
    assert select_v2_framing(read_fields({"tweet.fields": "geo,lang"}), chunked=True) is first
    assert first.wrap(b"x") == b"1\r\nx\r\n"
    assert select_v2_framing(read_fields({"tweet.fields": "geo,lang"}), chunked=False).wrap(b"x") == b"x"
    assert select_v2_framing(read_fields({"tweet.fields": "lang"}), chunked=True) != first


def encode(message: ControlMessage) -> bytes:
    return select_v2_framing(FieldSelection(), chunked=True).encode_control(message)


def test_heartbeat_and_hello_are_an_empty_line() -> None:
    assert encode(messages.heartbeat_message(AT, 0, 0)) == b"\r\n"
    assert encode(messages.hello_message(AT, 0, "c", "{}", "s")) == b"\r\n"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (disconnect.shutdown_reason(1.0), "OperationalDisconnect"),
        (disconnect.TOO_SLOW, "SlowReader"),
        (disconnect.TOKEN_EXPIRED, "ForceDisconnect"),
        (disconnect.TOKEN_REVOKED, "ForceDisconnect"),
        (disconnect.SUSPENDED, "ForceDisconnect"),
        (disconnect.RESYNC, "UpstreamOperationalDisconnect"),
    ],
)
def test_a_goodbye_is_an_error_with_its_disconnect_type(reason: DisconnectReason, kind: str) -> None:
    (error,) = parse_frame(encode(messages.goodbye_message(AT, 0, reason)))["errors"]
    assert error == {
        "title": "operational-disconnect", "disconnect_type": kind, "detail": reason.text,
        "type": "https://api.twitter.com/2/problems/operational-disconnect",
    }  # fmt: skip


def test_the_end_of_a_replay_gives_no_bytes() -> None:
    assert encode(messages.goodbye_message(AT, 0, disconnect.BACKFILL_DONE)) == b""


@pytest.mark.parametrize(("missed", "words"), [(3, "3 events could"), (None, "An unknown number of events could")])
def test_a_gap_is_an_error_with_its_count(missed: int | None, words: str) -> None:
    (error,) = parse_frame(encode(messages.gap_message(Gap(None, AT, "trimmed", missed), 0)))["errors"]
    assert (error["title"], error["detail"].startswith(words)) == ("Gap", True)


def encode_notice(kind: str = "warning", **members: object) -> bytes:
    return encode(messages.notice_message(StreamNotice(kind, AT, members), 0))


def test_only_the_warning_of_a_failed_filter_is_an_error() -> None:
    (error,) = parse_frame(encode_notice(code="filter_disabled", filter="rule", rule="9"))["errors"]
    assert "rule 9" in error["detail"]
    (error,) = parse_frame(encode_notice(code="filter_disabled", filter="shout"))["errors"]
    assert "filter shout" in error["detail"]
    assert encode_notice(code="costly_filter", filter="shout") == encode_notice("effective", rules=1) == b""
