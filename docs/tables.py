"""Generate the tables of the documentation from the code.

`.venv/bin/python docs/tables.py` writes each table into the pages that contain it. The test suite fails if a page is
out of date. A table stands between `<!-- table: NAME -->` and `<!-- /table -->`.
"""

import importlib
import itertools
import re
import runpy
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

import click
import msgspec

from filters.base import Filter
from filters.registry import Registry
from stream_server import hub
from stream_server.cli import cli
from stream_server.config.settings import LIMIT_DEFAULTS, SETTINGS
from stream_server.events.visibility import Visibility, VisibilityFact, decide_visibility
from stream_server.monitoring.metrics import ALL_METRICS
from stream_server.store.keys import ALL_KEYS
from stream_server.web.http import connection_states, opening
from stream_server.web.limits.rate_limits import DAY, HOUR, MINUTE, QUARTER_HOUR, RATE_LIMITS
from stream_server.web.openapi.operation import operation_summary
from stream_server.web.route import ANY_TOKEN, NO_TOKEN, Route
from stream_server.web.routes import ROUTE_TABLE
from stream_server.wire.errors import STATUS_BY_CODE

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md",
    "docs/api.md",
    "docs/architecture.md",
    "docs/capacity.md",
    "docs/filters.md",
    *(f"docs/reference/{path.name}" for path in sorted((ROOT / "docs" / "reference").glob("*.md"))),
)
"""The pages that contain generated tables."""

OTHERS = ("Centrifugo", "Mercure", "nchan", "Jetstream")
"""The servers whose figures were measured."""

BESIDE = (
    "filter by words",
    "rule language",
    "protected users, blocks and mutes in the stream",
    "says what was lost (`gap`)",
    "several nodes",
    "presence: who reads a channel",
    "messages from client to client",
    "client libraries in more than two languages",
    "firehose, 1,000 clients × 50 events/s: deliveries per server-CPU-second",  # noqa: RUF001 - as the page writes it
    "… time to a client, p50 / p99, ms",
    "4,000 idle connections: memory of one, KiB",
    "… opened per second",
)
"""The rows of the README about other servers. If a title occurs twice in the figures, the first row counts."""

_BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- /table -->)", re.DOTALL)


def settings() -> str:
    """Return the settings with default, unit and help. A star marks those that a reload applies."""
    rows = (
        (
            f"`{s.flag if s.has_flag else s.environment_variable}`{' *' if s.is_reloadable else ''}",
            f"`{s.default}` {s.unit}" if s.default != "" else s.unit, s.help,
        )
        for s in SETTINGS
    )  # fmt: skip
    return _table(("setting", "default and unit", "meaning"), rows)


def limits() -> str:
    """Return the rate limits with their default numbers."""
    spans = {MINUTE: "a minute", QUARTER_HOUR: "15 minutes", HOUR: "an hour", DAY: "a day"}
    rows = (
        (f"`{row.name}`", f"{LIMIT_DEFAULTS[row.name]:,}", spans[row.window_seconds], row.noun, row.subject.value)
        for row in RATE_LIMITS
    )
    return _table(("limit", "default", "in", "what is counted", "of one"), rows)


def errors() -> str:
    """Return the HTTP statuses of errors, each with its codes."""
    codes: dict[str, list[str]] = {}
    for code, status in STATUS_BY_CODE.items():
        codes.setdefault(str(status), []).append(f"`{code}`")
    return _table(("status", "codes"), ((status, ", ".join(found)) for status, found in codes.items()))


def built_in() -> list[type[Filter]]:
    """Return the filter classes of this repository in alphabetical order, without those of installed plug-ins."""
    return [one for one in Registry.from_entry_points().all() if one.__module__.partition(".")[0] == "filters"]


def filters() -> str:
    """Return the stream parameters that are filters of this repository."""
    rows = ((f"`{one.name}`", one.role, one.help) for one in built_in())
    return _table(("parameter", "role", "meaning"), rows)


def metrics() -> str:
    """Return the Prometheus metrics of the server."""
    return "".join(f"- `{name}` ({kind}): {text}\n" for name, kind, text in ALL_METRICS)


def commands() -> str:
    """Return the commands of `stream-server`, each with its first sentence of help."""
    rows = ((f"`{name}`", command.get_short_help_str(200)) for name, command in _leaf_commands(cli))
    return _table(("command", "purpose"), rows)


def _leaf_commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield each command with its full name; the commands of a group follow its name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _leaf_commands(command, f"{prefix}{name} ")
        elif command is not None:
            yield prefix + name, command


def keys() -> str:
    """Return the patterns of all Redis keys below what bounds them."""
    lists = []
    for bound in dict.fromkeys(key.bound for key in ALL_KEYS):
        rows = (f"- `{key.pattern}` {key.type}: {key.description}\n" for key in ALL_KEYS if key.bound == bound)
        lists.append(f"**{bound[0].upper()}{bound[1:]}**\n\n{''.join(rows)}")
    return "\n".join(lists)


def routes() -> str:
    """Return the HTTP routes except streams and dialects. A `?` marks an optional body member."""
    documented = [row for row in ROUTE_TABLE if row.query is not None]
    return "".join(f"- {_format_request(row)}: {operation_summary(row)}{_format_scope(row)}\n" for row in documented)


def _format_scope(row: Route) -> str:
    """Return the scope in parentheses, unless it is the usual one of the method."""
    scopes = {NO_TOKEN: "open", ANY_TOKEN: "any scope"}
    usual = "read" if row.method == "GET" else "write"
    return "" if row.scope == usual else f" ({scopes.get(row.scope, row.scope)})"


def _format_request(row: Route) -> str:
    """Return the method and path with the names of the query parameters and of the body members."""
    names = msgspec.structs.fields(row.query) if row.query else ()
    query = "&".join(f"{field.encode_name}=" for field in names)
    request = f"`{row.method} {row.path}{query and '?'}{query}`"
    if row.body is None:
        return request
    members = (f"{field.encode_name}{'' if field.required else '?'}" for field in msgspec.structs.fields(row.body))
    return f"{request} `{{{', '.join(members)}}}`"


_VIEWERS = {
    "any user": VisibilityFact.NONE,
    "an approved follower of the author": VisibilityFact.FOLLOWER,
    "a member of the group": VisibilityFact.GROUP_MEMBER,
    "a participant of the talk": VisibilityFact.PARTICIPANT,
    "any of these, and mutes the author": VisibilityFact.FOLLOWER
    | VisibilityFact.GROUP_MEMBER
    | VisibilityFact.PARTICIPANT
    | VisibilityFact.MUTED,
    "any of these, and one of the two blocks the other": VisibilityFact.FOLLOWER
    | VisibilityFact.GROUP_MEMBER
    | VisibilityFact.PARTICIPANT
    | VisibilityFact.BLOCKED,
    "the author": VisibilityFact.AUTHOR,
    "any user, also the author, while the author is suspended": VisibilityFact.AUTHOR | VisibilityFact.SUSPENDED,
}
_WRITTEN = {
    "for the public": VisibilityFact.NONE,
    "by a protected author": VisibilityFact.PROTECTED,
    "in a private group": VisibilityFact.PRIVATE_GROUP,
    "in a talk": VisibilityFact.DIRECT_MESSAGE,
}
_SEEN = {Visibility.HIDDEN: "", Visibility.ON_REQUEST: "on request", Visibility.VISIBLE: "yes"}


def visibility() -> str:
    """Return who sees what, computed by the function that decides it."""
    rows = (
        (viewer, *(_SEEN[decide_visibility(facts | audience)] for audience in _WRITTEN.values()))
        for viewer, facts in _VIEWERS.items()
    )
    return _table(("the viewer is", *(f"written {audience}" for audience in _WRITTEN)), rows)


def others() -> str:
    """Return the rows of the README about other servers: those of the tables of features and of figures."""
    known: dict[str, dict[str, str]] = {}
    for page in ("guide/features.md", "figures.md"):
        for table in re.findall(r"(?:^\|.*\n)+", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE):
            head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
            names = [name.lower() for name in head]
            found = {row[0]: dict(zip(names, row, strict=False)) for row in reversed(rows) if "nchan" in names}
            known |= found
    columns = ("stream-server", *OTHERS)
    return _table(("", *columns), ([title, *(known[title][name.lower()] for name in columns)] for title in BESIDE))


def _picture(module: ModuleType) -> str:
    """Return the picture in the docstring of a module: the indented lines behind the first double colon."""
    lines = (module.__doc__ or "").partition("::\n")[2].splitlines(keepends=True)
    indented = itertools.takewhile(lambda line: line.startswith("    ") or line == "\n", lines)
    picture = textwrap.dedent("".join(indented)).strip("\n")
    return f"```text\n{picture}\n```\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def semantics() -> dict[str, Callable[[], str | None]]:
    """Return the tables of `semantics.py`: examples of what filters match, evaluated by the filters themselves."""
    sys.path.append(str(ROOT))  # the examples are data of `tests`, which is not an installed package
    builders = runpy.run_path(str(Path(__file__).with_name("semantics.py")))["TABLES"]
    return {name: lambda build=build: (rows := build()) and _table(*rows) for name, build in builders.items()}


def capacity() -> dict[str, Callable[[], str]]:
    """Return the tables of capacity: the unit costs in `bench/unit_costs.json`, and what is computed from them."""
    sys.path.append(str(ROOT))  # `bench` is no installed package
    blocks: dict[str, Callable[[], str]] = importlib.import_module("bench.capacity_page").blocks()
    return blocks


TABLES: dict[str, Callable[[], str | None]] = {
    **semantics(),
    **capacity(),
    "visibility": visibility,
    "routes": routes,
    "commands": commands,
    "settings": settings,
    "limits": limits,
    "errors": errors,
    "filters": filters,
    "metrics": metrics,
    "keys": keys,
    "others": others,
    "states_of_a_connection": lambda: _picture(connection_states),
    "states_of_a_stream": lambda: _picture(hub),
    "states_of_an_opening": lambda: _picture(opening),
}


def renewed(text: str) -> str:
    """Return ``text`` with every table renewed. A table stays unchanged if this machine lacks the data for it."""
    return _BLOCK.sub(_renewed, text)


def _renewed(block: re.Match[str]) -> str:
    table = TABLES[block[2]]()
    return block[0] if table is None else block[1] + table + block[3]


def main() -> int:
    """Renew the tables in all pages. Return the number of pages that changed."""
    changed = 0
    for page in (ROOT / name for name in PAGES):
        text = page.read_text(encoding="utf-8")
        if renewed(text) != text:
            page.write_text(renewed(text), encoding="utf-8")
            changed += 1
    return changed


if __name__ == "__main__":
    sys.stdout.write(f"{main()} pages changed\n")
