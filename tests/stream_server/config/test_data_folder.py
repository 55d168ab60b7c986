"""Only the user who runs the server may look into its data folder."""

import stat
from pathlib import Path

import pytest

from stream_server.config.config import make_private
from stream_server.config.settings import InvalidSetting
from stream_server.runtime.embedded_redis import EmbeddedRedis
from stream_server.security.signing_keys import load_or_create_secret


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_private(tmp_path: Path) -> None:
    make_private(tmp_path / "a" / "data")
    assert rights(tmp_path / "a" / "data") == 0o700


def test_an_open_folder_becomes_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private(tmp_path)
    assert rights(tmp_path) == 0o700


def test_the_open_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    tmp_path.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(InvalidSetting, match=r"other users can read the data folder .*`chmod 700` it"):
        make_private(tmp_path)


async def test_no_file_of_the_data_folder_is_readable_by_others(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    load_or_create_secret(str(folder))
    embedded = await EmbeddedRedis.start(folder)
    try:
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert any("appendonly" in path.name for path in files)
        assert {path.name: oct(rights(path)) for path in files if rights(path) & 0o077} == {}
        assert rights(folder) == 0o700
    finally:
        await embedded.stop()
