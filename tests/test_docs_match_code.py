"""The documentation agrees with the code: generated tables, links, limits, routes, keys and tests."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from filters.follow import MAX_IDS
from filters.location import MAX_BOXES
from filters.narrowing import MAX_LANGUAGES
from filters.rule import MAX_RULES
from filters.rules.parser import MAX_RULE_CHARS
from filters.track import MAX_PHRASE_BYTES, MAX_PHRASES
from stream_server import __version__
from stream_server.hub import disconnect, stream_session
from stream_server.store import keys
from stream_server.web.http.connection_states import CLOSED, CLOSING, STATES
from stream_server.web.http.http_handler import MAX_REQUEST_LINE_BYTES
from stream_server.web.http.opening import Opening, OpeningState
from stream_server.web.routes import ROUTE_TABLE

ROOT = Path(__file__).parents[1]

_spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
assert _spec is not None
assert _spec.loader is not None
tables = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tables)


@pytest.mark.parametrize("page", tables.PAGES)
def test_the_tables_are_as_the_code_has_them(page: str) -> None:
    """`.venv/bin/python docs/tables.py` would change nothing."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert tables.renewed(text) == text, f"{page} is out of date: run .venv/bin/python docs/tables.py"


def test_every_documented_check_of_the_filters_holds() -> None:
    """No row of the page shows a ✗, which would mean that a filter does something else than documented."""
    rows = [row for row in (ROOT / "docs" / "filters.md").read_text(encoding="utf-8").split("\n") if row[:1] == "|"]
    assert [row for row in rows if "✗" in row] == []
    assert len([row for row in rows if "`" in row]) > 80


def test_every_table_is_on_a_page() -> None:
    """Each table that can be generated is on a page."""
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in tables.PAGES)
    assert set(re.findall(r"<!-- table: (\w+) -->", text)) == set(tables.TABLES)


def test_every_page_of_the_reference_is_generated_and_linked() -> None:
    """Each page of the reference has a table, and its index and the README lead to it."""
    pages = sorted((ROOT / "docs" / "reference").glob("[a-z]*.md"))
    index = (ROOT / "docs" / "reference" / "README.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in pages if "<!-- table: " not in page.read_text(encoding="utf-8")] == []
    assert [page.name for page in pages if f"]({page.name})" not in index] == []
    assert "](docs/reference/README.md)" in readme


def test_the_readme_is_short() -> None:
    """The README says what it is and leads on; the rest is in the guide and the reference."""
    assert len((ROOT / "README.md").read_bytes()) < 8_000


def test_every_page_of_the_guide_is_linked_in_the_readme() -> None:
    """A page of the guide that the README does not lead to would not be read."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [
        page.name for page in (ROOT / "docs" / "guide").glob("*.md") if f"docs/guide/{page.name}" not in readme
    ] == []


def test_the_limits_of_a_stream_are_documented() -> None:
    """The paragraph "Bounds" of the wire has the limits of the code."""
    documented = (
        (ROOT / "docs" / "api.md").read_text(encoding="utf-8").partition("**Bounds.** ")[2].partition("\n\n")[0]
    )
    bounds = (
        f"{MAX_PHRASES} phrases of 1 to {MAX_PHRASE_BYTES} bytes",
        f"{MAX_IDS:,} ids", f"{MAX_BOXES} boxes", f"{MAX_LANGUAGES} tags",
        f"{MAX_RULES} rules of up to {MAX_RULE_CHARS:,} code points", f"up to {MAX_REQUEST_LINE_BYTES // 1024} KiB",
    )  # fmt: skip
    assert [bound for bound in bounds if bound not in documented] == []


def test_the_changelog_knows_this_version() -> None:
    """The present version has an entry."""
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


ENDS = (CLOSING, CLOSED)


def test_the_picture_of_a_connection_shows_every_state_and_every_move() -> None:
    """The drawing has the moves of a connection that lives on, and its table has exactly the moves that end one."""
    drawing, _, table = _picture("states_of_a_connection").partition("\n\n")
    moves = {(state.name, event.name): to for state in STATES for event, to in state.moves.items()}
    drawn = {event for (state, event), to in moves.items() if to.name != state and to not in ENDS}
    names = set(re.findall(r"[A-Z_]{4,}", drawing))
    assert names == drawn | {state.name for state in STATES if state not in ENDS}
    arrows = re.findall(r"\b(\w+)(?= -+ (\w+) -+> (\w+))", drawing)
    arrows += [(start, event, end) for end, event, start in re.findall(r"(\w+) <-+ (\w+) -+ (\w+)", drawing)]
    assert len(arrows) == 4
    assert [(start, event, end) for start, event, end in arrows if moves[start, event].name != end] == []
    said = {
        (state, event): to
        for event, *ends in (re.split(r"  +", line) for line in table.splitlines()[1:])
        for to, states in zip(ENDS, ends, strict=True)
        for state in states.replace("-", "").split()
    }
    assert said == {pair: to for pair, to in moves.items() if to in ENDS and pair[0] != to.name}


def test_the_picture_of_an_opening_names_its_states_and_what_moves_it() -> None:
    """FREE is left out, because the text behind the picture explains it."""
    picture = _picture("states_of_an_opening")
    assert set(re.findall(r"[A-Z_]{5,}", picture)) == {state.name for state in OpeningState} - {OpeningState.FREE.name}
    assert all(hasattr(Opening, name) for name in re.findall(r"(\w+)\(\)", picture))


def test_the_picture_of_a_stream_names_every_end() -> None:
    """Each code of `goodbye`, and each outcome without one, stands in the last paragraph, and no other."""
    *_, ends = _picture("states_of_a_stream").split("\n\n")
    said = re.fullmatch(r"ENDED with[\w ]+`goodbye`: (.+)\. Or.+: (.+)\.", re.sub(r"\([^)]+\)|\s+", " ", ends))
    assert said
    reasons = [value for value in vars(disconnect).values() if isinstance(value, disconnect.DisconnectReason)]
    codes = {reason.code for reason in (*reasons, disconnect.shutdown_reason(1.0))} - {disconnect.GONE.code}
    assert set(said[1].split()) == codes
    assert set(re.findall(r"\w+", said[2])) == {stream_session.LEFT, stream_session.ABORTED, stream_session.FAILED}


def _picture(name: str) -> str:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return page.partition(f"<!-- table: {name} -->\n```text\n")[2].partition("\n```")[0]


def test_links_between_the_pages_lead_somewhere() -> None:
    """A relative link names a file or folder of the repository."""
    pages = [ROOT / name for name in ("README.md", "CHANGELOG.md", ".github/CONTRIBUTING.md", "examples/README.md")]
    for page in [*pages, *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_files_that_pages_name_exist() -> None:
    """A path in code font is a file below the repository, ``stream_server``, ``tests`` or ``docs``."""
    roots = [ROOT, ROOT / "stream_server", ROOT / "tests", ROOT / "docs"]
    for name in ("README.md", "docs/architecture.md", "docs/invariants.md", "docs/security.md", "docs/social.md"):
        paths = re.findall(r"`([\w./]+/[\w.]+\.(?:py|lua|md|toml))`", (ROOT / name).read_text(encoding="utf-8"))
        assert [path for path in paths if not any((root / path).exists() for root in roots)] == [], name


def test_every_system_of_the_social_layer_is_there() -> None:
    """The table has all 27 systems in their order, each with routes, keys and tests."""
    rows = _systems()
    assert [row[0] for row in rows] == [f"S{number} ✓" for number in range(1, 28)]
    assert [row[1] for row in rows if not (row[1] and all(map(_named, row[2:])))] == []


def test_the_routes_of_the_systems_are_those_of_the_table() -> None:
    """Each route in the table exists, and each route under ``/v1/`` is in the table, except those of ``ELSEWHERE``."""
    named = {route for row in _systems() for route in _named(row[2])}
    served = {f"{route.method} {route.path}" for route in ROUTE_TABLE}
    assert sorted(named - served) == [], "docs/social.md names routes that do not exist"
    unnamed = sorted(route for route in served - named if "/v1/" in route)
    assert unnamed == list(ELSEWHERE), "name each route in the table of systems in docs/social.md"


def test_the_keys_of_the_systems_are_those_of_the_table() -> None:
    """Each key in the table is a pattern of ``stream_server.store.keys``."""
    named = {key for row in _systems() for key in _named(row[3])}
    assert sorted(named - {key.pattern for key in keys.ALL_KEYS}) == []


def test_the_tests_of_the_systems_exist() -> None:
    """Each test in the table is a function of the file that is named."""
    named = {test for row in _systems() for test in _named(row[4])}
    assert sorted(test for test in named if test not in _tests(test.partition("::")[0])) == []


def test_the_features_have_tests() -> None:
    """Each row of the table of features that says `yes` names a test that exists. The other rows name none."""
    page = (ROOT / "docs" / "guide" / "features.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 40
    unproved = [row[0] for row in rows if (row[1] == "yes") != (len(row) == 9)]
    assert unproved == []
    named = {f"tests/{row[8].strip('`')}" for row in rows if len(row) == 9}
    assert sorted(test for test in named if test not in _tests(test.partition("::")[0])) == []


def test_the_tests_of_the_threats_exist() -> None:
    """Each test or file of tests in the table of threats is there."""
    table = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w./]+\.py(?:::\w+)?)`", table))
    assert len(named) > 25
    assert sorted(test for test in named if "::" in test and test not in _tests(test.partition("::")[0])) == []


ELSEWHERE = (
    "GET /v1/admin/operations", "GET /v1/admin/operations/history", "GET /v1/trends", "POST /v1/admin/users",
    "POST /v1/events", "POST /v1/ingest", "POST /v1/stream", "POST /v1/streams/ticket",
)  # fmt: skip
"""Routes of no system: the operator's page, trends, accounts for replays, another site, second methods, and tickets."""


def _systems() -> list[list[str]]:
    text = (ROOT / "docs" / "social.md").read_text(encoding="utf-8")
    table = text.partition("<!-- systems -->")[2].partition("<!-- /systems -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")[3:-1]]


def _named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _tests(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {f"{path}::{function.name}" for function in functions}
