"""The command line without a server: help, wrong usage, and an unreachable server."""

import json
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import stream_server
from stream_server.__main__ import main
from stream_server.build import PACKAGES, digest_of, full_version
from stream_server.cli import cli
from stream_server.client import ClientFailure
from stream_server.commands import server_access
from stream_server.config.config import load
from stream_server.config.settings import SETTINGS
from stream_server.runtime import run_file
from tests.command_line import clean_environment, invoke, run
from tests.redis_process import RedisProcess, newest

TOKEN = ("--token", "a.b.c")


@pytest.fixture(autouse=True)
def _no_server_here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands that are given no server find none of those that other tests have started."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("empty")))


def test_help_names_commands_examples_and_exit_codes() -> None:
    outcome = run("--help")
    assert (outcome.code, outcome.err) == (0, "")
    for command in ("serve", "token", "tail", "replay", "doctor"):
        assert f"\n  {command} " in outcome.out
        assert "Examples:" in invoke(command, "--help").out
    assert "Exit codes:" in outcome.out


def test_every_setting_is_an_option_of_serve() -> None:
    shown = " ".join(invoke("serve", "--help").out.split())
    for setting in SETTINGS:
        assert (f" {setting.flag} " in shown) == setting.has_flag
        if not setting.has_flag:
            continue
        assert setting.environment_variable in shown
    assert "--supervised" not in shown


def test_version() -> None:
    assert invoke("--version").out == f"stream-server, version {full_version()}\n"


def test_builds_of_other_code_have_another_version(tmp_path: Path) -> None:
    """The same code has the same one, wherever it is, with or without what Python compiled."""
    root = Path(stream_server.__file__).parents[1]
    for package in PACKAGES:
        shutil.copytree(root / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    assert full_version() == f"{stream_server.__version__}+{digest_of(tmp_path)}"
    (tmp_path / "stream_server" / "store" / "lua" / "circle.lua").write_text("-- another script\n")
    assert digest_of(tmp_path) not in full_version()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("serve", "--port", "x"), "'x' is not a valid integer"),
        (("serve", "--port", "-1"), "--port (STREAM_SERVER_PORT) must be 0 port or more"),
        (("serve", "--nonsense"), "No such option"),
        (("nonsense",), "No such command"),
        (("serv",), "Did you mean 'serve'?"),
        (("token",), "give one of --user, --reader and --revoke"),
        (("token", "--user", "a"), "give its --data-dir"),
        (("token", "--user", "a", "--ttl", "soon"), "15m, 1h or 30d"),
        (("token", "--user", "a", "--data-dir", "x", "--scope", "root"), "unknown scope root; give some of read write"),
        (("sign-in", "--user", "a"), "give its --data-dir"),
        (("sign-in", "--user", "a", "--data-dir", "x", "--scope", "root"), "unknown scope root"),
        (("tail", "--track", "x"), "give exactly one of --token, --token-file and --user"),
        (("tail", "--track", "x", *TOKEN, "--user", "a"), "give exactly one of --token, --token-file and --user"),
        (("tail", *TOKEN, "--param", "x"), "write NAME=VALUE"),
        (("tail", *TOKEN, "--subscription", "work", "--since", "-1h"), "the server keeps where a subscription begins"),
        (("tail", *TOKEN, "--worker", "one"), "it reads a share of a --subscription"),
        (("replay", "/nonexistent.jsonl"), "does not exist"),
        (("replay", __file__, "--rate", "1", "--speed", "1"), "give only one of --rate and --speed"),
        (("replay", __file__, "--rate", "0"), "not in the range"),
        (("replay", __file__), "give its --data-dir"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(arguments: tuple[str, ...], sentence: str) -> None:
    outcome = invoke(*arguments)
    assert outcome.code == 2, outcome
    assert sentence in " ".join(outcome.err.split())
    assert outcome.out == ""


def test_a_token_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a.b.c", encoding="utf-16")
    outcome = invoke("tail", "--track", "x", "--token-file", str(tmp_path / "token"))
    assert (outcome.code, outcome.err) == (2, "stream-server: --token-file is not a text in UTF-8\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("tail", "--url", "http://127.0.0.1:9", "--track", "x", *TOKEN),
        ("repair", "--redis", "unix:///nonexistent/redis.sock"),
        ("token", "--user", "a", "--data-dir", "/nonexistent"),
    ],
)
def test_an_unreachable_server_or_redis_is_one_sentence_and_exit_code_3(arguments: tuple[str, ...]) -> None:
    outcome = invoke(*arguments)
    assert outcome.code == 3, outcome
    assert outcome.err.startswith("stream-server: ")
    assert outcome.err.count("\n") == 1


def test_ctrl_c_while_the_command_is_imported_ends_it_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stream_server.cli.main", interrupt)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (ClientFailure("no"), 1)])
def test_what_ends_a_command_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def end(*_: Any) -> None:
        raise error

    monkeypatch.setattr(click.Group, "invoke", end)
    outcome = invoke("doctor")
    assert (outcome.code, outcome.err) == (code, "" if code == 130 else "stream-server: no\n")


STATES: dict[str, tuple[dict[str, Any], str]] = {
    "full": ({"maxmemory": 1}, "refuses: command not allowed when used memory > 'maxmemory'"),
    "locked": ({"requirepass": "hunter22"}, "refuses: Authentication required"),
    "alone": ({"min-replicas-to-write": 1}, "refuses: NOREPLICAS Not enough good replicas to write"),
}
"""What keeps a Redis from its work, and what a command says of it."""


@pytest.mark.parametrize("state", STATES)
def test_commands_say_what_is_the_matter_with_redis(state: str) -> None:
    """Redis is said to be out of reach only if it is. ``serve`` starts with a Redis that only refuses writes."""
    settings, sentence = STATES[state]
    with RedisProcess(newest()) as redis_process:
        with redis_process.client() as client:
            client.hset("{core}:logins", "ann", "1")
            client.hset("{core}:user:1", mapping={"login": "ann", "followers": 0})
            for name, value in settings.items():
                client.config_set(name, value)
        env = clean_environment(STREAM_SERVER_JWT_SECRET="x" * 32, STREAM_SERVER_REDIS=redis_process.url)
        outcomes = [invoke("token", "--create", "--user", "ann", env=env), invoke("admin", "ann", env=env)]
        if state == "locked":
            outcomes.append(run("serve", "--port", "0", env=env))
            assert f"Redis {sentence}" in invoke("doctor", env=env).out
    for outcome in outcomes:
        assert outcome.code == 3, outcome
        assert (outcome.err.count("\n"), "hunter22" in outcome.err) == (1, False)
        assert sentence in outcome.err


@pytest.mark.extended
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (
            ("--redis", "unix:///gone/r.sock"),
            3,
            "the Redis of --redis cannot be reached: Error 2 connecting to /gone/r.sock. No such file or directory",
        ),
        (
            ("--jwt-previous-until", "2026-12-31"),
            2,
            "jwt_previous_secret and --jwt-previous-until belong together, and to HS256",
        ),
    ],
)
def test_a_server_that_cannot_start_prints_the_reason(arguments: tuple[str, ...], code: int, sentence: str) -> None:
    outcome = run("serve", "--port", "0", *arguments)
    assert (outcome.code, outcome.out, outcome.err) == (code, "", f"stream-server: {sentence}\n")


@pytest.mark.extended
@pytest.mark.parametrize("arguments", [("serve", "--port", "0"), ("rules", "explain", "absent:1", "--text", "tea")])
def test_a_filter_that_cannot_be_imported_stops_the_command(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    info = tmp_path / "absent-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: absent\nVersion: 1.0.0\n")
    (info / "entry_points.txt").write_text("[stream_server.filters]\nabsent = nowhere.filter:Absent\n")
    done = run(*arguments, env=clean_environment(PYTHONPATH=str(tmp_path)))
    assert done.code == 1
    assert done.err.startswith("stream-server: filter absent (nowhere.filter:Absent, of absent) cannot be imported: ")


def test_the_run_file_of_a_stopped_server_is_not_a_running_server(tmp_path: Path) -> None:
    note = {"redis": f"unix://{tmp_path}/gone.sock", "url": "http://127.0.0.1:9"}
    (tmp_path / "server.json").write_text(json.dumps(note))
    outcome = invoke("token", "--user", "a", "--data-dir", tmp_path, env={"STREAM_SERVER_JWT_SECRET": "x" * 32})
    assert outcome.code == 3
    assert invoke("doctor", "--url", "http://127.0.0.1:9", "--data-dir", tmp_path).code == 0


def test_a_command_takes_from_the_server_what_both_must_have_alike(tmp_path: Path) -> None:
    """Else a worker would trim timelines and the log by its own defaults. What the person gives wins."""
    served = load({"redis": "unix:///r.sock", "timeline_max": 77, "log_max_bytes": 88, "data_dir": str(tmp_path)}, {})
    with run_file.kept_run_file(served):
        own = load({"data_dir": str(tmp_path), "log_max_bytes": 99}, {})
        taken = server_access.with_server_redis(own)
    assert (taken.redis, taken.timeline_max, taken.log_max_bytes) == ("unix:///r.sock", 77, 99)


@pytest.mark.extended
def test_doctor_prints_ascii_on_an_ascii_terminal() -> None:
    outcome = run("doctor", env=clean_environment(PYTHONIOENCODING="ascii"))
    assert outcome.code == 0, outcome
    assert "ok Python 3." in outcome.out


def _commands(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _commands((*path, name), inner)


@pytest.mark.parametrize("path", list(_commands((), cli)), ids=" ".join)
def test_help_is_plain_text(path: tuple[str, ...]) -> None:
    """Wrongly placed format characters of click would be printed, and the terminal would obey them."""
    outcome = invoke(*path, "--help")
    assert outcome.code == 0
    assert [c for c in outcome.out if unicodedata.category(c) == "Cc" and c != "\n"] == []
