"""The command ``completion``: print a script by which the shell completes commands, options and their values."""

import glob
from itertools import islice
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from stream_server.config.settings import Setting
from stream_server.runtime.run_file import find_running, read

PROGRAM, VARIABLE = "stream-server", "_STREAM_SERVER_COMPLETE"
"""The name of the program, and the environment variable by which the script asks it for completions."""


@click.command(
    epilog="""
\b
Examples:
  eval "$(stream-server completion bash)"                               in ~/.bashrc
  eval "$(stream-server completion zsh)"                                in ~/.zshrc
  stream-server completion fish > ~/.config/fish/completions/stream-server.fish
"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, /, *, shell: str) -> None:
    """Print a script that lets the shell complete commands, options and values.

    Bash 4.4 or newer, zsh and fish are supported. After --data-dir the folders of running servers come first.
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"click does not know the shell {shell}")
    root = context.find_root().command
    script = found(root, {}, PROGRAM, VARIABLE)
    click.echo(script.source_template % script.source_vars())


def complete_setting(setting: Setting, incomplete: str) -> list[CompletionItem]:
    """Return the values that a setting may have: its choices, a file, or a folder, first those of running servers."""
    if setting.choices:
        return [CompletionItem(choice) for choice in setting.choices if choice.startswith(incomplete)]
    if setting.unit == "file":
        return [CompletionItem(incomplete, type="file")]
    if setting.unit == "folder":
        servers = [CompletionItem(str(folder)) for folder in _server_folders(incomplete)]
        return servers or [CompletionItem(incomplete, type="dir")]
    return []


def _server_folders(incomplete: str) -> list[Path]:
    """Return the folders of running servers that begin with this text. It looks at no more than 100 folders.

    The data folders of servers that this user runs on this machine come without a look at the folders.
    """
    running = {Path(path) for path in find_running() if path.startswith(incomplete)}
    start = Path(incomplete)
    folder, prefix = (start, "") if incomplete.endswith("/") or not incomplete else (start.parent, start.name)
    try:
        found = islice(folder.glob(f"{glob.escape(prefix)}*"), 100)
        return sorted(running.union(path for path in found if read(path) is not None))
    except OSError:
        return sorted(running)
