"""Reads the files of ``deploy/``."""

from pathlib import Path
from typing import Any

import click
import yaml

from stream_server.cli import cli
from stream_server.config.config import FILE_SUFFIX
from stream_server.config.settings import SETTINGS
from tests.end_to_end.server import ROOT

FOLDER = ROOT / "deploy"


def text(path: str) -> str:
    """Return the text of a file, named relative to ``deploy/``."""
    return (FOLDER / path).read_text(encoding="utf-8")


def documents(*paths: str) -> list[Any]:
    """Return all YAML documents of these files, in order."""
    return [document for path in paths for document in yaml.safe_load_all(text(path))]


def paths(pattern: str) -> list[str]:
    """Return the names of the files that match ``pattern``, relative to ``deploy/``."""
    return sorted(str(Path(found).relative_to(FOLDER)) for found in FOLDER.glob(pattern))


def unknown_variables(names: set[str]) -> set[str]:
    """Return those environment variables that are no setting of the server."""
    known = {setting.environment_variable for setting in SETTINGS}
    return {name for name in names if name not in known and name.removesuffix(FILE_SUFFIX) not in known}


def unknown_options(words: list[str]) -> set[str]:
    """Return the options in ``stream-server COMMAND --option …`` that the command does not have."""
    program, command, *rest = words
    assert program.rpartition("/")[2] == "stream-server"
    found = cli.get_command(click.Context(cli), command)
    assert found is not None, command
    known = {name for option in found.params for name in option.opts}
    return {word for word in rest if word.startswith("--")} - known
