"""Which redis-server is taken, and what is said when there is none."""

import os
from pathlib import Path

import pytest

from stream_server.downloads import wheel
from stream_server.runtime import embedded_redis as module
from stream_server.runtime.embedded_redis import NoRedisBinary, find_redis_binary


def binary_saying(folder: Path, said: str) -> Path:
    """A stand-in for a redis-server, of which only the version is asked."""
    folder.mkdir()
    path = folder / "redis-server"
    path.write_text(f'#!/bin/sh\necho "{said}"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """PATH with Redis 5.0, 6.2 and 7.4, in this order, a folder without any, and the pinned wheel's of 6.2."""
    found = [
        binary_saying(tmp_path / name, f"Redis server v={version} sha=00000000:0 bits=64")
        for name, version in [("five", "5.0.7"), ("six", "6.2.1"), ("seven", "7.4.2"), ("wheel", "6.2.14")]
    ]
    entries = [str(path.parent) for path in found[:3]]
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "absent"), "", *entries, "/bin-of-nobody"]))
    monkeypatch.setattr(module, "_packaged", lambda: found[3:])
    return found


def test_the_search_prefers_seven_then_the_package_then_an_older_one(on_path: list[Path]) -> None:
    """Old ones before it on PATH are passed over; the packaged one comes before an older one of PATH."""
    _, six, seven, wheel = on_path
    assert find_redis_binary() == (seven, (7, 4, 2))
    seven.unlink()
    assert find_redis_binary() == (wheel, (6, 2, 14))
    wheel.unlink()
    assert find_redis_binary() == (six, (6, 2, 1))


def test_no_binary_is_one_sentence(on_path: list[Path]) -> None:
    """It says how to get one; what is too old to be used does not count."""
    for path in on_path[1:]:
        path.unlink()
    with pytest.raises(NoRedisBinary, match=r"no redis-server found: .+ install Redis 7") as refusal:
        find_redis_binary()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("platform", "told"), [("linux-x86_64-glibc", True), ("linux-aarch64", False)])
def test_a_fetch_is_advised_where_there_is_a_wheel(
    on_path: list[Path], monkeypatch: pytest.MonkeyPatch, platform: str, *, told: bool
) -> None:
    """Elsewhere the sentence names the system's package alone."""
    for path in on_path:
        path.unlink()
    monkeypatch.setattr(wheel, "platform_name", lambda: platform)
    with pytest.raises(NoRedisBinary, match="install") as refusal:
        find_redis_binary()
    assert ("stream-server fetch" in str(refusal.value)) is told


def test_a_given_binary_must_be_a_redis_server(tmp_path: Path) -> None:
    """A missing file, another program and an old Redis are refused by name."""
    old = binary_saying(tmp_path / "old", "Redis server v=5.0.7")
    other = binary_saying(tmp_path / "other", "PostgreSQL 17")
    for path in (old, other, tmp_path / "absent"):
        with pytest.raises(NoRedisBinary, match=str(path)):
            find_redis_binary(path)
