"""Completion by the shell."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from stream_server.cli import COMMANDS, cli
from stream_server.commands.completion import PROGRAM, VARIABLE
from tests.command_line import invoke


def complete(*words: str, incomplete: str = "") -> list[tuple[str, str]]:
    """Return value and type of each completion of the next word."""
    found = ShellComplete(cli, {}, PROGRAM, VARIABLE).get_completions(list(words), incomplete)
    return [(item.value, item.type) for item in found]


def test_commands_options_and_choices_are_completed() -> None:
    assert complete(incomplete="ta") == [("tail", "plain")]
    assert complete("rules") == [("explain", "plain")]
    assert ("--framing", "plain") in complete("tail", incomplete="--f")
    assert complete("tail", "--framing") == [(name, "plain") for name in ("sse", "ndjson", "websocket")]
    assert complete("completion") == [(shell, "plain") for shell in ("bash", "zsh", "fish")]


def test_the_list_of_commands_says_what_each_one_does() -> None:
    """Each is there, and its first sentence is that of its help."""
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in COMMANDS}
    assert {name: command.get_short_help_str(200) for name, command in found.items() if command} == dict(COMMANDS)
    assert cli.get_command(context, "os") is None
    assert [(item.value, item.help) for item in cli.shell_complete(context, "sta")] == [("stats", COMMANDS["stats"])]


def test_names_of_commands_are_completed_without_the_code_of_a_server() -> None:
    """A shell asks at each press of a key. What a server or client needs takes a second to import."""
    program = f"""
import sys
from stream_server.commands.completion import PROGRAM, VARIABLE
from stream_server.cli import COMMANDS, cli
from click.shell_completion import ShellComplete
assert len(ShellComplete(cli, {{}}, PROGRAM, VARIABLE).get_completions([], "")) == {len(COMMANDS)}
print(sorted({{"aiohttp", "redis", "jwt", "rich"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_values_of_settings_are_completed() -> None:
    assert complete("serve", "--detect-language", incomplete="of") == [("off", "plain")]
    assert complete("serve", "--settings-file", incomplete="se") == [("se", "file")]
    assert complete("serve", "--port") == []


def test_folders_of_running_servers_come_first(tmp_path: Path) -> None:
    """The run file of a killed server stays, without the lock."""
    running = {"redis": "", "url": ""}
    for name, note in (("data", running), ("da[x]", running), ("dark", running | {"locked": True}), ("day", None)):
        (tmp_path / name).mkdir()
        if note is not None:
            (tmp_path / name / "server.json").write_text(json.dumps(note))
    found = complete("token", "--data-dir", incomplete=f"{tmp_path}/da")
    assert found == [(f"{tmp_path}/da[x]", "plain"), (f"{tmp_path}/data", "plain")]
    assert complete("token", "--data-dir", incomplete=f"{tmp_path}/da[") == [(f"{tmp_path}/da[x]", "plain")]
    assert complete("token", "--data-dir", incomplete=f"{tmp_path}/x") == [(f"{tmp_path}/x", "dir")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_of_that_shell(shell: str) -> None:
    script = invoke("completion", shell).out
    assert VARIABLE in script
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=script.encode(), check=True)
