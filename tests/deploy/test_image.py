"""Every step of the Dockerfile runs, and the image works as ``compose.yaml`` starts it: read-only, without rights."""

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from packaging.requirements import Requirement

from tests.deploy import podman
from tests.end_to_end.api import Api
from tests.end_to_end.server import ROOT, SECRET, Server
from tests.redis_process import free_port, private_redis
from tests.waiting import eventually

# To build it takes a sixteenth of the processor time of all tests, and a workflow builds it by `compose.yaml` as well.
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(podman.BUILD_SECONDS + 60)]

MOST_MIB = 180
"""Size of the whole system of the image, uncompressed."""

ABSENT = {"pip", "pip3", "setuptools", "ensurepip", "gcc", "as", "ld", "strip", "Python.h", "conftest.py"}
"""Names that no file and no folder with a file has in the image: what builds, and what only tests need."""

COMPILED = """
import json, pathlib, sys, stream_server.__main__, stream_server.app, stream_server.hub.send_to_each
cached = [m.__spec__.cached for m in list(sys.modules.values()) if getattr(m, "__spec__", None) and m.__spec__.cached]
print(json.dumps([len(cached), [path for path in cached if not pathlib.Path(path).exists()]]))
"""
"""Prints how many modules the server imports, and which of them have no bytecode."""

DISTRIBUTIONS = """
import importlib.metadata as m, json
print(json.dumps({d.name.lower().replace("_", "-"): [d.version, bool(m.files(d.name))] for d in m.distributions()}))
"""
"""Prints what a scanner of software finds: the installed packages with their versions and lists of files."""


TRY_TO_WRITE = """
echo $(id -u):$(id -g)
for folder in / /data /tmp /opt/stream-server; do if touch $folder/new 2>/dev/null; then echo $folder; fi; done
"""
"""Prints the user and the group, and the folders in which they can write."""


def inside(*command: str) -> str:
    """Run a command in a new container; return what it printed."""
    with podman.container(podman.image(), *command) as name:
        assert podman.podman("wait", name).strip() == "0", podman.podman("logs", name)
        return podman.podman("logs", name)


def locked() -> dict[str, str]:
    """Return the version of each package that ``requirements.lock`` has for the image, without those that build."""
    here = {"sys_platform": "linux", "platform_machine": "x86_64", "python_full_version": "3.13.5"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    builds = {Requirement(each).name for each in project["dependency-groups"]["build"]}
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    wanted = [Requirement(line.rstrip(" \\")) for line in lines if line[:1].isalnum()]
    return {
        each.name: str(each.specifier).removeprefix("==")
        for each in wanted
        if each.name not in builds and (each.marker is None or each.marker.evaluate(here))
    }


def test_it_says_what_it_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    told: dict[str, Any] = podman.configuration(podman.image())["Config"]
    labels = {name.removeprefix("org.opencontainers.image."): text for name, text in told["Labels"].items()}
    assert {name: labels[name] for name in ("title", "description", "licenses", "version")} == {
        "title": "stream-server", "description": project["description"], "licenses": project["license"],
        "version": podman.VERSION,
    }  # fmt: skip
    assert {"revision", "created"} <= labels.keys()
    assert (told["User"], list(told["Volumes"]), list(told["ExposedPorts"])) == ("10001:10001", ["/data"], ["8000/tcp"])


def test_it_holds_what_runs_and_nothing_that_builds() -> None:
    with podman.root(podman.image()) as root:
        files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
        assert [path for path in files if ABSENT & {path.name, path.parent.name}] == []
        assert sum(path.lstat().st_size for path in files) <= MOST_MIB * 2**20
    count, without_bytecode = json.loads(inside("python3", "-c", COMPILED))
    assert count > 300
    assert without_bytecode == []


def test_a_scanner_finds_every_locked_package() -> None:
    found = json.loads(inside("python3", "-c", DISTRIBUTIONS))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    expected = {**locked(), project["name"]: project["version"]}
    assert found == {name: [version, True] for name, version in expected.items()}


async def test_a_server_serves_and_says_goodbye(tmp_path: Path) -> None:
    port, server = free_port(), Server(tmp_path)
    server.address = f"http://127.0.0.1:{port}"
    variables = {"HOST": "127.0.0.1", "PORT": str(port), "JWT_SECRET": SECRET, "LIMITS": "off"}
    given = {f"STREAM_SERVER_{name}": value for name, value in variables.items()}
    with podman.container(podman.image(), **given) as name:
        await eventually(lambda: _ready(server.address), what="it serves")
        podman.podman("healthcheck", "run", name)
        assert podman.podman("exec", name, "sh", "-c", TRY_TO_WRITE).splitlines() == ["10001:10001", "/data", "/tmp"]
        async with Api(server) as api:
            uid = await api.user()
            async with await api.stream({"follow": uid}) as stream:
                post = await api.post(uid, "from the image")
                await stream.until(lambda c: ("post", post["id"]) in c.received)
                await asyncio.to_thread(podman.podman, "stop", "--time", "20", name)
                await stream.until_end()
                assert stream.of("goodbye")
        assert _ended(name) == 0


async def test_a_worker_works_without_a_port() -> None:
    with private_redis(port=0) as redis:
        variables = {"STREAM_SERVER_REDIS": redis.url, "STREAM_SERVER_JWT_SECRET": SECRET}
        with podman.container(podman.image(), "stream-server", "worker", **variables) as name:
            await eventually(lambda: "processing jobs" in podman.podman("logs", name), what="it works")
            podman.podman("healthcheck", "run", name)
            podman.podman("stop", "--time", "20", name)
            assert _ended(name) == 0


async def _ready(address: str) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(address + "/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientConnectionError:
        return False


def _ended(name: str) -> int:
    """Return the exit code of a container that was stopped."""
    assert "Traceback" not in podman.podman("logs", name)
    return int(podman.podman("inspect", "--format", "{{.State.ExitCode}}", name))
