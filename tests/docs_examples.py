"""Run the fenced code blocks of a documentation page as a reader would run them.

``sh`` blocks run in bash with small stand-ins for commands that would not end or would change the machine.
``python`` blocks run as programs. Blocks in other languages are checked by their syntax, see ``test_docs_examples.py``.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.end_to_end.server import ROOT, SECRET, Server

DOCUMENTED_ADDRESS = "http://127.0.0.1:8000"
"""The address in the documentation. It is replaced by that of the server under test."""

STREAM_SECONDS = 1
"""A block may read a stream for this many seconds."""

PROGRAM_SECONDS = 3
"""A program that still runs after this many seconds reads a stream without an error."""

_FENCE = re.compile(
    r"(?P<comment><!-- not run: [^\n]+ -->\n)?^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)

_CURL = """#!/bin/bash
# A stream has no end: -N reads it for a moment. Any other request must succeed, unless the block shows a refusal.
real={curl}
for argument in "$@"; do
  if [[ $argument == -N || $argument == -sN || $argument == -sSN ]]; then
    $real -sS --fail-with-body --max-time {seconds} "$@"
    code=$?
    [[ $code == 28 ]] && exit 0
    exit $code
  fi
done
if [[ -n ${{REFUSED:-}} ]]; then exec $real -sS "$@"; fi
exec $real -sS --fail-with-body "$@"
"""

_STREAM_SERVER = """#!/bin/bash
# A second server would need a second port: the flags are checked only. `tail` has no end.
real={program}
case $1 in
  serve|worker) exec $real "$@" --help > /dev/null ;;
  tail) timeout {seconds} $real "$@"; code=$?; [[ $code == 124 ]] && exit 0; exit $code ;;
  *) exec $real "$@" ;;
esac
"""

_MAKE = """#!/bin/bash
# The target must exist.
exec {make} -n -C {root} "$@" > /dev/null
"""


class Block(NamedTuple):
    """A fenced block.

    Attributes:
        language: First word after the fence.
        is_refusal: Whether the block shows a request that the server refuses (```` ```sh refused ````).
        is_server: Whether the block has the settings of the server beside which the next blocks run
            (```` ```toml server ````).
        reason: Why the block is not run; empty if the page gives no reason.
        text: The block itself.
    """

    language: str
    is_refusal: bool
    is_server: bool
    reason: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    for match in _FENCE.finditer(page.read_text(encoding="utf-8")):
        language, _, more = match["info"].partition(" ")
        yield Block(language, more == "refused", more == "server", match["comment"] or "", match["text"])


class Reader:
    """Runs the blocks of one page in order in one shell beside one server."""

    def __init__(self, folder: Path, server: Server, token: str) -> None:
        self._folder = folder
        self._server = server
        self._state = folder / "state"
        self._state.write_text("")
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        for name, text in _stand_ins().items():
            (bin_folder / name).write_text(text)
            (bin_folder / name).chmod(0o755)
        (folder / "data").symlink_to(server.data)
        (folder / "examples").symlink_to(ROOT / "examples")
        self._environment: dict[str, str] = {
            **os.environ,
            "PATH": f"{bin_folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "STREAM_SERVER_JWT_SECRET": SECRET,
            "TOKEN": token,
            "TMPDIR": str(server.variables["TMPDIR"]),  # so that commands find this server and no other
        }

    def start_server(self, settings: Block) -> None:
        """Start a server with the settings of a block in the place of the present one. Files are those of the page."""
        text = re.sub(r'= "([\w-]+\.pem)"', rf'= "{self._folder}/\1"', settings.text)
        (self._folder / "server.toml").write_text(text, encoding="utf-8")
        self._server.stop()
        flags = ("--settings-file", str(self._folder / "server.toml"))
        variables = {"STREAM_SERVER_JWT_SECRET": "", "TMPDIR": self._environment["TMPDIR"]}
        self._server = Server(self._folder / "own", *flags, variables=variables).start()
        (self._folder / "data").unlink()
        (self._folder / "data").symlink_to(self._server.data)
        del self._environment["STREAM_SERVER_JWT_SECRET"]

    def close(self) -> None:
        """Stop the server that :meth:`start_server` started, if any."""
        self._server.stop()

    def run_shell(self, block: Block) -> str:
        """Run a block in bash and return its output. Variables and functions are kept for the next block."""
        script = "\n".join((
            "set -e -a -o pipefail",
            f". {self._state}",
            block.text.replace(DOCUMENTED_ADDRESS, self._server.address),
            f"{{ declare -f; export -p | grep -v 'declare -x PATH='; }} > {self._state} || true",
        ))  # fmt: skip
        more = {"REFUSED": "1"} if block.is_refusal else {}
        return self._finish(["bash", "-c", script], self._environment | more, 60)

    def run_program(self, block: Block) -> str:
        """Run a block as a Python program and return its output. A program that reads a stream is stopped."""
        program = self._folder / "program.py"
        program.write_text(block.text.replace(DOCUMENTED_ADDRESS, self._server.address), encoding="utf-8")
        return self._finish(
            ["timeout", "--signal=INT", str(PROGRAM_SECONDS), sys.executable, str(program)], self._environment, 60
        )

    def _finish(self, command: list[str], environment: Mapping[str, str], seconds: float) -> str:
        done = subprocess.run(
            command, cwd=self._folder, env=environment, capture_output=True, text=True, timeout=seconds, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        stopped = command[0] == "timeout" and done.returncode == 124
        assert stopped or done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def shape(value: Any) -> Any:
    """Return the structure of decoded JSON: member names and types. Null and empty lists match anything."""
    if isinstance(value, dict):
        return {name: shape(member) for name, member in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else None
    return None if value is None else type(value).__name__.replace("int", "float")


def same_shape(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_shape(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return same_shape(left[0], right[0])
    return bool(left == right)


def last_json(output: str) -> Any:
    """Return the last JSON value that a block printed; curl prints an answer without a line end."""
    decoder, value, place = json.JSONDecoder(), None, 0
    while place < len(output):
        value, place = decoder.raw_decode(output, place)
        place += len(output[place:]) - len(output[place:].lstrip())
    return value


def _stand_ins() -> dict[str, str]:
    curl, make = shutil.which("curl"), shutil.which("make")
    program = Path(sys.executable).parent / "stream-server"
    return {
        "curl": _CURL.format(curl=curl, seconds=STREAM_SECONDS),
        "stream-server": _STREAM_SERVER.format(program=program, seconds=STREAM_SECONDS),
        "make": _MAKE.format(make=make, root=ROOT),
    }
