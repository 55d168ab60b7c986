"""The output of commands with ``--json``: the members that the documentation names, and no others."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from stream_server.cli import cli
from tests.command_line import COMMAND, ROOT, invoke, run, running
from tests.end_to_end.server import Server, environment
from tests.posts import post
from tests.waiting import PATIENCE

WITHOUT_JSON = {"serve", "completion"}
"""Commands without ``--json``; the documentation says why."""


def leaves(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def documented() -> dict[str, set[str]]:
    """Return the members of each command's JSON, as the table of the documentation has them."""
    text = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w -]+)` \| (?:a list of )?`\{([^}]*)\}`", text.partition("## JSON")[2], re.MULTILINE)
    return {name: set(re.findall(r'"(\w+)"', members)) for name, members in rows}


def test_every_command_that_prints_has_json() -> None:
    commands = dict(leaves(cli))
    without = {name for name, one in commands.items() if not any("--json" in option.opts for option in one.params)}
    assert without == WITHOUT_JSON
    assert documented().keys() == commands.keys() - WITHOUT_JSON


def parsed(name: str, output: str) -> Any:
    """Return the JSON that a command printed, whose members must be the documented ones."""
    value = json.loads(output)
    for each in value if isinstance(value, list) else [value]:
        assert each.keys() == documented()[name], name
    return value


def test_json_without_a_server() -> None:
    explained = invoke("rules", "explain", "tea -milk", "--text", "tea and milk", "--json")
    assert explained.code == 1
    assert not parsed("rules explain", explained.out)["matched"]
    acl = invoke("redis-acl", "--json")
    assert len(parsed("redis-acl", acl.out)["acl"]) == 4
    assert acl.err == ""
    checks = parsed("doctor", invoke("doctor", "--json").out)
    assert {check["state"] for check in checks} <= {"good", "advice", "broken"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("json")) as started:
        yield started


def ask(server: Server, name: str, *options: str | Path, code: int = 0) -> Any:
    """Run the command with a server, and return its JSON."""
    outcome = run(*name.split(), *options, "--json", "--data-dir", server.data, env=environment())
    assert outcome.code == code, outcome
    return parsed(name, outcome.out)


@pytest.mark.extended
def test_json_of_commands_with_a_server(server: Server, tmp_path: Path) -> None:
    assert ask(server, "token", "--user", "ada", "--create", "--ttl", "90")["expires_in"] == 90
    assert ask(server, "sign-in", "--user", "ada")["link"].startswith(f"{server.address}/#code=")
    assert ask(server, "admin", "ada") == {"user": "ada", "admin": True}
    assert ask(server, "repair", "--dry-run") == {"faults": [], "dry_run": True}
    made = ask(server, "subscriptions put", "tea", "--user", "ada", "--track", "tea")
    assert ask(server, "subscriptions list", "--user", "ada") == [made]
    assert ask(server, "subscriptions ack", "tea", made["cursor"], "--user", "ada")["behind"] == made["behind"]
    assert ask(server, "subscriptions delete", "tea", "--user", "ada") == {"deleted": "tea"}
    shared = ask(server, "subscriptions put", "crowd", "--user", "ada", "--track", "tea", "--parts", "2")
    assert [part["worker"] for part in shared["parts"]] == [None, None]
    file = tmp_path / "posts.jsonl"
    file.write_text('{"author": "ada", "message": "hi"}\n{}\n')
    replayed = ask(server, "replay", file, code=1)
    assert (replayed["lines"], replayed["posted"], replayed["unreadable"]) == (2, 1, 1)
    counted = ask(server, "count", "hi", "ho -hi", "--user", "ada", "--from", "-1h", "--every", "day")
    assert sum(bucket["count"] for bucket in counted) == 1
    state = ask(server, "stats", "--user", "ada")  # without a terminal, it looks once
    assert [worker["ready"] for worker in state["workers"]] == [True]
    with running(*COMMAND, "worker", "--json", "--data-dir", server.data, folder=tmp_path, env=environment()) as worker:
        worker.until(lambda: "processing jobs" in worker.err)
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(PATIENCE) == 0
    assert parsed("worker", worker.out)["parked"] == 0


@pytest.mark.extended
def test_a_load_measures_what_arrives(server: Server) -> None:
    """Every post arrives at its third of the streams. A server elsewhere is refused, before anything is sent."""
    options = ("--streams", "9", "--words", "3", "--writers", "2", "--rate", "30", "--seconds", "1")
    found = ask(server, "load", *options)
    assert (found["missing"], found["failures"], found["interrupted"]) == (0, 0, False)
    assert found["delivered"] == 3 * found["posted"] > 0
    assert 0 < found["write"]["p50_ms"] <= found["write"]["p99_ms"]
    assert found["delivery"]["p50_ms"] > 0
    refused = run("load", "--url", "http://10.1.2.3:8000", "--data-dir", server.data, env=environment())
    assert refused.code == 2
    assert "give --remote" in refused.err


@pytest.mark.extended
def test_a_load_ends_with_its_figures_at_ctrl_c(server: Server, tmp_path: Path) -> None:
    command = (*COMMAND, "load", "--data-dir", server.data, "--streams", "1", "--seconds", "600")
    jwt = ask(server, "token", "--user", "reader", "--create", "--scope", "stream firehose")["token"]
    tail = (*COMMAND, "tail", "--url", server.address, "--token", jwt, "--firehose")
    with (
        running(*tail, folder=tmp_path / "tail", env=environment()) as seen,
        running(*command, folder=tmp_path / "load", env=environment()) as load,
    ):
        seen.until(lambda: "@load_" in seen.out)
        assert load.interrupt() == 130
        assert "load (interrupted)" in load.out
        assert "Traceback" not in load.err


@pytest.mark.extended
def test_a_reader_that_has_seen_enough_ends_tail_quietly(server: Server) -> None:
    """As with `tail | head -1`: no message and exit code 0."""
    jwt = ask(server, "token", "--user", "ada", "--create", "--scope", "write stream firehose")["token"]
    command = [*COMMAND, "tail", "--url", server.address, "--token", jwt, "--firehose", "--since", "-10m"]
    post(server, jwt, "one")
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        post(server, jwt, "two", "three")
        assert (process.wait(PATIENCE), process.stderr.read()) == (0, b"")
