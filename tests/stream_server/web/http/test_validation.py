"""Bodies: the words of the errors, JSON that is nested too deeply, line breaks and byte order marks."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_server.errors import ApiError, BadRequest
from stream_server.web.api.groups import NewGroup, NewTalk
from stream_server.web.api.moderation import NewReport
from stream_server.web.api.people import NewUser, UserChanges
from stream_server.web.api.statuses import NewStatus
from stream_server.web.http.body import MAX_JSON_DEPTH, normalise_json
from stream_server.web.http.validation import decode_body

USER = '{"login": "%s", "name": "Ada", "email": "%s", "password": "correct horse"}'


@pytest.mark.parametrize(
    ("kind", "body", "param", "message"),
    [
        (NewUser, USER % ("a b", "a@b.c"), "login", "`login` must be 1 to 20 letters, digits or _"),
        (NewUser, USER % ("ada", "ab"), "email", "`email` must be an address such as ada@example.org"),
        (NewUser, '{"login": 1}', "login", "`login` must be a string, not an integer"),
        (NewUser, '{"login": "a", "name": "A", "email": "a@b.c", "password": "x"}', "password",
         "`password` must have at least 8 characters"),
        (NewUser, '{"login": "a", "name": " ", "email": "a@b.c", "password": "12345678"}', "name",
         "`name` must not be blank"),
        (NewUser, '{"login": "a", "nom": "A"}', "nom", "unknown member"),
        (NewUser, '{"login": "a"}', "name", "this member is required"),
        (NewUser, "[]", None, "the body must be a JSON object"),
        (NewTalk, '{"people": ["1", "bob"]}', "people[1]", "`people[1]` must be a decimal number"),
        (NewTalk, '{"people": []}', "people", "`people` must have at least 1 item"),
        (NewTalk, '{"people": ["1"%s]}' % (', "1"' * 49), "people", "`people` must have at most 49 items"),
        (NewStatus, '{"message": "m", "lang": "a b"}', "lang", "`lang` must be a BCP 47 language tag such as en-GB"),
        (NewStatus, '{"message": "\\u0000"}', "message",
         "`message` must not contain control characters other than line feed and tab"),
        (NewStatus, '{"message": null}', "message", "`message` must be a string, not null"),
        (NewStatus, '{"location": {"lon": 181, "lat": 0}}', "location.lon", "`location.lon` must be at most 180"),
        (NewStatus, '{"place": {"name": "p", "box": [1, 2]}}', "place.box", "`place.box` must have 4 items"),
        (NewStatus, '{"place": {"country": "France"}}', "place.country",
         "`place.country` must be an ISO 3166-1 alpha-2 country code"),
        (NewStatus, '{"media": [{"type": "x", "url": "http://a"}]}', "media[0].type",
         "`media[0].type` must be one of audio, gif, image, video"),
        (NewStatus, '{"media": [{"type": "image", "url": "x"}]}', "media[0].url",
         "`media[0].url` must be a URL that begins with http:// or https://"),
        (NewGroup, '{"name": "n", "kind": "x"}', "kind", "`kind` must be one of announcement, private, public"),
    ],
)  # fmt: skip
def test_an_error_names_the_valid_type_of_a_member(kind: type, body: str, param: str | None, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        decode_body(kind, body.encode())
    assert (refused.value.param, refused.value.message) == (param, message)


@pytest.mark.parametrize("opening", ["[", '{"a":', '["]}",'])
def test_json_nested_deeper_than_the_limit_is_refused(opening: str) -> None:
    normalise_json((opening * MAX_JSON_DEPTH).encode())
    with pytest.raises(BadRequest, match="nested too deeply"):
        normalise_json((opening * MAX_JSON_DEPTH + "[").encode())


@pytest.mark.parametrize(
    "body", ["[" + "[]," * 1000 + "[]]", '["' + "[" * 1000 + '"]', '["' + '\\"[' * 1000 + '"]', '{"a": "' + "{" * 1000]
)
def test_brackets_side_by_side_or_in_strings_are_not_deep(body: str) -> None:
    normalise_json(body.encode())


@pytest.mark.parametrize("text", ['"\\\\"', '"\\\\\\""', '"\\\\\\\\"', '"]\\\\\\"]"', '"\\u005d"'])
def test_escapes_do_not_hide_the_depth(text: str) -> None:
    """A backslash before the end of a string may itself be escaped."""
    normalise_json((f"[{text}," * MAX_JSON_DEPTH).encode())
    with pytest.raises(BadRequest, match="nested too deeply"):
        normalise_json((f"[{text}," * MAX_JSON_DEPTH + "[").encode())


CHARACTERS = st.sampled_from(["\r", "\n", "\r\n", "\\", "r", "n", "u000d", '"', "a", "\0", "\U0001f600"])


@given(st.lists(CHARACTERS, max_size=12).map("".join), st.sampled_from(["\\r", "\\u000d", "\\u000D"]))
def test_each_line_break_of_a_text_becomes_a_line_feed(text: str, spelling: str) -> None:
    r"""JSON spells a carriage return in three ways. The `\\r` of an escaped backslash is none."""
    body = "".join(spelling if character == "\r" else json.dumps(character)[1:-1] for character in text)
    decoded = json.loads(normalise_json(f'["{body}"]'.encode()))
    assert decoded == [text.replace("\r\n", "\n").replace("\r", "\n")]


@pytest.mark.parametrize("body", [b'{"message": "\0\\\\r"}', b'{"message": "\r"}'])
def test_what_is_no_json_stays_no_json(body: bytes) -> None:
    with pytest.raises(BadRequest, match="not JSON"):
        decode_body(NewStatus, body)


@pytest.mark.parametrize(
    ("kind", "more", "member", "most"),
    [
        (NewGroup, {"name": "n", "kind": "public"}, "description", 200),
        (UserChanges, {}, "bio", 500),
        (NewReport, {"user": "1", "reason": "spam"}, "note", 500),
    ],
)
def test_a_line_break_counts_once_and_a_tab_is_no_fault(
    kind: Any, more: dict[str, str], member: str, most: int
) -> None:
    text = "a\r\n\tb\r" + "c" * (most - 5)
    decoded = decode_body(kind, json.dumps({**more, member: text}).encode())
    assert getattr(decoded, member) == "a\n\tb\n" + "c" * (most - 5)


def test_a_byte_order_mark_is_skipped() -> None:
    assert decode_body(NewStatus, b'\xef\xbb\xbf{"message": "m"}').message == "m"
