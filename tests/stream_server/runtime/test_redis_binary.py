"""The search for a redis-server, and the error without one."""

import os
from pathlib import Path

import pytest

from stream_server.downloads import native, wheel
from stream_server.runtime.embedded_redis import EmbeddedRedisError, find_redis_binary
from tests import unprivileged


def fake_binary(folder: Path, said: str) -> Path:
    """Write a program that prints this version."""
    folder.mkdir()
    path = folder / "redis-server"
    path.write_text(f'#!/bin/sh\necho "{said}"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """PATH with Redis 5.0, 6.2 and 7.4, in this order, a folder without Redis, and the packaged Redis 6.2."""
    found = [
        fake_binary(tmp_path / name, f"Redis server v={version} sha=00000000:0 bits=64")
        for name, version in [("five", "5.0.7"), ("six", "6.2.1"), ("seven", "7.4.2"), ("wheel", "6.2.14")]
    ]
    entries = [str(path.parent) for path in found[:3]]
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "absent"), "", *entries, "/bin-of-nobody"]))
    monkeypatch.setattr(native, "path", lambda _: found[3])
    return found


def test_the_search_prefers_redis_7_then_the_package_then_an_older_redis(on_path: list[Path]) -> None:
    _, six, seven, wheel = on_path
    assert find_redis_binary() == (seven, (7, 4, 2))
    seven.unlink()
    assert find_redis_binary() == (wheel, (6, 2, 14))
    wheel.unlink()
    assert find_redis_binary() == (six, (6, 2, 1))


def test_without_a_redis_server_one_sentence_says_how_to_get_it(on_path: list[Path]) -> None:
    for path in on_path[1:]:
        path.unlink()
    with pytest.raises(EmbeddedRedisError, match=r"no redis-server found: .+ install Redis 7") as refusal:
        find_redis_binary()
    assert "\n" not in str(refusal.value)


def test_a_folder_on_path_that_this_user_may_not_search_is_passed_over(on_path: list[Path]) -> None:
    on_path[1].parent.chmod(0)
    with unprivileged.without_rights():
        assert find_redis_binary().path == on_path[2]
    on_path[1].parent.chmod(0o700)


@pytest.mark.parametrize(("platform", "is_advised"), [("linux-x86_64-glibc", True), ("linux-aarch64", False)])
def test_fetch_is_advised_only_on_platforms_with_a_wheel(
    on_path: list[Path], monkeypatch: pytest.MonkeyPatch, platform: str, *, is_advised: bool
) -> None:
    for path in on_path:
        path.unlink()
    monkeypatch.setattr(wheel, "platform_name", lambda: platform)
    with pytest.raises(EmbeddedRedisError, match="install") as refusal:
        find_redis_binary()
    assert ("stream-server fetch" in str(refusal.value)) is is_advised


def test_a_given_binary_must_be_a_redis_server(tmp_path: Path) -> None:
    old = fake_binary(tmp_path / "old", "Redis server v=5.0.7")
    other = fake_binary(tmp_path / "other", "PostgreSQL 17")
    for path in (old, other, tmp_path / "absent"):
        with pytest.raises(EmbeddedRedisError, match=str(path)):
            find_redis_binary(path)
