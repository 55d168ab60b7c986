"""The commands with a real server."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_server.client import Client, Post, RequestRefused
from tests.command_line import COMMAND, clean_environment, run, running
from tests.end_to_end.server import Server, environment
from tests.posts import post
from tests.waiting import PATIENCE

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("cli"), "--heartbeat-seconds", "0.2") as started:
        yield started


def token(server: Server, login: str, scope: str = "read write stream firehose") -> str:
    """Create a user and a token with the command."""
    outcome = run(
        "token", "--data-dir", server.data, "--user", login, "--scope", scope, "--create", env=environment()
    )  # fmt: skip
    assert outcome.code == 0, outcome
    return outcome.out.strip()


def test_the_server_accepts_a_token_of_the_command(server: Server) -> None:
    jwt = token(server, "ada")
    assert jwt.count(".") == 2
    assert "\n" not in jwt

    async def me() -> str:
        async with Client(server.address, jwt) as api:
            return (await api.me()).login

    assert asyncio.run(me()) == "ada"


def test_a_token_for_an_unknown_login_is_refused(server: Server) -> None:
    outcome = run("token", "--data-dir", server.data, "--user", "nobody_yet", env=environment())
    assert (outcome.code, outcome.out) == (1, "")
    assert "unknown login nobody_yet" in outcome.err


def test_the_printed_link_signs_in_once(server: Server) -> None:
    named = ("sign-in", "--data-dir", server.data, "--user", "link", "--create", "--scope", "read admin")
    outcome = run(*named, env=environment())
    address, _, code = outcome.out.strip().partition("/#code=")
    assert (outcome.code, address) == (0, server.address)
    link = run(*named, "--url", "https://stream.example.org/", env=environment()).out
    assert link.startswith("https://stream.example.org/#code=")

    async def sign_in() -> dict[str, Any]:
        async with Client(address) as api:
            session: dict[str, Any] = await api.request("POST", "/v1/sessions", body={"code": code})
            return session

    assert asyncio.run(sign_in())["user"]["login"] == "link"
    with pytest.raises(RequestRefused, match="this sign-in link was used"):
        asyncio.run(sign_in())


def test_the_token_command_needs_the_signing_key(server: Server) -> None:
    outcome = run("token", "--data-dir", server.data, "--user", "ada", env=clean_environment())
    assert (outcome.code, outcome.out) == (2, "")
    assert "key that signs tokens is missing" in outcome.err


def test_doctor_run_file_and_log_never_show_the_secret(server: Server) -> None:
    secret = environment()["STREAM_SERVER_JWT_SECRET"]
    outcome = run("doctor", "--data-dir", server.data, env=environment())
    assert outcome.code == 0, outcome.out
    assert f"✓ the server at {server.address} is ready" in outcome.out
    note = server.data / "server.json"
    assert note.stat().st_mode & 0o077 == 0
    assert secret not in outcome.out + outcome.err + note.read_text() + server.log


def test_replay_posts_valid_lines_and_names_the_others_by_number(server: Server, tmp_path: Path) -> None:
    rows: list[Any] = [
        {"author": "Odd Näme", "message": "first", "location": [2.5, 1.5], "place": "Kyoto"},
        {"author": "bob", "message": "x" * 281},
        {"author": "bob", "message": "hello #replayed"},
        {"author": "Odd Näme", "message": "second", "posted": "2026-01-31T12:00:00Z"},
        {"author": "bob", "message": "far out", "location": [2.5, 91]},
    ]
    file = tmp_path / "statuses.jsonl"
    file.write_text("\n".join([*map(json.dumps, rows), "{not json"]))
    outcome = run("replay", file, "--data-dir", server.data, "--speed", "1000", env=environment())
    assert outcome.code == 1
    printed = {line.split(":")[0] for line in outcome.err.splitlines() if line.startswith("line ")}
    assert printed == {"line 2", "line 5", "line 6"}
    table = " ".join(outcome.out.split())
    assert "lines 6 posted 3 " in table
    assert "unreadable lines 1 refused by the server 2" in table
    shown = [json.loads(line) for line in _tail_json(server, tmp_path, 3, "--since", "-5m").splitlines()]
    mine = [event["status"] for event in shown if event["status"]["login"].startswith(("Odd", "bob"))]
    assert [status["message"] for status in mine if status["login"] != "bob"] == ["first", "second"]
    first = next(status for status in mine if status["message"] == "first")
    assert (first["location"], first["place"]["name"]) == ({"lon": 2.5, "lat": 1.5}, "Kyoto")


def _tail_json(server: Server, folder: Path, count: int, *options: str) -> str:
    """Return what `tail --json` prints of the firehose, once it has ``count`` lines."""
    jwt = folder / "token"
    jwt.write_text(token(server, "reader") + "\n")
    asked = ("--url", server.address, "--token-file", str(jwt), "--firehose", "--json", *options)
    with running(*COMMAND, "tail", *asked, folder=folder / "tail", env=environment()) as tail:
        tail.until(lambda: tail.out.count("\n") >= count)
        assert tail.interrupt() == 130
        assert tail.err == ""
        return tail.out


def test_replay_ends_cleanly_when_it_is_interrupted(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_text("\n".join(json.dumps({"author": "carol", "message": f"n{n}"}) for n in range(1000)))
    command = (*COMMAND, "replay", file, "--data-dir", server.data, "--rate", "5")
    jwt = token(server, "reader")
    with running(*command, folder=tmp_path / "replay", env=environment()) as replay:
        replay.until(lambda: "n0" in _recent_posts(server, jwt))
        assert replay.interrupt() == 130
        assert "replay (interrupted)" in replay.out
        assert "Traceback" not in replay.err
    assert "posted 0 " not in " ".join(replay.out.split())


def _recent_posts(server: Server, jwt: str) -> list[str]:
    """Return the texts of the posts of the last minutes, in log order."""

    async def found() -> list[str]:
        async with Client(server.address, jwt) as api:
            poll = api.poll(firehose=True, kinds="post", since="-5m", wait=0, limit=1000)
            return [event.status.message for event in await poll.next_page() if isinstance(event, Post)]

    return asyncio.run(found())


def test_replay_posts_each_line_once_although_the_server_is_killed(tmp_path: Path) -> None:
    server = Server(tmp_path / "own").start()
    texts = [f"line {n}" for n in range(400)]
    file = tmp_path / "statuses.jsonl"
    lines = [json.dumps({"author": f"author{n % 40}", "message": text}) for n, text in enumerate(texts)]
    file.write_text("\n".join(lines))
    try:
        jwt = token(server, "reader")
        command = (*COMMAND, "replay", file, "--data-dir", server.data, "--rate", "200")
        with running(*command, folder=tmp_path / "replay", env=environment()) as replay:
            replay.until(lambda: _recent_posts(server, jwt))
            server.kill()
            server.flags = ("--port", server.address.rpartition(":")[2])
            server.start()
            assert replay.process.wait(PATIENCE) == 0, replay.err
        assert "repeated requests 0" not in " ".join(replay.out.split()), "the kill was not felt"
        posted = _recent_posts(server, jwt)
        assert sorted(posted) == sorted(texts)
        orders = [[text for text in posted if int(text[5:]) % 40 == author] for author in range(40)]
        assert orders == [texts[author::40] for author in range(40)]
        server.stop()
    finally:
        server.kill()


def test_tail_prints_one_readable_line_for_each_post(server: Server, tmp_path: Path) -> None:
    jwt = token(server, "dave")
    command = (*COMMAND, "tail", "--data-dir", server.data, "--user", "dave", "--track", "tailed", "--kinds", "post")

    def shown() -> bool:
        """Post until the stream is open and shows a post."""
        post(server, jwt, "tailed \u202e line\nbreak")
        return "@dave" in tail.out

    with running(*command, folder=tmp_path, env=environment()) as tail:
        tail.until(shown)
        assert tail.interrupt() == 130
    assert "@dave tailed \\u202e line⏎ break\n" in tail.out


OTHER_ENCODINGS = (
    pytest.param(("PYTHONIOENCODING=latin-1",), marks=pytest.mark.nightly),
    ("LC_ALL=C", "PYTHONCOERCECLOCALE=0", "PYTHONUTF8=0"),
)
"""Variables of a terminal that cannot show any character. The program ``env`` sets them."""


@pytest.mark.parametrize("variables", OTHER_ENCODINGS, ids=" ".join)
def test_a_terminal_that_is_not_utf_8_gets_escapes(server: Server, tmp_path: Path, variables: tuple[str, ...]) -> None:
    """JSON stays JSON, and no command ends in a traceback."""
    jwt, text = token(server, "erik"), "escaped no\u00ebl \u2615 \U0001f375"
    tail = ("env", *variables, *COMMAND, "tail", "--url", server.address, "--token", jwt, "--track", "escaped")
    for options in ((), ("--json",)):

        def shown() -> bool:
            """Post until the stream is open and shows a post."""
            post(server, jwt, text)
            return "escaped" in shown_by.out

        with running(*tail, *options, folder=tmp_path / "tail", env=environment()) as shown_by:
            shown_by.until(shown)
            assert shown_by.interrupt() == 130
            line = shown_by.out.splitlines()[0]
        if options:
            assert json.loads(line)["status"]["message"] == text
        else:
            assert "\\u2615 \\ud83c\\udf75" in line
        assert "Traceback" not in shown_by.err
    others = (
        ("rules", "explain", "te\u0301 -\u2615", "--text", "tea"),
        ("rules", "explain", "\u2615 (", "--text", "tea"),
        ("doctor", "--data-dir", str(server.data)),
        ("stats", "--data-dir", str(server.data), "--user", "erik"),
    )
    for command in others:
        ended = subprocess.run(
            ("env", *variables, *COMMAND, *command), capture_output=True, env=environment(), cwd=tmp_path, check=False
        )
        assert b"Traceback" not in ended.stderr, ended
        assert ended.stdout + ended.stderr, command


@pytest.mark.parametrize("command", ["rules explain tea --text tea", "doctor --data-dir {}", "repair --data-dir {}"])
def test_a_reader_that_has_left_is_no_failure(server: Server, command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    asked = (*COMMAND, *command.format(server.data).split())
    with os.fdopen(writer, "wb") as out:
        ended = subprocess.run(asked, stdout=out, stderr=subprocess.PIPE, env=environment(), check=False)
    assert (ended.returncode, ended.stderr.strip()) == (0, b"")


def test_tail_takes_several_rules(server: Server, tmp_path: Path) -> None:
    jwt = token(server, "fred")
    rules = ("--rule", "ruled -coffee", "--rule", "second:ruled tea")
    command = (*COMMAND, "tail", "--data-dir", server.data, "--user", "fred", *rules, "--json")

    def shown() -> bool:
        post(server, jwt, "ruled coffee")
        post(server, jwt, "ruled tea")
        return "ruled tea" in tail.out

    with running(*command, folder=tmp_path, env=environment()) as tail:
        tail.until(shown)
        assert tail.interrupt() == 130
    printed = [json.loads(line) for line in tail.out.splitlines()]
    assert {message["status"]["message"] for message in printed} == {"ruled tea"}
    assert printed[0]["matched"] == [{"id": "r1", "tag": ""}, {"id": "r2", "tag": "second"}]
