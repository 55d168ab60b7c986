"""The command ``rules``: explain what a rule means, without a server."""

from codecs import BOM_UTF8
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.cells import cell_len

from filters.event import Event
from filters.registry import Registry
from filters.rules.condition import RuleError
from filters.rules.rule import Explanation, Rule
from stream_server.commands.exit_codes import FAILED, OK, USAGE, CommandFailure
from stream_server.commands.output import JSON_OPTION, OutputConsole, escape_controls, finish
from stream_server.errors import ApiError
from stream_server.events.content import AuthorSnapshot, EntryFacts, MalformedEntry, StatusFields
from stream_server.events.language import detect_language
from stream_server.events.status_json import ANONYMOUS_STATUS, make_trial_status, trial_event


class _TrialAuthor(AuthorSnapshot, frozen=True):
    """The author of the status in the file of ``--status``. A missing id becomes ``0``, a missing login ``nobody``."""

    id: str = ANONYMOUS_STATUS["id"]
    login: str = ANONYMOUS_STATUS["login"]


class _ApiStatus(StatusFields):
    """A status in the file of ``--status``, in the API's form: its author, and the members that a rule can test."""

    uid: str = ANONYMOUS_STATUS["uid"]
    author: _TrialAuthor | None = None


@click.group()
def rules() -> None:
    """Try rules on a status without a server."""


@rules.command(
    epilog="""
\b
Examples:
  stream-server rules explain 'tea -is:reply' --text 'a cup of tea'
  stream-server rules explain --status status.json -- '-milk (tea OR from:ada)'

\b
FILE holds a status as the API accepts or returns it, and may add "author": {"login", "id", "bio", "followers",
"following", "posts"}. Exit codes: 0 the rule matches, 1 it does not, 2 the rule or the status is invalid.
"""
)
@click.argument("rule")
@click.option("--text", help="The message of the status.")
@click.option("--status", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="JSON file.")
@click.option("--lang", help="Language of the status; default: from --status, else detected.")
@JSON_OPTION
def explain(*, rule: str, text: str | None, file: Path | None, lang: str | None, as_json: bool) -> None:
    """Show for each part of RULE whether it matches a status, and why."""
    from stream_server.runtime import python_check  # noqa: PLC0415 - as in `_check_members`

    if fault := python_check.find_fault():
        raise CommandFailure(fault)
    parsed = _parse_rule(rule)
    if text is None and file is None:
        raise CommandFailure("give --text or --status", USAGE)
    given = {name: value for name, value in (("message", text), ("lang", lang)) if value is not None}
    try:
        event = _make_event(_read_status(file) | _check_members(given, {"message": "--text", "lang": "--lang"}))
    except RecursionError:
        raise CommandFailure(f"--status {file}: the JSON is nested too deeply", USAGE) from None
    explanation = parsed.explain(event)
    marks = ("✓", "✗") if OutputConsole().has_unicode else ("ok", "NO")
    result = {"matched": explanation.matched, "rule": parsed.text, "parts": explanation.to_json()}
    shown = map(escape_controls, _format_explanation(explanation, 0, marks))
    finish(result, *shown, as_json=as_json, code=OK if explanation.matched else FAILED)


def _parse_rule(text: str) -> Rule:
    """Parse the rule. If it is invalid, end the command with an error and a caret under the wrong column."""
    try:
        return Rule.parse(text, Registry.from_entry_points())
    except RuleError as error:
        shown = escape_controls(text)
        caret = " " * cell_len(escape_controls(text[: error.column - 1])) + "^"
        raise CommandFailure(f"{error.message}\n  {shown}\n  {caret}", USAGE) from None


def _read_status(file: Path | None) -> dict[str, Any]:
    """Return the checked status in ``file``; {} without a file. With an ``id`` it is an API answer, else a request."""
    if file is None:
        return {}
    try:
        members: dict[str, Any] = msgspec.json.decode(file.read_bytes().removeprefix(BOM_UTF8), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
        raise CommandFailure(f"--status {file}: {error}", USAGE) from None
    return _check_members(members, {}, _ApiStatus if "id" in members else None)


def _check_members(
    members: dict[str, Any], options: Mapping[str, str], kind: type[msgspec.Struct] | None = None
) -> dict[str, Any]:
    """Return ``members`` unchanged if they form a valid status. Raises :class:`CommandFailure` otherwise.

    ``kind`` is the struct that the members must fit, by default a status that a client would post. ``options`` maps a
    member to the command-line option that gave it, so that the failure can name the option at fault.
    """
    # Imported here, because importing the web package takes time and other commands do not need it.
    from stream_server.web.api.rule_trial import TrialStatus  # noqa: PLC0415 - see above
    from stream_server.web.http import validation  # noqa: PLC0415 - see above

    try:
        validation.decode_body(kind or TrialStatus, msgspec.json.encode(members))
    except ApiError as error:
        option = options.get(error.param or "")
        message = error.message.removeprefix(f"`{error.param}` ")  # the option or the path names the member
        parts = (option, message) if option else ("--status", error.param, message)
        raise CommandFailure(": ".join(filter(None, parts)), USAGE) from None
    except UnicodeEncodeError:
        raise CommandFailure("--text and --lang must be UTF-8", USAGE) from None
    return members


def _make_event(members: dict[str, Any]) -> Event:
    """Return the status as an event that filters can match. A status without an author gets an anonymous one."""
    author = members.pop("author", None)
    try:
        person = None if author is None else msgspec.convert(author, _TrialAuthor)
        if person is not None:
            members = {"uid": person.id, "login": person.login, **members}
        if members.get("in_reply_to") is not None:
            members = {"in_reply_to_uid": "0", **members}
        if members.get("original") is not None:
            members = {"origin": "0", **members}
        return trial_event(make_trial_status(members, detect_language), EntryFacts(author=person))
    except (msgspec.MsgspecError, MalformedEntry) as error:
        raise CommandFailure(f"--status: not a status: {error}", USAGE) from None


def _format_explanation(explanation: Explanation, depth: int, marks: tuple[str, str]) -> list[str]:
    """Return one line per part of the rule: a mark, the part, the reason, and where the status's text has it.

    ``marks`` are the marks of a part that matches and of one that does not.
    """
    where = "".join(f" [{start}, {end}]" for start, end in explanation.indices)
    line = f"{'  ' * depth}{marks[0] if explanation.matched else marks[1]} {explanation.text}: {explanation.why}{where}"
    return [line, *(inner for part in explanation.parts for inner in _format_explanation(part, depth + 1, marks))]
