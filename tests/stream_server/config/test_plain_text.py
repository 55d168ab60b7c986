"""What editors of Windows and shells add to settings: a byte order mark, carriage returns and blanks."""

from pathlib import Path

import pytest

from stream_server.config.config import load

ADDED = ("{}", "\ufeff{}", "{}\r", "{}\r\n", "{} \t", "\ufeff{} \r\n", " {}")
SECRET = "s" * 40


@pytest.mark.parametrize("added", ADDED)
def test_values_of_the_environment_are_cleaned(added: str) -> None:
    written = {"PORT": "8123", "LOG_LEVEL": "debug", "JWT_SECRET": SECRET, "HEARTBEAT_SECONDS": "2.5", "LIMITS": "off"}
    found = load({}, {f"STREAM_SERVER_{name}": added.format(value) for name, value in written.items()})
    assert (found.port, found.log_level, found.jwt_secret) == (8123, "debug", SECRET)
    assert (found.heartbeat_seconds, found.limits) == (2.5, "off")


@pytest.mark.parametrize("added", ADDED)
def test_a_secret_in_a_file_is_cleaned(tmp_path: Path, added: str) -> None:
    file = tmp_path / "secret"
    file.write_bytes(added.format(SECRET).encode())
    assert load({}, {"STREAM_SERVER_JWT_SECRET_FILE": added.format(file)}).jwt_secret == SECRET


def test_a_settings_file_of_windows_is_read(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes('\ufeffport = 8123 \r\nlog_level = "debug "\r\n# comment\r\n'.encode())
    found = load({}, {"STREAM_SERVER_SETTINGS_FILE": f"{file}\r"})
    assert (found.port, found.log_level) == (8123, "debug")
