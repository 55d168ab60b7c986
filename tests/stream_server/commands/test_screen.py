"""What a stranger's text may do to a terminal: nothing."""

import json
import unicodedata
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_server.client.message import parse_message
from stream_server.commands.terminal import escape_controls, escape_json_controls, render_message

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


def obeyed(text: str) -> list[str]:
    """What a terminal would act upon, said here by Unicode's classes and apart from the code under test."""
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return [
        c for c in text
        if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} or unicodedata.bidirectional(c) in turning
    ]  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS)
def test_no_message_reaches_the_terminal_as_a_command(text: str) -> None:
    """In whatever member it stands, a control character is shown and not obeyed, and markup is plain text."""
    status = {"login": text, "message": text, "place": {"name": text}, "id": text}
    user = {"login": text}
    messages: list[dict[str, Any]] = [
        {"kind": "post", "status": status},
        {"kind": "post", "status": {"origin": "1", "message": "", "original": status}},
        {"kind": "delete", "status": status},
        {"kind": "follow", "source": user, "target": user},
        {"kind": "gap", "reason": text, "count": None},
        {"kind": text, "what": [text]},
    ]
    for message in messages:
        shown = render_message(parse_message(json.dumps({**message, "cursor": "c", "at": text}).encode())).plain
        assert not obeyed(shown), repr(shown)
        if "[bold" in text and message["kind"] == "post":
            assert "[bold red]" in shown


@given(st.dictionaries(st.text(), st.text()))
def test_json_lines_keep_their_value(value: dict[str, str]) -> None:
    """Made harmless, a JSON line still is one, of the same value."""
    line = escape_json_controls(msgspec.json.encode(value)) if _encodable(value) else "{}"
    assert not obeyed(line)
    assert json.loads(line) == (value if _encodable(value) else {})


def _encodable(value: dict[str, str]) -> bool:
    return not any(0xD800 <= ord(c) <= 0xDFFF for pair in value.items() for text in pair for c in text)


@pytest.mark.parametrize(("message", "shown"), [("", "reposts @bob bread"), ("yes!", "quotes @bob: yes!")])
def test_a_repost_and_a_quote_say_whose_words_come(message: str, shown: str) -> None:
    """What is said of somebody's post is not shown as if they had said it."""
    status = {"login": "ada", "message": message, "origin": "1", "original": {"login": "bob", "message": "bread"}}
    line = {"kind": "post", "cursor": "c", "at": "2026-01-31T12:34:56.000Z", "status": status}
    assert render_message(parse_message(json.dumps(line).encode())).plain == f"12:34:56 @ada {shown}"


def test_other_scripts_and_emoji_stay_as_they_are() -> None:
    """Only what a terminal would obey is changed; a line break becomes a sign."""
    text = "日本語 שלום 👩‍👩‍👧 é\nnext"
    assert escape_controls(text) == "日本語 שלום 👩‍👩‍👧 é⏎ next"


def test_a_post_says_who_what_and_where() -> None:
    """A line has the time, the author, the text and the place."""
    status = {
        "login": "ada",
        "message": "hi @bob #tag",
        "location": {"lon": 2.5, "lat": 1.5},
        "place": {"name": "Kyoto"},
    }
    line = render_message(
        parse_message(
            json.dumps({"kind": "post", "cursor": "c", "at": "2026-01-31T12:34:56.000Z", "status": status}).encode()
        )
    )
    assert line.plain == "12:34:56 @ada hi @bob #tag  (Kyoto 1.5, 2.5)"
    assert {line.plain[span.start : span.end]: str(span.style) for span in line.spans} == {
        "12:34:56": "dim", "@ada": "bold cyan", "@bob": "cyan", "#tag": "magenta", "  (Kyoto 1.5, 2.5)": "yellow"
    }  # fmt: skip
    assert not line.style


def test_what_has_no_line_of_its_own_is_shown_as_json() -> None:
    """As it came but for where and when, so that a program can read it again."""
    line = {"kind": "effective", "cursor": "c", "at": "2026-01-31T12:34:56.000Z", "added": ["7"], "é": None}
    shown = render_message(parse_message(json.dumps(line).encode())).plain
    assert shown == '12:34:56 {"kind": "effective", "added": ["7"], "é": null}'
