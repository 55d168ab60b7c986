"""The docs say what the code does: their tables are written from it, and every promise has its place."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from filters.follow import MAX_IDS
from filters.language import MAX_LANGUAGES
from filters.location import MAX_BOXES
from filters.rule import MAX_RULES
from filters.rules.parser import MAX_RULE_CHARS
from filters.track import MAX_PHRASE_BYTES, MAX_PHRASES
from stream_server import __version__
from stream_server.config.settings import SETTINGS
from stream_server.store import keys
from stream_server.web.http.http_connection import MAX_REQUEST_LINE_BYTES
from stream_server.web.routes import ROUTE_TABLE

ROOT = Path(__file__).parents[1]

_spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
assert _spec is not None
assert _spec.loader is not None
tables = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tables)


@pytest.mark.parametrize("page", tables.PAGES)
def test_the_tables_are_as_the_code_has_them(page: str) -> None:
    """`python docs/tables.py` changes nothing."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert tables.renewed(text) == text


def test_every_documented_check_of_the_filters_holds() -> None:
    """Each row of the page says what the filter does, and none that it does something else."""
    rows = [row for row in (ROOT / "docs" / "filters.md").read_text(encoding="utf-8").split("\n") if row[:1] == "|"]
    assert [row for row in rows if "✗" in row] == []
    assert len([row for row in rows if "✓" in row]) > 150


def test_every_table_stands_somewhere() -> None:
    """No table is written for nobody."""
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in tables.PAGES)
    assert set(re.findall(r"<!-- table: (\w+) -->", text)) == set(tables.TABLES)


def test_every_setting_and_filter_is_in_the_readme() -> None:
    """What cannot be found there does not exist for most people."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [s.flag for s in SETTINGS if s.flag not in readme] == []
    assert [one.name for one in tables.built_in() if f"`{one.name}`" not in readme] == []


def test_the_bounds_of_a_stream_are_told() -> None:
    """Each as the code has it."""
    told = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").partition("**Bounds.** ")[2].partition("\n\n")[0]
    bounds = (
        f"{MAX_PHRASES} phrases of 1 to {MAX_PHRASE_BYTES} bytes", f"{MAX_IDS:,} ids", f"{MAX_BOXES} boxes", f"{MAX_LANGUAGES} tags",
        f"{MAX_RULES} rules of up to {MAX_RULE_CHARS:,} code points", f"up to {MAX_REQUEST_LINE_BYTES // 1024} KiB",
    )  # fmt: skip
    assert [bound for bound in bounds if bound not in told] == []


def test_the_changelog_knows_this_version() -> None:
    """A version without an entry was not released, or not told."""
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_links_between_the_pages_lead_somewhere() -> None:
    """A relative link names a file of the repository."""
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_system_of_the_social_layer_is_there() -> None:
    """All 27 in their order, each ticked, and each with routes, keys and tests."""
    rows = _systems()
    assert [row[0] for row in rows] == [f"S{number} ✓" for number in range(1, 28)]
    assert [row[1] for row in rows if not (row[1] and all(map(_named, row[2:])))] == []


def test_the_routes_of_the_systems_are_those_of_the_table() -> None:
    """Each one that is named exists, and none that somebody's data are behind is left unnamed."""
    named = {route for row in _systems() for route in _named(row[2])}
    served = {f"{route.method} {route.path}" for route in ROUTE_TABLE}
    assert sorted(named - served) == []
    assert sorted(route for route in served - named if "/v1/" in route) == list(ELSEWHERE)


def test_the_keys_of_the_systems_are_those_of_the_table() -> None:
    """Each one that is named is a pattern of the table of keys."""
    named = {key for row in _systems() for key in _named(row[3])}
    assert sorted(named - {key.pattern for key in keys.ALL_KEYS}) == []


def test_the_tests_of_the_systems_exist() -> None:
    """Each one that is named is a test of the file that is named."""
    named = {test for row in _systems() for test in _named(row[4])}
    assert sorted(test for test in named if test not in _tests(test.partition("::")[0])) == []


ELSEWHERE = ("POST /v1/admin/users", "POST /v1/events", "POST /v1/stream", "POST /v1/streams/ticket")
"""Routes that no system asks for: accounts for replays, the same by another method, and what opens a stream."""


def _systems() -> list[list[str]]:
    """The cells of each row of the table of systems."""
    text = (ROOT / "docs" / "social.md").read_text(encoding="utf-8")
    table = text.partition("<!-- systems -->")[2].partition("<!-- /systems -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")[3:-1]]


def _named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _tests(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {f"{path}::{function.name}" for function in functions}
