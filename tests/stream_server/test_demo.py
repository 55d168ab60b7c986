"""What the demo prints works when it is pasted."""

import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_server import demo
from tests.command_line import COMMAND, Running, running
from tests.end_to_end.server import environment

COMMANDS = 9
"""The export of the token, the post, seven ways to listen."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A real server with the demo, which has printed all that it prints."""
    folder = tmp_path_factory.mktemp("demo")
    with running(*COMMAND, "serve", "--demo", "--port", "0", folder=folder, env=environment()) as server:
        server.until(lambda: len(commands(server)) == COMMANDS, seconds=30)
        yield server
        assert server.interrupt() == 0
        assert "Traceback" not in server.err


def commands(server: Running) -> list[str]:
    """The lines to paste: first the export of the token, then the others."""
    return re.findall(r"^(?:export|curl) .*$", server.out, re.MULTILINE)


def first_answer(script: str, folder: Path) -> Any:
    """The first line that a pasted command prints, as JSON; it is ended then, as its reader would."""
    with running("bash", "-c", script, folder=folder, env=environment()) as pasted:
        try:
            pasted.until(lambda: "\n" in pasted.out)
        except AssertionError:
            assert pasted.process.poll() == 0, pasted.err  # one answer, without a line's end
        pasted.process.kill()
        return json.loads(pasted.out.split("\n")[0])


@pytest.mark.skipif(shutil.which("curl") is None, reason="the demo prints curl commands, and there is no curl")
def test_everything_that_is_printed_can_be_pasted(shown: Running, tmp_path: Path) -> None:
    """Each printed command answers: the post with a status, each stream with its hello, the long poll with a post."""
    export, *pasted = commands(shown)
    answers = [first_answer(f"{export}\nexec {line}", tmp_path / str(n)) for n, line in enumerate(pasted)]
    assert [answer["kind"] for answer in answers[:6]] == ["hello"] * 6
    assert answers[6]["events"][0]["kind"] == "post"
    assert answers[7]["login"] == "demo"


def test_it_is_one_screen_and_the_address_comes_first(shown: Running) -> None:
    """The first line is the address, for programs; all fits a terminal of 24 lines, and a file has no colours."""
    lines = shown.out.splitlines()
    assert re.fullmatch(r"stream-server listening on http://127\.0\.0\.1:\d+", lines[0])
    assert len(lines) <= 24
    assert "\x1b" not in shown.out


def test_made_up_posts_are_valid() -> None:
    """Whatever is drawn, a post is short enough, has a tag, and its point is on the globe."""
    chance = random.Random(7)
    posts = [demo.made_up(chance) for _ in range(500)]
    assert all(0 < len(post["message"]) <= 280 and "#" in post["message"] for post in posts)
    points = [post["location"] for post in posts if "location" in post]
    assert points
    assert all(-180 <= point["lon"] <= 180 and -90 <= point["lat"] <= 90 for point in points)
    assert any("@demo" in post["message"] for post in posts)
