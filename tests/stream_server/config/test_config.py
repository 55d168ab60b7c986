"""Settings from flags, environment, file and defaults, and the errors for invalid ones."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from stream_server.config.config import load, load_again, worker_environment
from stream_server.config.settings import LIMIT_DEFAULTS, SETTINGS, InvalidSetting, parse_limits

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes the settings file, readable by its owner only."""

    def written(text: str) -> Path:
        file = tmp_path / "server.toml"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        return file

    return written


def test_a_flag_beats_the_environment_beats_the_file_beats_the_default(write: Write) -> None:
    file = str(write("port = 1\nworkers = 3\nretry_ms = 7\nheartbeat_seconds = 2\n"))
    settled = load({"port": 5, "workers": None}, {"STREAM_SERVER_SETTINGS_FILE": file, "STREAM_SERVER_WORKERS": "4"})
    assert (settled.port, settled.workers, settled.retry_ms) == (5, 4, 7)
    assert (settled.heartbeat_seconds, type(settled.heartbeat_seconds)) == (2.0, float)
    assert settled.timeline_max == next(s.default for s in SETTINGS if s.name == "timeline_max")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prot = 80", "unknown setting 'prot'; did you mean port?"),
        ("zzz = 80", "unknown setting 'zzz'; `stream-server serve --help` lists the settings"),
        ("[server]\nport = 80", "unknown setting 'server'"),
        ('settings_file = "other.toml"', "unknown setting 'settings_file'"),
        ('port = "80"', "port must be a whole number (port)"),
        ("port = 80.5", "port must be a whole number (port)"),
        ("port = true", "port must be a whole number (port)"),
        ("heartbeat_seconds = false", "heartbeat_seconds must be a number (s)"),
        ("log_level = 3", "log_level must be a text (name)"),
        ("log_level = 'loud'", "log_level must be one of debug, info, warning, error"),
        ("port = 70000", "port must be 65535 port or less"),
        ("heartbeat_seconds = 0", "heartbeat_seconds must be 0.05 s or more"),
        ("heartbeat_seconds = nan", "heartbeat_seconds must be a finite number (s)"),
        ("log_max_seconds = inf", "log_max_seconds must be a finite number (s)"),
        (f"heartbeat_seconds = 1{'0' * 400}", "heartbeat_seconds must be a finite number (s)"),
        (f"client_buffer_bytes = 1{'0' * 400}", "client_buffer_bytes must be 1e+15 bytes or less"),
        ("write_timeout_seconds = 1e300", "write_timeout_seconds must be 1e+15 s or less"),
        ("port 80", "is not valid TOML: "),
        ("port = 1\nport = 2", "is not valid TOML: "),
        ("\x00", "is not valid TOML: "),
        ("redis = 'http://:hunter22@inside'", "redis must begin with"),
        ("write_replicas = 1", "write_replicas needs --redis"),
        ("jwt_secret = 22", "jwt_secret must be a text (text)"),
        ("limits = 7", "limits must be a text (limits)"),
    ],
)
def test_an_invalid_settings_file_is_refused_by_name_of_the_setting(write: Write, text: str, sentence: str) -> None:
    file = write(text)
    with pytest.raises(InvalidSetting) as refused:
        load({"settings_file": str(file)}, {})
    assert sentence in str(refused.value)
    assert str(file) in str(refused.value)
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize("missing", [True, False])
def test_a_missing_settings_file_and_a_folder_are_refused(tmp_path: Path, *, missing: bool) -> None:
    path = tmp_path / "absent.toml" if missing else tmp_path
    with pytest.raises(InvalidSetting, match=rf"{path} cannot be read: \w"):
        load({"settings_file": str(path)}, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jwt_secret", "hunter22" * 5),
        ("redis", "redis://:hunter22@127.0.0.1:9"),
        ("redis", "redis://127.0.0.1:9?password=hunter22"),
        ("redis", "redis+sentinel://127.0.0.1:9/service?sentinel_%70assword=hunter22"),
        ("redis", "rediss://127.0.0.1:9?ssl_password=hunter22"),
    ],
)
def test_a_settings_file_with_a_secret_must_be_readable_by_its_owner_only(write: Write, name: str, value: str) -> None:
    file = write(f"{name} = '{value}'")
    assert getattr(load({"settings_file": str(file)}, {}), name) == value
    assert "hunter22" not in repr(load({"settings_file": str(file)}, {}))
    for mode in (0o640, 0o604):
        file.chmod(mode)
        with pytest.raises(InvalidSetting) as refused:
            load({"settings_file": str(file)}, {})
        refusal = f"{file} holds {name}, so other users must not be able to read it: `chmod 600 {file}`"
        assert str(refused.value) == refusal
    file.write_text("port = 80\nredis = 'redis://127.0.0.1:9'")
    assert load({"settings_file": str(file)}, {}).port == 80


def test_limits_are_on_or_off_or_have_other_numbers() -> None:
    """A limit that is not named has its default."""
    assert parse_limits("on") == LIMIT_DEFAULTS
    assert not any(parse_limits("off").values())
    changed = {"statuses": 600, "log_ins": 0, "reads": 7}
    assert parse_limits("statuses=600, log_ins=0 reads=7") == LIMIT_DEFAULTS | changed


@pytest.mark.parametrize("text", ["of", "on off", "reads", "reads=", "reads=-1", "reads=1.5", "posts=3", "reads=1e9"])
def test_limits_that_cannot_be_read_are_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"--limits \(STREAM_SERVER_LIMITS\) must be on, off or numbers"):
        load({"limits": text}, {})


def test_no_secret_can_be_reloaded() -> None:
    assert [s.name for s in SETTINGS if s.is_reloadable and s.is_secret] == []


def test_a_worker_has_and_reloads_the_settings_of_its_supervisor(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [s.environment_variable for s in SETTINGS]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STREAM_SERVER_RETRY_MS", "11")
    file = write("retry_ms = 12\nstreams_per_user = 13\nring_bytes = 14\njob_workers = 15\n")
    flags = {"settings_file": str(file), "ring_bytes": 16, "port": 0}
    settled = replace(load(flags), port=4711, jwt_secret="made by the supervisor")
    for name, value in worker_environment(settled, flags).items():
        monkeypatch.setenv(name, value)
    write("this is wrong")
    assert load({}) == settled
    with pytest.raises(InvalidSetting, match="is not valid TOML"):
        load_again({})
    write("retry_ms = 22\nstreams_per_user = 23\nring_bytes = 24\n")
    newer = load_again({})
    assert (newer.retry_ms, newer.streams_per_user, newer.ring_bytes) == (11, 23, 16)
    assert newer.job_workers == load({}, {}).job_workers
    assert newer.port == 4711


KUBERNETES = {
    "STREAM_SERVER_SERVICE_HOST": "10.96.3.4",
    "STREAM_SERVER_SERVICE_PORT": "80",
    "STREAM_SERVER_SERVICE_PORT_HTTP": "80",
    "STREAM_SERVER_PORT": "tcp://10.96.3.4:80",
    "STREAM_SERVER_PORT_80_TCP": "tcp://10.96.3.4:80",
    "STREAM_SERVER_PORT_80_TCP_PROTO": "tcp",
    "STREAM_SERVER_PORT_80_TCP_PORT": "80",
    "STREAM_SERVER_PORT_80_TCP_ADDR": "10.96.3.4",
    "STREAM_SERVER_REDIS_SERVICE_HOST": "10.96.3.5",
    "STREAM_SERVER_REDIS_PORT": "tcp://10.96.3.5:6379",
    "STREAM_SERVER_REDIS_PORT_6379_TCP_ADDR": "10.96.3.5",
}
"""What Kubernetes sets for services with the names ``stream-server`` and ``stream-server-redis``."""

DOCKER = {
    "STREAM_SERVER_PORT": "tcp://172.17.0.5:8000",
    "STREAM_SERVER_NAME": "/proxy/stream-server",
    "STREAM_SERVER_ENV_LANG": "C.UTF-8",
}


@pytest.mark.parametrize("variables", [KUBERNETES, DOCKER])
def test_the_variables_by_which_containers_know_a_service_are_no_settings(variables: dict[str, str]) -> None:
    assert load({}, variables) == load({}, {})
    assert load({}, variables | {"STREAM_SERVER_RETRY_MS": "7"}).retry_ms == 7
    assert load({"port": 9}, variables).port == 9


@pytest.mark.parametrize(
    "variable",
    ["STREAM_SERVER_PROT=80", "STREAM_SERVER_REDIS_PORT=6379", "STREAM_SERVER_PORTS=", "STREAM_SERVER_NAME=mine"],
)
def test_a_variable_that_is_neither_a_setting_nor_of_another_service_is_refused(variable: str) -> None:
    name, _, value = variable.partition("=")
    with pytest.raises(InvalidSetting, match=f"unknown setting {name}"):
        load({}, {name: value})


def test_an_empty_variable_is_not_given(write: Write) -> None:
    empty = {s.environment_variable: "" for s in SETTINGS}
    empty |= {f"{s.environment_variable}_FILE": "" for s in SETTINGS if s.is_secret}
    assert load({}, empty) == load({}, {})
    file = str(write("port = 1\njwt_issuer = 'me'\n"))
    settled = load({}, empty | {"STREAM_SERVER_SETTINGS_FILE": file})
    assert (settled.port, settled.jwt_issuer) == (1, "me")


def test_a_worker_knows_that_a_flag_is_empty(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag wins over the default and, at a reload, over the file."""
    for name in [s.environment_variable for s in SETTINGS]:
        monkeypatch.delenv(name, raising=False)
    flags = {"settings_file": str(write("forwarded_header = 'Forwarded'\n")), "forwarded_header": ""}
    for name, value in worker_environment(load(flags), flags).items():
        monkeypatch.setenv(name, value)
    assert load({}).forwarded_header == load_again({}).forwarded_header == ""
