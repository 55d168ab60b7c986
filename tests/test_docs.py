"""The docs say what the code does: their tables are written from it, and every promise has its place."""

import importlib.util
import re
from pathlib import Path

import pytest

from filters.registry import Registry
from stream_server import __version__
from stream_server.config import SETTINGS

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


def test_every_table_stands_somewhere() -> None:
    """No table is written for nobody."""
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in tables.PAGES)
    assert set(re.findall(r"<!-- table: (\w+) -->", text)) == set(tables.TABLES)


def test_every_setting_and_filter_is_in_the_readme() -> None:
    """What cannot be found there does not exist for most people."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [s.flag for s in SETTINGS if s.flag not in readme] == []
    assert [name for name in Registry.from_entry_points().names() if f"`{name}`" not in readme] == []


def test_the_changelog_knows_this_version() -> None:
    """A version without an entry was not released, or not told."""
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_links_between_the_pages_lead_somewhere() -> None:
    """A relative link names a file of the repository."""
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
