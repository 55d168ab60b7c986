"""A message of another user cannot control the terminal."""

import json
import unicodedata
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_server.commands.output import MATCH_STYLE, escape_controls, escape_json_controls, render_message

ATTACKS = [
    "\x1b[2J\x1b[H gone",
    "\x1b]0;title\x07",
    "\x1b]52;c;bWFsaWNl\x07",
    "\x9b31m red",
    "a\rb",
    "\u202egnp.exe",
    "\u2066hidden\u2069",
    "\x7f\x08\x00",
    "[bold red]markup[/]",
]


def control_characters(text: str) -> list[str]:
    """Return the characters that a terminal obeys, by Unicode's classes, independently of the code under test."""
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return [
        c for c in text
        if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} or unicodedata.bidirectional(c) in turning
    ]  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS)
def test_a_message_has_no_control_character_on_the_terminal(text: str) -> None:
    status = {"login": text, "message": text, "place": {"name": text}, "id": text}
    user = {"login": text}
    messages: list[dict[str, Any]] = [
        {"kind": "post", "status": status},
        {"kind": "post", "status": {"origin": "1", "message": "", "original": status}},
        {"kind": "delete", "status": status},
        {"kind": "edit", "status": status},
        {"kind": "edit", "left": status},
        {"kind": "follow", "source": user, "target": user},
        {"kind": "gap", "reason": text, "count": None},
        {"kind": "count", "began": text, "count": 1, "counts": [{"tag": text, "count": 1}, {"id": text, "count": 2}]},
        {"kind": text, "what": [text]},
    ]
    for message in messages:
        shown = render_message({**message, "cursor": "c", "at": text}).plain
        assert not control_characters(shown), repr(shown)
        if "[bold" in text and message["kind"] == "post":
            assert "[bold red]" in shown


@given(st.dictionaries(st.text(), st.text()))
def test_escaped_json_keeps_its_value(value: dict[str, str]) -> None:
    line = escape_json_controls(msgspec.json.encode(value)) if _encodable(value) else "{}"
    assert not control_characters(line)
    assert json.loads(line) == (value if _encodable(value) else {})


def _encodable(value: dict[str, str]) -> bool:
    return not any(0xD800 <= ord(c) <= 0xDFFF for pair in value.items() for text in pair for c in text)


def test_an_edit_is_told_apart_from_a_post() -> None:
    line: dict[str, Any] = {"kind": "edit", "cursor": "c", "at": "2026-01-31T12:34:56.000Z"}
    status = {"login": "ada", "message": "tea"}
    assert render_message(line | {"status": status}).plain == "12:34:56 edited @ada tea"
    assert render_message(line | {"left": {"id": "5", "uid": "1"}}).plain == "12:34:56 status 5 was edited and has left"


@pytest.mark.parametrize(("message", "shown"), [("", "reposts @bob bread"), ("yes!", "quotes @bob: yes!")])
def test_a_repost_and_a_quote_name_the_author_of_the_original(message: str, shown: str) -> None:
    status = {"login": "ada", "message": message, "origin": "1", "original": {"login": "bob", "message": "bread"}}
    line = {"kind": "post", "cursor": "c", "at": "2026-01-31T12:34:56.000Z", "status": status}
    assert render_message(line).plain == f"12:34:56 @ada {shown}"


def test_other_scripts_and_emoji_stay_unchanged() -> None:
    text = "日本語 שלום 👩‍👩‍👧 é\nnext"
    assert escape_controls(text) == "日本語 שלום 👩‍👩‍👧 é⏎ next"


def test_a_post_shows_time_author_text_and_place() -> None:
    place = {"location": {"lon": 2.5, "lat": 1.5}, "place": {"name": "Kyoto"}}
    status = {"login": "ada", "message": "hi @bob #tag", **place}
    post = {"kind": "post", "cursor": "c", "at": "2026-01-31T12:34:56.000Z", "status": status}
    line = render_message(post)
    assert line.plain == "12:34:56 @ada hi @bob #tag  (Kyoto 1.5, 2.5)"
    assert {line.plain[span.start : span.end]: str(span.style) for span in line.spans} == {
        "12:34:56": "dim", "@ada": "bold cyan", "@bob": "cyan", "#tag": "magenta", "  (Kyoto 1.5, 2.5)": "yellow"
    }  # fmt: skip
    assert not line.style


def test_other_kinds_are_shown_as_json() -> None:
    line = {"kind": "effective", "cursor": "c", "at": "2026-01-31T12:34:56.000Z", "added": ["7"], "é": None}
    shown = render_message(line).plain
    assert shown == '12:34:56 {"kind": "effective", "added": ["7"], "é": null}'


@pytest.mark.parametrize("mark", ["", "\x1b", "\n"])
def test_the_words_that_matched_are_marked(mark: str) -> None:
    """Also behind characters that are longer when they are escaped, and when a repost shows its original."""
    text = f"{mark}é strong tea {mark}and tea"
    begin = text.index("tea")
    for status in ({"message": text}, {"message": "", "origin": "1", "original": {"message": text}}):
        line = render_message({"kind": "post", "at": "", "status": status}, [(begin, begin + 3)])
        (span,) = [span for span in line.spans if span.style == MATCH_STYLE]
        assert line.plain[span.start : span.end] == "tea"
        assert "strong" in line.plain[: span.start]
        assert "and" in line.plain[span.end :]


def test_a_wrong_place_of_a_match_does_no_harm() -> None:
    status = {"message": "short"}
    for span in ((3, 99), (99, 100), (-5, 2), (4, 1)):
        assert render_message({"kind": "post", "at": "", "status": status}, [span]).plain.endswith("short")
