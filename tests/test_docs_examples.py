"""The examples of the documentation work as they are written: each page's blocks run in order beside a real server."""

import asyncio
import configparser
import json
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from stream_server.cli import cli
from stream_server.client import Client
from stream_server.config.settings import SETTINGS
from stream_server.web.routes import ROUTE_TABLE
from stream_server.wire.errors import STATUS_BY_CODE
from tests.clients.toolchains import COMPILERS
from tests.docs_examples import Block, Reader, blocks, last_json, same_shape, shape
from tests.end_to_end.api import mint
from tests.end_to_end.nginx import WHOLE, find_nginx
from tests.end_to_end.server import ROOT, Server

PAGES = [
    ROOT / "README.md",
    ROOT / ".github" / "CONTRIBUTING.md",
    ROOT / "docs" / "ingest.md",
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    ROOT / "docs" / "notebooks.md",
]

RUN = [page for page in PAGES if any(block.language in {"sh", "python"} for block in blocks(page))]

LANGUAGES = {"sh", "python", "json", "toml", "yaml", "ini", "nginx", "text", "html", "js", *COMPILERS}


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A reader of one page, whose user is ada. Two users of the demo exist too."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    server = Server(tmp_path / "server", variables={"TMPDIR": str(temporary)}).start()

    async def sign_up() -> str:
        async with Client(server.address) as api:
            for login in ("bob", "cyd"):
                await api.sign_up(login, login.title(), f"{login}@example.org", "a good password")
            return (await api.sign_up("ada", "Ada", "ada@example.org", "a good password")).id

    (tmp_path / "page").mkdir()
    made = Reader(tmp_path / "page", server, mint(asyncio.run(sign_up())))
    yield made
    made.close()


@pytest.mark.extended
@pytest.mark.parametrize("page", RUN, ids=page_id)
def test_the_examples_of_a_page_run(page: Path, reader: Reader) -> None:
    """Shell and Python blocks succeed in order. A JSON block has the structure of the last answer before it.

    A block above which the page says why it is not run is left out.
    """
    output = ""
    for block in blocks(page):
        if block.reason:
            continue
        if block.is_server:
            reader.start_server(block)
        elif block.language == "sh":
            output = reader.run_shell(block)
        elif block.language == "python":
            reader.run_program(block)
        elif block.language == "json":
            answer = last_json(output)
            assert same_shape(shape(json.loads(block.text)), shape(answer)), json.dumps(answer, ensure_ascii=False)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_block_is_checked(page: Path) -> None:
    """Each block has a language that a test checks, or says above it why it is not run."""
    for block in blocks(page):
        assert block.language in LANGUAGES, block
        assert block.language != "text" or block.reason or "│" in block.text, block


def _all_blocks(language: str) -> Iterator[Block]:
    return (block for page in PAGES for block in blocks(page) if block.language == language)


def test_only_one_page_has_programs_for_browsers() -> None:
    """`tests/browser/test_guide.py` runs them."""
    found = {page.name for page in PAGES for block in blocks(page) if block.language in {"html", "js"}}
    assert found == {"browsers.md"}


def test_settings_files_have_known_settings() -> None:
    """Each line of a TOML block is a setting of its type; the block of a package has its entry points."""
    known = {setting.name: setting.default for setting in SETTINGS}
    for block in _all_blocks("toml"):
        values = tomllib.loads(block.text)
        if "project" not in values:
            wrong = {name for name, value in values.items() if not isinstance(value, type(known.get(name))) and not (
                isinstance(known.get(name), float) and isinstance(value, int)
            )}  # fmt: skip
            assert wrong == set(), block.text


def test_systemd_units_start_an_existing_command() -> None:
    """The units can be parsed, and `ExecStart` names a command and options that exist."""
    for block in _all_blocks("ini"):
        unit = configparser.ConfigParser(strict=True, interpolation=None)
        unit.read_string(block.text)
        program, command, *options = unit["Service"]["ExecStart"].split()
        assert program.endswith("/stream-server")
        found = cli.get_command(click.Context(cli), command)
        assert found is not None
        names = {name for option in found.params for name in option.opts}
        assert {option for option in options if option.startswith("--")} <= names


def test_yaml_can_be_parsed() -> None:
    """The scrape configuration names a job with targets."""
    for block in _all_blocks("yaml"):
        assert yaml.safe_load(block.text)["scrape_configs"][0]["static_configs"][0]["targets"]


def test_nginx_takes_the_configuration() -> None:
    """`nginx -t` accepts it where nginx is installed. Elsewhere each line must end as a directive or a block does."""
    for block in _all_blocks("nginx"):
        lines = [line.strip() for line in block.text.splitlines() if line.strip()]
        assert [line for line in lines if line[-1] not in ";{}"] == []
        assert block.text.count("{") == block.text.count("}")
        if find_nginx() is not None:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "nginx.conf").write_text(WHOLE.format(folder=folder, text=block.text))
                command = [str(find_nginx()), "-t", "-q", "-p", folder, "-c", f"{folder}/nginx.conf"]
                subprocess.run(command, check=True, capture_output=True)


def test_every_body_has_an_example() -> None:
    """Each route that takes a JSON body occurs in the page of requests, with its method unless it is POST."""
    text = (ROOT / "docs" / "guide" / "requests.md").read_text(encoding="utf-8")
    requests = re.findall(r"^api (?:-X (\w+) )?\$URL(\S+) -d", text, re.MULTILINE)
    shown = {(method or "POST", re.sub(r"\$\w+", "{}", path)) for method, path in requests}
    with_body = {(row.method, re.sub(r"\{\w+\}", "{}", row.path)) for row in ROUTE_TABLE if row.body is not None}
    assert with_body - shown == set()


def test_every_error_code_has_advice() -> None:
    """The page of errors says for each code what a client does."""
    text = (ROOT / "docs" / "guide" / "errors.md").read_text(encoding="utf-8")
    assert [code for code in STATUS_BY_CODE if f"`{code}`" not in text] == []
