"""``rules``: what a rule means, without a server."""

from pathlib import Path
from typing import Any

import click
import msgspec
from rich.cells import cell_len
from rich.console import Console

from filters.event import Event
from filters.registry import Registry
from filters.rules.error import RuleError
from filters.rules.explain import Explanation
from filters.rules.rule import Rule
from stream_server.commands import screen
from stream_server.commands.exits import FAILED, OK, USAGE, Failure
from stream_server.trial import event, made_up
from stream_server.view import Facts, MalformedEntry, Person

EPILOG = """
\b
Examples:
  stream-server rules explain 'tea -is:reply' --text 'a cup of tea'
  stream-server rules explain --status status.json -- '-milk (tea OR from:ada)'
\b
FILE holds a status as the API takes or gives it; "author": {"login", "id", "bio", "followers", "following", "posts"}
may stand in it, too. Exit codes: 0 it matches, 1 it does not, 2 the rule, or what it is tried on, is wrong.
"""


@click.group()
def rules() -> None:
    """Try rules, without a server."""


@rules.command(epilog=EPILOG)
@click.argument("rule")
@click.option("--text", help="The message of the status.")
@click.option("--status", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="One in JSON.")
@click.option("--lang", help="Its language; else what --status says, or what its words tell.")
@click.pass_context
def explain(context: click.Context, /, rule: str, text: str | None, file: Path | None, lang: str | None) -> None:
    """Say part by part whether RULE matches a status, and why."""
    parsed = _parsed(rule)
    if text is None and file is None:
        raise Failure("Give --text, or a status by --status", USAGE)
    given = {"message": text, "lang": lang}
    told = parsed.explain(_event(_read(file) | {name: one for name, one in given.items() if one is not None}))
    console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
    for line in _lines(told, 0):
        console.print(screen.harmless(line))
    context.exit(OK if told.matched else FAILED)


def _parsed(text: str) -> Rule:
    """The rule; one that is none ends the command, with a caret under the column at fault."""
    try:
        return Rule.parse(text, Registry.from_entry_points())
    except RuleError as error:
        shown = screen.harmless(text)
        caret = " " * cell_len(screen.harmless(text[: error.column - 1])) + "^"
        raise Failure(f"{error.message}\n  {shown}\n  {caret}", USAGE) from None


def _read(file: Path | None) -> dict[str, Any]:
    try:
        return {} if file is None else msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
        raise Failure(f"--status {file}: {error}", USAGE) from None


def _event(members: dict[str, Any]) -> Event:
    """What the filters see of a status; what it lacks is nobody's and nowhere."""
    author = members.pop("author", None)
    try:
        person = None if author is None else msgspec.convert({"id": "0", "login": "nobody", **author}, Person)
        if person is not None:
            members = {"uid": person.id, "login": person.login, **members}
        if members.get("in_reply_to") is not None:
            members = {"in_reply_to_uid": "0", **members}
        if members.get("original") is not None:
            members = {"origin": "0", **members}
        return event(made_up(members), Facts(author=person))
    except UnicodeEncodeError:
        raise Failure("--text and --lang must be UTF-8", USAGE) from None
    except (msgspec.MsgspecError, MalformedEntry, TypeError) as error:
        raise Failure(f"--status: this is no status: {error}", USAGE) from None


def _lines(told: Explanation, depth: int) -> list[str]:
    """A line a part: a tick or a cross, the part, why, and where in the message."""
    where = "".join(f" [{start}, {end}]" for start, end in told.indices)
    line = f"{'  ' * depth}{'✓' if told.matched else '✗'} {told.text}: {told.why}{where}"
    return [line, *(inner for part in told.parts for inner in _lines(part, depth + 1))]
