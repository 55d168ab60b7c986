"""Only the user who runs the server may look into its data folder."""

import errno
import stat
from pathlib import Path

import pytest

from stream_server.config.config import load
from stream_server.config.data_folder import OWN_FOLDER, data_folder, make_private
from stream_server.config.settings import SETTINGS, InvalidSetting, Setting
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


def chosen(folder: Path) -> Path:
    return Path(load({"data_dir": str(folder)}, {}).data_dir)


@pytest.mark.parametrize("mode", [0o1777, 0o2775, 0o777, 0o775])
def test_a_folder_into_which_others_may_write_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    """The server makes a private folder in it, which the next process of the user finds again."""
    tmp_path.chmod(mode)
    load_or_create_secret(str(chosen(tmp_path)))
    assert rights(tmp_path) == mode
    assert [path.name for path in tmp_path.iterdir()] == [OWN_FOLDER]
    assert rights(tmp_path / OWN_FOLDER) & 0o777 == 0o700
    assert chosen(tmp_path) == chosen(chosen(tmp_path)) == tmp_path / OWN_FOLDER


def test_a_folder_with_other_content_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "index.html").touch()
    tmp_path.chmod(0o755)
    make_private(chosen(tmp_path))
    assert (rights(tmp_path), rights(tmp_path / OWN_FOLDER)) == (0o755, 0o700)


def test_data_stay_where_they_are_when_the_shared_folder_becomes_private(tmp_path: Path) -> None:
    (tmp_path / "index.html").touch()
    tmp_path.chmod(0o755)
    load_or_create_secret(str(chosen(tmp_path)))
    tmp_path.chmod(0o700)
    assert chosen(tmp_path) == tmp_path / OWN_FOLDER


@pytest.mark.parametrize("name", ["jwt.secret", "appendonlydir"])
def test_what_anybody_could_make_in_a_folder_like_tmp_is_no_data(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    tmp_path.chmod(0o1777)
    assert chosen(tmp_path) == tmp_path / OWN_FOLDER


def test_the_folder_of_another_user_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    assert data_folder(tmp_path) == tmp_path / OWN_FOLDER


@pytest.mark.parametrize("name", ["jwt.secret", "appendonlydir"])
def test_data_that_others_can_open_are_still_the_data(tmp_path: Path, name: str) -> None:
    """A restored copy often has other modes. A server that looked elsewhere would start empty."""
    (tmp_path / name).touch()
    tmp_path.chmod(0o775)
    assert chosen(tmp_path) == tmp_path


def test_a_private_folder_is_the_data_folder_whatever_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    tmp_path.chmod(0o700)
    assert chosen(tmp_path) == tmp_path


def test_a_file_system_without_hard_links_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(target), None, str(path))

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with pytest.raises(InvalidSetting, match=r"cannot be made by a hard link \(Operation not permitted\)"):
        load_or_create_secret(str(tmp_path))
    assert not list(tmp_path.iterdir())


PATHS = [each for each in SETTINGS if each.unit in {"file", "folder"}]


@pytest.mark.parametrize("setting", PATHS, ids=[each.name for each in PATHS])
def test_the_home_folder_in_a_path_is_expanded_once(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x").write_text("")
    for given in ({setting.name: "~/x"}, {setting.name: str(tmp_path / "x")}):
        assert getattr(load(given, {}), setting.name) == str(tmp_path / "x")
    monkeypatch.setenv("HOME", "~")
    with pytest.raises(InvalidSetting, match=f"{setting.flag} .* begins with ~, whose home folder is unknown"):
        load({setting.name: "~/x"}, {})


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
