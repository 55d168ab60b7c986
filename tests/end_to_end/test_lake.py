"""A lake beside a real server: it is killed at random moments, and has exactly the log at the end."""

import asyncio
import json
import random
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # see above
import pytest

from stream_server.client import Client, ClientFailure
from stream_server.commands.exit_codes import UNREACHABLE
from tests.command_line import COMMAND, Running, clean_environment, run
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server, restartable
from tests.stream_server.commands.lakes import files_of, messages_of, unfinished_in
from tests.waiting import PATIENCE

KINDS = "post,edit,delete,like,unlike,comment,uncomment,follow,unfollow,user_delete"

MOST_SECONDS = 2.0
"""The longest life of a command until it is killed. It needs a part of a second to start."""


class Reader:
    """Reads all files of a lake again and again, and complains about those that it cannot read."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.reads, self.complaints = folder, 0, list[str]()
        self._ends = threading.Event()

    def run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._ends.is_set()
            for path in files_of(self._folder):
                try:
                    pq.ParquetFile(path).read()
                    self.reads += 1
                except (OSError, pa.ArrowException) as error:
                    self.complaints.append(f"{path.name}: {error}")

    @contextmanager
    def reading(self) -> Iterator[None]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join(PATIENCE)


class People:
    """Users who post, quote, edit, like, comment, follow, delete and leave at random until they are stopped."""

    def __init__(self, server: Server, seed: int) -> None:
        self._server, self._chance = server, random.Random(seed)
        self.acts = 0

    async def run(self, ends: threading.Event) -> None:
        number = 0
        while not ends.is_set():
            number += 1
            with suppress(ClientFailure):  # the server may be away, and others may have deleted what is acted on
                await self._a_life(f"user{number}", ends)

    async def _a_life(self, login: str, ends: threading.Event) -> None:
        async with Client(self._server.address, attempts=1) as client:
            user = await client.sign_up(login, login.title(), f"{login}@example.org", "a good password")
        statuses: list[str] = []
        comments: list[str] = []
        async with Client(self._server.address, mint(user.id), attempts=1) as client:
            for _ in range(self._chance.randrange(20, 80)):
                if ends.is_set():
                    return
                self.acts += 1
                statuses.append((await client.post(f"a cup of #tea {self._chance.random()}")).id)
                one = self._chance.choice(statuses)
                match self._chance.randrange(9):
                    case 0:
                        statuses.append((await client.quote(one, f"see {self._chance.random()}")).id)
                    case 1:
                        statuses.append((await client.repost(one)).id)
                    case 2:
                        await client.like(one)
                    case 3:
                        comments.append((await client.comment(one, f"yes {self._chance.random()}")).id)
                    case 4 if comments:
                        with suppress(ClientFailure):  # its status is deleted
                            await client.delete_comment(comments.pop())
                    case 5:
                        statuses.remove(one)
                        await client.delete(one)
                    case 6:
                        with suppress(ClientFailure):  # it is a repost
                            await client.edit(one, {"message": f"no #milk {self._chance.random()}"})
            if self._chance.random() < 0.3:
                await client.delete_account("a good password")

    @contextmanager
    def acting(self) -> Iterator[None]:
        ends = threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(self.run(ends)))
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join(PATIENCE)


async def token_of_ann(server: Server) -> str:
    """Return the token of a user who has written one post."""
    async with Client(server.address) as client:
        token = mint((await client.sign_up("ann", "Ann", "ann@example.org", "a good password")).id)
    async with Client(server.address, token) as client:
        await client.post("the post of ann")
    return token


async def delete_post_of_ann(server: Server, token: str, lake: Path) -> None:
    """Delete the post of ann, which the lake has."""
    (post,) = (one["status"] for one in messages_of(lake) if one["kind"] == "post" and one["status"]["login"] == "ann")
    async with Client(server.address, token) as client:
        await client.delete(post["id"])


def replay(server: Server, token: str) -> list[dict[str, Any]]:
    """Return what the log has, as the server replays it now."""
    found: list[dict[str, Any]] = []
    cursor, more = "0-0.0", True
    while more:
        query = urllib.parse.urlencode({
            "firehose": "true", "kinds": KINDS, "since": cursor, "limit": 1000, "wait": 0,
        })  # fmt: skip
        asked = urllib.request.Request(
            f"{server.address}/v1/events?{query}", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answered:
            answer = json.load(answered)
        found += answer["events"]
        cursor, more = answer["cursor"], answer["more"]
    return found


@pytest.mark.extended
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.nightly)])
def test_after_kills_at_random_moments_the_files_are_exactly_the_log(
    tmp_path: Path, request: pytest.FixtureRequest, kills: int
) -> None:
    """The command is killed while it writes and erases, and the server too. No reader ever finds half a file.

    In the end the files have what the server replays: each event once, in order, and nothing that shows what is
    deleted.
    """
    seed = request.config.getoption("--seed") or random.randrange(2**32)
    chance, lake = random.Random(seed), tmp_path / "lake"
    with restartable(tmp_path / "server") as server:
        token = asyncio.run(token_of_ann(server))
        options = (
            "export", "--url", server.address, "--token", token, "--kinds", KINDS, "--to", str(lake),
            "--every", "1s", "--erase-after", "1s",
        )  # fmt: skip
        reader, people, half_written = Reader(lake), People(server, seed), 0
        with reader.reading(), people.acting():
            for number in range(kills):
                most = MOST_SECONDS
                command = Running([*COMMAND, *options], tmp_path / f"{number}", clean_environment())
                without_server = number % 10 == 3
                if without_server:
                    server.kill()
                    server.start()
                elif number % 2:  # so that a machine that starts it slowly kills it while it writes, too
                    command.until(lambda: unfinished_in(lake))
                    most = 0.0 if number % 4 == 1 else 0.5
                with suppress(TimeoutExpired):
                    code = command.process.wait(chance.uniform(0, most))
                    assert without_server, f"seed {seed}: it ended with {code} by itself: {command.err}"
                    assert code == UNREACHABLE, "only a server that is away at its start may end it"
                command.process.kill()
                command.process.wait(PATIENCE)
                half_written += bool(unfinished_in(lake))
            assert run(*options, "--until", "now").code == 0
        asyncio.run(delete_post_of_ann(server, token, lake))
        last = list[str]()
        for _ in range(100):
            outcome = run(*options, "--until", "now")
            assert outcome.code == 0, outcome.err
            last.append(outcome.out)
            if messages_of(lake) == replay(server, token):
                break
        assert messages_of(lake) == replay(server, token), (seed, last)
    assert reader.complaints == [], seed
    assert reader.reads > 0
    assert half_written > 0, f"seed {seed}: no kill came while a file was written"
    kinds = {message["kind"] for message in messages_of(lake)}
    assert {"post", "edit", "delete", "like"} <= kinds, kinds
    assert "deleted posts and replaced texts are taken out: " in "".join(last)


@pytest.mark.extended
async def test_a_stop_completes_the_file_and_a_full_disk_says_so(api: Api, tmp_path: Path) -> None:
    """SIGTERM is a usual end. A limit of the size of files is the full disk: the next start has all events."""
    uid = await api.user()
    lake, token = tmp_path / "lake", mint(uid)
    options = (
        "export", "--url", api.server.address, "--token", token, "--follow", uid, "--every", "1h", "--to", str(lake),
    )  # fmt: skip
    first = await api.post(uid, "the first")
    command = Running([*COMMAND, *options], tmp_path / "stopped", clean_environment())
    command.until(lambda: unfinished_in(lake))
    command.process.terminate()
    assert command.process.wait(PATIENCE) == 0, command.err
    assert f"{files_of(lake)[0]}: 1 events" in command.out
    await api.done("PATCH", f"/v1/statuses/{first['id']}", token=token, json={"message": "the first, edited"})
    for number in range(20):
        await api.post(uid, f"{number} " + "".join(chr(0x4E00 + random.randrange(20_000)) for _ in range(200)))
    small = ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash"]
    full = Running([*small, *COMMAND, *options, "--until", "now"], tmp_path / "full", clean_environment())
    assert full.process.wait(PATIENCE) == 1
    assert full.err.startswith(f"stream-server: --to {lake}: ")
    assert full.err.endswith("File too large\n")
    assert full.err.count("\n") == 1
    assert len(files_of(lake)) == 1
    assert not unfinished_in(lake)
    outcome = run(*options, "--until", "now", "--json")
    assert json.loads(outcome.out)["events"] == 21, outcome
    assert [each["kind"] for each in messages_of(lake)] == ["post", "edit", *["post"] * 20]
