"""A Python whose regular expressions answer wrong is refused, and says what it found."""

import re
import subprocess
from pathlib import Path

import pytest

from filters import entities, tokens
from filters.rules import parser
from stream_server.commands import doctor_machine
from stream_server.commands.doctor_machine import CheckState
from stream_server.runtime.python_check import find_fault
from stream_server.web.http import usual_request
from tests.command_line import COMMAND, ROOT, clean_environment
from tests.tiers import sample
from tests.waiting import PATIENCE

FAULTY = """
import re
right = re.compile
re.compile = lambda pattern, flags=0: right(pattern, flags if flags & re.DEBUG else flags | re.ASCII)
"""
"""A Python that takes letters such as é for none, which it says to nobody."""


def test_this_python_is_right() -> None:
    assert find_fault() == ""


@pytest.mark.parametrize(
    ("module", "name", "wrong", "what"),
    [
        # What Python 3.11.4 made of each, or could have made of it.
        (entities, "_RUN_WITH_DOT", r"[^/]*/()(\S+)", "links"),
        (entities, "_TAG", r"[#\uff03](\w+)", "hashtags"),
        (tokens, "_EMOJI_PATTERN", "\U0001f3f4", "words"),
        (parser, "_QUOTED", r'"([^"]*)"', "tokens"),
        (usual_request, "_FIELD", r"([\w-]+):([^\r\t]*)", "header fields"),
    ],
)
def test_each_wrong_answer_is_found(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, wrong: str, what: str
) -> None:
    monkeypatch.setattr(module, name, re.compile(wrong))
    assert f"its regular expressions are wrong: the {what} of " in find_fault()
    assert doctor_machine.check_python().state is CheckState.BROKEN


@pytest.mark.parametrize(
    "command",
    sample(
        [("serve", "--port", "0"), ("serve", "--demo"), ("rules", "explain", "tea", "--text", "tea")],
        lambda command: command == ("serve", "--port", "0"),
    ),
)
def test_a_faulty_python_is_refused_by_a_sentence(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Nothing is started before: the data folder stays empty."""
    (tmp_path / "sitecustomize.py").write_text(FAULTY)
    data = ("--data-dir", str(tmp_path / "data")) if command[0] == "serve" else ()
    ended = subprocess.run(
        [*COMMAND, *command, *data], cwd=ROOT, env=clean_environment(PYTHONPATH=str(tmp_path)),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (1, "")
    said = ended.stderr
    assert re.fullmatch(
        r"stream-server: Python \S+ cannot be used, because its regular expressions are wrong: .*\n", said
    )
    assert not (tmp_path / "data").exists()
