"""Secrets come from variables, files and the settings file, never from the command line."""

from pathlib import Path

import pytest

from stream_server.config.config import load
from stream_server.config.settings import SETTINGS, InvalidSetting

SECRET = "hunter22" * 5


def test_a_variable_names_a_file_with_the_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")
    for setting in SETTINGS:
        if setting.is_secret and setting.has_flag is False:
            found = load({}, {setting.environment_variable + "_FILE": str(file)})
            assert getattr(found, setting.name) == SECRET
    both = {"STREAM_SERVER_JWT_SECRET": "x" * 40, "STREAM_SERVER_JWT_SECRET_FILE": str(file)}
    assert load({}, both).jwt_secret == "x" * 40


def test_a_missing_file_is_named_by_its_variable(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="STREAM_SERVER_JWT_SECRET_FILE"):
        load({}, {"STREAM_SERVER_JWT_SECRET_FILE": str(tmp_path / "missing")})
    with pytest.raises(InvalidSetting, match="did you mean STREAM_SERVER_HEARTBEAT_SECONDS"):
        load({}, {"STREAM_SERVER_HEARTBEAT": "5"})
    with pytest.raises(InvalidSetting, match="unknown setting STREAM_SERVER_ZZZ; `stream-server serve --help`"):
        load({}, {"STREAM_SERVER_ZZZ": "5"})
    with pytest.raises(InvalidSetting, match="unknown setting"):
        load({}, {"STREAM_SERVER_PORT_FILE": str(tmp_path / "port")})


@pytest.mark.parametrize("url", ["redis://:hunter22@h:6379", "redis://u:hunter22@h", "redis://h?password=hunter22"])
def test_a_password_in_a_flag_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidSetting, match="STREAM_SERVER_REDIS_FILE") as refusal:
        load({"redis": url}, {})
    assert "hunter22" not in str(refusal.value)
    assert load({}, {"STREAM_SERVER_REDIS": url}).redis == url


def test_a_url_without_a_password_may_be_a_flag() -> None:
    for url in ("redis://h:6379/0", "unix:///run/redis.sock", "redis://user@h"):
        assert load({"redis": url}, {}).redis == url


def test_keys_and_tokens_have_no_flag() -> None:
    without = {setting.name for setting in SETTINGS if not setting.has_flag}
    assert without == {"jwt_secret", "jwt_previous_secret", "bus_secret", "operations_token"}
