"""Another version of the server: a copy of this one whose Lua scripts have other texts, and so other digests."""

import shutil
from pathlib import Path

from stream_server.store.redis.script_settings import SizeLimits, load_scripts
from tests.end_to_end.server import ROOT

CHANGED = "local function to_text(number)\n"
"""A line of the library that every script with a position or a time needs. The other version has one more behind it."""


def copy_changed(folder: Path) -> Path:
    """Write the packages of the other version to ``folder``, and return it as the value of ``PYTHONPATH``."""
    for package in ("stream_server", "filters"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    library = folder / "stream_server" / "store" / "lua" / "log.lua"
    text = library.read_text("utf-8")
    assert CHANGED in text
    library.write_text(text.replace(CHANGED, CHANGED + "  local same = number\n  number = same\n"), "utf-8")
    return folder


def count_scripts() -> int:
    """Return how many scripts both versions have together in one Redis."""
    texts = [script.text for script in load_scripts(SizeLimits()).values()]
    return len(texts) + sum("function to_text(" in text for text in texts)
