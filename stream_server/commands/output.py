"""The output of commands: for people on a console, or with ``--json`` for programs.

What a stream says becomes readable lines, in which no control character of a client is left.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from stream_server.commands.exit_codes import OK, BrokenOutput
from stream_server.events.one_line import encode_json
from stream_server.wire.objects import Span

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text for people.")
"""The option ``--json``; ``docs/reference/commands.md`` describes what each command prints with it."""


class OutputConsole(Console):
    """A console without markup and without colours of its own. It reports a reader that has left.

    Attributes:
        has_unicode: Whether the output can have any character.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self.has_unicode = self.encoding.startswith("utf")
        if not self.is_terminal:
            self.width = max(self.width, 200)  # of tables in a file or a pipe, in columns

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

_OUTSIDE_ASCII = re.compile("[\x00-\x1f\x7f-\U0010ffff]")

MATCH_STYLE = "bold black on yellow"
"""Style of the words by which a post matched."""


def escape_controls(text: str) -> str:
    r"""Return ``text`` on one line, with control and direction characters escaped, such as ``\x1b`` for ESC."""

    def escape(found: re.Match[str]) -> str:
        character, code = found[0], ord(found[0])
        if character in "\n\r\t":
            return {"\n": "⏎ ", "\r": "", "\t": " "}[character]
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

    return CONTROL_CHARACTERS.sub(escape, text)


def escape_json_controls(line: bytes, *, has_unicode: bool = True) -> str:
    r"""Return the line of JSON with control and direction characters escaped as in JSON, such as ``\u001b`` for ESC.

    Without ``has_unicode`` all characters outside ASCII are escaped.
    """
    escaped = CONTROL_CHARACTERS if has_unicode else _OUTSIDE_ASCII
    return escaped.sub(lambda found: json.dumps(found[0])[1:-1], line.decode(errors="replace"))


def render_message(data: dict[str, Any], spans: Iterable[Span] = ()) -> Text:
    """Return a message of a stream as one readable line that begins with the time of day (UTC) of the message.

    ``spans`` are the parts of a post's text that matched, in code points.
    """
    line = Text.assemble((_text(data, "at")[11:19], "dim"), " ")
    match data.get("kind"):
        case "post":
            shown = _render_post(data, spans)
        case "edit" if "left" in data:
            shown = Text(f"status {_text(member(data, 'left'), 'id')} was edited and has left", style="red")
        case "edit":
            shown = Text.assemble(("edited ", "yellow"), _render_post(data, spans))
        case "delete":
            shown = Text(f"status {_text(member(data, 'status'), 'id')} was deleted", style="red")
        case "follow":
            shown = _render_relation(data, "follows")
        case "unfollow":
            shown = _render_relation(data, "no longer follows")
        case "count":
            shown = _render_counts(data)
        case "gap":
            count = data.get("count")
            lost = f"{count} events" if isinstance(count, int) else "events"
            shown = Text(f"GAP: {lost} cannot be delivered ({_text(data, 'reason')})", style="bold red")
        case _:
            others = {name: value for name, value in data.items() if name not in {"cursor", "at"}}
            shown = Text(escape_controls(json.dumps(others, ensure_ascii=False)), style="dim")
    return line.append_text(shown)


def _render_post(data: dict[str, Any], spans: Iterable[Span]) -> Text:
    status = member(data, "status")
    line = Text.assemble((f"@{_text(status, 'login')}", "bold cyan"), " ")
    if status.get("origin"):
        verb, end = ("quotes", ": ") if status.get("message") else ("reposts", " ")
        line.append(f"{verb} @{_text(member(status, 'original'), 'login')}{end}", style="green")
    # of a repost without a comment, the message of the reposted status
    message = str(status.get("message") or member(status, "original").get("message") or "")
    text = Text(escape_controls(message))
    # These patterns only approximate the entities of the server.
    for pattern, style in ((r"(?<!\w)[#$]\w+", "magenta"), (r"(?<!\w)@\w+", "cyan"), (r"https?://\S+", "blue")):
        text.highlight_regex(pattern, style)
    for span in spans:  # escaping makes some characters longer, so the places move
        places = [len(escape_controls(message[: max(0, place)])) for place in span]
        text.stylize(MATCH_STYLE, places[0], places[1])
    return line.append_text(text).append(_status_place(status), style="yellow")


def _render_counts(data: dict[str, Any]) -> Text:
    """Return the counts of a period: when it was, the number of events, and that of each rule."""
    began, counts = _text(data, "began")[11:19], data.get("counts")
    line = Text.assemble((f"from {began}: ", "dim"), (f"{data.get('count')}", "bold"))
    for each in counts if isinstance(counts, list) else ():
        if isinstance(each, dict):
            line.append(f"  {_text(each, 'tag') or _text(each, 'id')} {each.get('count')}", style="cyan")
    return line


def _status_place(status: dict[str, Any]) -> str:
    point = status.get("location")
    place = _text(member(status, "place"), "name")
    if isinstance(point, dict):
        place = f"{place} {point.get('lat')}, {point.get('lon')}".strip()
    return f"  ({escape_controls(place)})" if place else ""


def _render_relation(data: dict[str, Any], verb: str) -> Text:
    source, target = _text(member(data, "source"), "login"), _text(member(data, "target"), "login")
    return Text.assemble((f"@{source}", "bold cyan"), f" {verb} ", (f"@{target}", "cyan"))


def member(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the member ``name`` of a JSON object; {} if it is missing or is not an object itself."""
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _text(data: dict[str, Any], name: str) -> str:
    """Return the member ``name`` of a JSON object as text without control characters; empty if it is missing."""
    return escape_controls(str(data.get(name) or ""))
