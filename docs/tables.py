"""Writes the tables of the docs from the code: `python docs/tables.py` puts them in place, the suite checks them.

A table stands between `<!-- table: NAME -->` and `<!-- /table -->`.
"""

import re
import runpy
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from filters.base import Filter
from filters.registry import Registry
from stream_server.config.settings import SETTINGS
from stream_server.errors import STATUS_BY_CODE
from stream_server.events.visibility import Visibility, VisibilityFact
from stream_server.events.visibility import decide_visibility as decided
from stream_server.runtime.metrics import WATCHED_METRICS
from stream_server.store.keys import CORE_KEYS, DERIVED_KEYS
from stream_server.web.openapi.operation import operation_summary
from stream_server.web.route import ANY_TOKEN, NO_TOKEN, Route
from stream_server.web.routes import ROUTE_TABLE

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/api.md", "docs/filters.md", "docs/operations.md", "docs/architecture.md", "docs/social.md")

_BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- /table -->)", re.DOTALL)


def settings() -> str:
    """Every setting with its flag, variable and default, and whether a server that runs can take another."""
    rows = (
        (
            f"`{s.flag}`", f"`{s.environment_variable}`", f"`{s.default}`" if s.default != "" else "", s.unit, s.help,
            "yes" if s.is_reloadable else "",
        )
        for s in SETTINGS
    )  # fmt: skip
    return _table(("flag", "environment", "default", "unit", "meaning", "reload"), rows)


def errors() -> str:
    """Every error code with its status."""
    return _table(("status", "code"), ((str(status), f"`{code}`") for code, status in STATUS_BY_CODE.items()))


def built_in() -> list[type[Filter]]:
    """The filters that come with the server, in alphabetical order."""
    return [one for one in Registry.from_entry_points().all() if one.__module__.partition(".")[0] == "filters"]


def filters() -> str:
    """Every filter of this repository; others may be installed beside them."""
    rows = ((f"`{one.name}`", one.role, one.help) for one in built_in())
    return _table(("parameter", "role", "meaning"), rows)


def metrics() -> str:
    """Every figure that the hub and the feed count."""
    return _table(("metric", "kind", "meaning"), ((f"`{m.name}`", m.kind, m.help) for m in WATCHED_METRICS))


def keys() -> str:
    """Every key in Redis."""
    rows = (
        (f"`{key.pattern}`", key.type, "truth" if key in CORE_KEYS else "derived", key.description)
        for key in CORE_KEYS + DERIVED_KEYS
    )
    return _table(("key", "type", "", "content"), rows)


def routes() -> str:
    """Every route but the streams, with what it is asked; `?` is what may be left out."""
    scopes = {NO_TOKEN: "open", ANY_TOKEN: "any"}
    told = [row for row in ROUTE_TABLE if row.query is not None]
    rows = ((_asked(row), scopes.get(row.scope, row.scope), operation_summary(row), _answered(row)) for row in told)
    return _table(("method and path", "scope", "what", "answer"), rows)


def _asked(row: Route) -> str:
    """The method and path, with the names in the query and in the body."""
    names = msgspec.structs.fields(row.query) if row.query else ()
    query = "&".join(f"{field.encode_name}=" for field in names)
    said = f"`{row.method} {row.path}{query and '?'}{query}`"
    if row.body is None:
        return said
    members = (f"{one.encode_name}{'' if one.required else '?'}" for one in msgspec.structs.fields(row.body))
    return f"{said} `{{{', '.join(members)}}}`"


def _answered(row: Route) -> str:
    statuses = " or ".join(str(status) for status in (row.status, *row.other_statuses))
    return f"{statuses} `{row.response.__name__}`" if row.response else statuses


_VIEWERS = {
    "anybody": VisibilityFact.NONE,
    "an approved follower of the author": VisibilityFact.FOLLOWER,
    "a member of that group": VisibilityFact.GROUP_MEMBER,
    "in that talk": VisibilityFact.PARTICIPANT,
    "any of these, who has muted the author": VisibilityFact.FOLLOWER
    | VisibilityFact.GROUP_MEMBER
    | VisibilityFact.PARTICIPANT
    | VisibilityFact.MUTED,
    "any of these, blocking the author or blocked": VisibilityFact.FOLLOWER
    | VisibilityFact.GROUP_MEMBER
    | VisibilityFact.PARTICIPANT
    | VisibilityFact.BLOCKED,
    "the author": VisibilityFact.AUTHOR,
    "anybody, also the author, while the author is suspended": VisibilityFact.AUTHOR | VisibilityFact.SUSPENDED,
}
_WRITTEN = {
    "in public": VisibilityFact.NONE,
    "by a protected author": VisibilityFact.PROTECTED,
    "in a private group": VisibilityFact.PRIVATE_GROUP,
    "in a talk": VisibilityFact.DIRECT_MESSAGE,
}
_SEEN = {Visibility.HIDDEN: "", Visibility.ON_REQUEST: "quiet", Visibility.VISIBLE: "yes"}


def sight() -> str:
    """Who sees what, by the function that decides it."""
    rows = (
        (who, *(_SEEN[decided(facts | written)] for written in _WRITTEN.values())) for who, facts in _VIEWERS.items()
    )
    return _table(("the viewer is", *(f"written {where}" for where in _WRITTEN)), rows)


def round_trips() -> str:
    """How often each route asks Redis, and why more than once."""
    rows = (
        (f"`{row.method} {row.path}`", str(row.round_trips.limit), row.round_trips.reason)
        for row in ROUTE_TABLE
        if row.has_round_trip_limit
    )
    return _table(("method and path", "at most", "why more than one"), rows)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def semantics() -> dict[str, Callable[[], str | None]]:
    """What filters match, by the code that matches, on the texts that the suite tries; see `semantics.py`."""
    sys.path.append(str(ROOT))  # the suite's texts lie in `tests`, which is not installed
    made = runpy.run_path(str(Path(__file__).with_name("semantics.py")))["TABLES"]
    return {name: lambda make=make: (found := make()) and _table(*found) for name, make in made.items()}


TABLES: dict[str, Callable[[], str | None]] = {
    **semantics(),
    "sight": sight,
    "round_trips": round_trips,
    "routes": routes,
    "settings": settings,
    "errors": errors,
    "filters": filters,
    "metrics": metrics,
    "keys": keys,
}


def renewed(text: str) -> str:
    """``text`` with every table as the code has it now; one that cannot be made here stays as it is."""
    return _BLOCK.sub(_renewed, text)


def _renewed(block: re.Match[str]) -> str:
    made = TABLES[block[2]]()
    return block[0] if made is None else block[1] + made + block[3]


def main() -> int:
    """Put the tables in place; gives the number of pages that changed."""
    changed = 0
    for page in (ROOT / name for name in PAGES):
        text = page.read_text(encoding="utf-8")
        if renewed(text) != text:
            page.write_text(renewed(text), encoding="utf-8")
            changed += 1
    return changed


if __name__ == "__main__":
    sys.stdout.write(f"{main()} pages changed\n")
