"""The output of commands: for people on a console, or with ``--json`` for programs.

What a stream says becomes readable lines, in which no control character of a client is left.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from stream_server.commands.exit_codes import OK, BrokenOutput
from stream_server.events.one_line import encode_json
from stream_server.wire.objects import Span

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text for people.")
"""The option ``--json``; ``docs/reference/commands.md`` describes what each command prints with it."""


FILE_WIDTH = 200
"""Width in columns of tables in a file or a pipe."""


class OutputConsole(Console):
    """A console without markup and without colours of its own. It reports a reader that has left.

    Attributes:
        has_unicode: Whether the output can have any character.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self.has_unicode = self.encoding.startswith("utf")
        if not self.is_terminal:
            self.width = max(self.width, FILE_WIDTH)

    def on_broken_pipe(self) -> None:
        """Raise :class:`BrokenOutput`; rich would end the process with exit code 1."""
        self.quiet = True
        raise BrokenOutput


def finish(value: Any, *shown: Any, as_json: bool, code: int = OK) -> None:
    """End a command with its result: ``value`` as JSON with ``--json``, else ``shown``, which are texts and tables.

    Raises :class:`click.exceptions.Exit` with another ``code`` than 0.
    """
    if as_json:
        print_json(value)
    console = OutputConsole()
    for part in () if as_json else shown:
        console.print(part)
    if code != OK:
        raise click.exceptions.Exit(code)


def print_json(value: Any) -> None:
    """Print one JSON value on one line of standard output."""
    click.echo(encode_json(value))


CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]")
"""C0 and C1 controls, DEL, line and paragraph separators, direction overrides, lone surrogates."""

OUTSIDE_ASCII = re.compile("[\x00-\x1f\x7f-\U0010ffff]")

HIGHLIGHTS = ((r"(?<!\w)[#$]\w+", "magenta"), (r"(?<!\w)@\w+", "cyan"), (r"https?://\S+", "blue"))
"""Patterns of the coloured parts of a text, with their colours. They only approximate the entities of the server."""

MATCH_STYLE = "bold black on yellow"
"""Style of the words by which a post matched."""

_READABLE = {"\n": "⏎ ", "\r": "", "\t": " "}


def escape_controls(text: str) -> str:
    r"""Return ``text`` on one line, with control and direction characters escaped, such as ``\x1b`` for ESC."""
    return CONTROL_CHARACTERS.sub(_escape_character, text)


def escape_json_controls(line: bytes, *, has_unicode: bool = True) -> str:
    r"""Return the line of JSON with control and direction characters escaped as in JSON, such as ``\u001b`` for ESC.

    Without ``has_unicode`` all characters outside ASCII are escaped.
    """
    escaped = CONTROL_CHARACTERS if has_unicode else OUTSIDE_ASCII
    return escaped.sub(lambda found: json.dumps(found[0])[1:-1], line.decode(errors="replace"))


def _escape_character(found: re.Match[str]) -> str:
    character = found[0]
    if character in _READABLE:
        return _READABLE[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def render_message(data: dict[str, Any], spans: Iterable[Span] = ()) -> Text:
    """Return a message of a stream as one readable line that begins with the time of day (UTC) of the message.

    ``spans`` are the parts of a post's text that matched, in code points.
    """
    line = Text.assemble((_text(data, "at")[11:19], "dim"), " ")
    if data.get("kind") == "post":
        return line.append_text(_render_post(data, spans))
    return line.append_text(RENDERERS.get(str(data.get("kind")), _render_other)(data))


def _render_post(data: dict[str, Any], spans: Iterable[Span]) -> Text:
    status = member(data, "status")
    line = Text.assemble((f"@{_text(status, 'login')}", "bold cyan"), " ")
    if status.get("origin"):
        verb, end = ("quotes", ": ") if status.get("message") else ("reposts", " ")
        line.append(f"{verb} @{_text(member(status, 'original'), 'login')}{end}", style="green")
    message = _status_text(status)
    text = Text(escape_controls(message))
    for pattern, style in HIGHLIGHTS:
        text.highlight_regex(pattern, style)
    for span in spans:  # escaping makes some characters longer, so the places move
        places = [len(escape_controls(message[: max(0, place)])) for place in span]
        text.stylize(MATCH_STYLE, places[0], places[1])
    return line.append_text(text).append(_status_place(status), style="yellow")


def _status_text(status: dict[str, Any]) -> str:
    """Return the message of the status; for a repost without a comment, the message of the reposted status."""
    return str(status.get("message") or member(status, "original").get("message") or "")


def _status_place(status: dict[str, Any]) -> str:
    point = status.get("location")
    place = _text(member(status, "place"), "name")
    if isinstance(point, dict):
        place = f"{place} {point.get('lat')}, {point.get('lon')}".strip()
    return f"  ({escape_controls(place)})" if place else ""


def _render_delete(data: dict[str, Any]) -> Text:
    return Text(f"status {_text(member(data, 'status'), 'id')} was deleted", style="red")


def _relation_renderer(verb: str) -> Callable[[dict[str, Any]], Text]:
    def render_relation(data: dict[str, Any]) -> Text:
        source, target = _text(member(data, "source"), "login"), _text(member(data, "target"), "login")
        return Text.assemble((f"@{source}", "bold cyan"), f" {verb} ", (f"@{target}", "cyan"))

    return render_relation


def _render_gap(data: dict[str, Any]) -> Text:
    count = data.get("count")
    lost = f"{count} events" if isinstance(count, int) else "events"
    return Text(f"GAP: {lost} cannot be delivered ({_text(data, 'reason')})", style="bold red")


def _render_other(data: dict[str, Any]) -> Text:
    shown = {name: value for name, value in data.items() if name not in {"cursor", "at"}}
    return Text(escape_controls(json.dumps(shown, ensure_ascii=False)), style="dim")


def member(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the member ``name`` of a JSON object; {} if it is missing or is not an object itself."""
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _text(data: dict[str, Any], name: str) -> str:
    """Return the member ``name`` of a JSON object as text without control characters; empty if it is missing."""
    return escape_controls(str(data.get(name) or ""))


RENDERERS: dict[str, Callable[[dict[str, Any]], Text]] = {
    "delete": _render_delete,
    "follow": _relation_renderer("follows"),
    "unfollow": _relation_renderer("no longer follows"),
    "gap": _render_gap,
}
