"""The analytics example: each event counts once, also if its counters are killed again and again."""

import asyncio
import contextlib
import importlib.util
import json
import random
import re
import sqlite3
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from stream_server.client import Client
from tests.command_line import ROOT, Running, clean_environment, running
from tests.end_to_end.api import mint
from tests.end_to_end.server import Server
from tests.waiting import PATIENCE

EXAMPLE = ROOT / "examples" / "analytics"

PARTS, KILLS, POSTS_BETWEEN = 2, 5, 60
TAGS = ("Redis", "tea", "Café", "python")
WORDS = ("orbit", "lantern", "whisper", "granite", "river")


def load_results() -> ModuleType:
    spec = importlib.util.spec_from_file_location("analytics_results", EXAMPLE / "results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


results = load_results()


class Oracle:
    """Counts what was posted, by itself: it knows from which parts each text was made."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.counts: Counter[tuple[str, str]] = Counter()

    def text(self, login: str, others: list[str]) -> str:
        """Return a new text, and count its parts."""
        tag, word, mention = self._random.choice(TAGS), self._random.choice(WORDS), self._random.choice(others)
        self.counts["active", login] += 1
        self.counts["tag", tag.lower()] += 1
        self.counts["word", word] += 1
        self.counts["mentioned", mention] += 1
        return f"{word} of the #{tag} {word.title()} https://example.org/{word}x @{mention}"


def counted(file: Path) -> Counter[tuple[str, str]]:
    """Return the counts in the file."""
    with contextlib.closing(sqlite3.connect(file)) as database:
        terms = database.execute("SELECT kind, term, SUM(posts) FROM terms GROUP BY kind, term")
        people = database.execute("SELECT kind, login, posts FROM people")
        return Counter({(kind, name): posts for kind, name, posts in (*terms, *people)})


def number_counted(file: Path) -> int:
    found = counted(file)
    return found["active", "ann"] + found["active", "bob"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("analytics")) as started:
        yield started


def counter(
    server: Server, token: str, file: Path, part: int, folder: Path, more: tuple[str, ...] = ("--since=-1h",)
) -> Running:
    options = ("--part", f"{part}/{PARTS}", *more)
    command = (sys.executable, EXAMPLE / "count.py", server.address, token, file, *options)
    return Running([str(word) for word in command], folder, clean_environment(PYTHONPATH=str(ROOT)))


@pytest.mark.extended
def test_each_event_counts_once_although_the_counters_are_killed(server: Server, tmp_path: Path) -> None:
    """Counters die by SIGKILL while posts arrive. In the end the file equals the oracle, exactly."""
    seed = random.randrange(2**32)
    oracle, chance, file = Oracle(seed), random.Random(seed), tmp_path / "results.db"
    people = asyncio.run(sign_up(server, "ann", "bob"))
    results.Results(file).close()
    token, posted, kills_between = mint(people["ann"]), 0, 0
    counters = [counter(server, token, file, part, tmp_path / f"{part}") for part in range(1, PARTS + 1)]
    try:
        with ThreadPoolExecutor(1) as thread:
            for number in range(KILLS):
                logins = chance.choices(("ann", "bob"), k=POSTS_BETWEEN)
                texts = [(login, oracle.text(login, ["bob", "ann"])) for login in logins]
                posting = thread.submit(asyncio.run, post(server, people, texts))
                some = posted + chance.randrange(POSTS_BETWEEN // 2)
                posted += POSTS_BETWEEN
                counters[0].until(lambda: number_counted(file) > some)  # noqa: B023 - called before the next turn
                victim = number % PARTS
                counters[victim].process.kill()
                counters[victim].process.wait(PATIENCE)
                kills_between += not posting.done()
                posting.result()
                counters[victim] = counter(server, token, file, victim + 1, tmp_path / f"{number}-{victim}")
            counters[0].until(lambda: number_counted(file) >= posted)
    finally:
        for one in counters:
            one.process.kill()
            one.process.wait(PATIENCE)
    assert counted(file) == oracle.counts, f"seed {seed}"
    assert kills_between > 0, "no counter was killed while posts arrived"
    assert_the_views_show(file, tmp_path)


@pytest.mark.extended
def test_a_counter_that_dies_before_its_first_event_goes_on_where_it_began(server: Server, tmp_path: Path) -> None:
    file, people = tmp_path / "results.db", asyncio.run(sign_up(server, "eve", "dan"))

    def cursors() -> int:
        with contextlib.closing(sqlite3.connect(file)) as database:
            return int(database.execute("SELECT COUNT(*) FROM cursors").fetchone()[0])

    def number_of_active() -> int:
        return sum(posts for (kind, _), posts in counted(file).items() if kind == "active")

    results.Results(file).close()
    for start in range(2):
        counters = [
            counter(server, mint(people["eve"]), file, part, tmp_path / f"{start}-{part}", ())
            for part in range(1, PARTS + 1)
        ]
        try:
            counters[0].until(lambda: cursors() == PARTS)
            if start:
                counters[0].until(lambda: number_of_active() == len(people))
        finally:
            for one in counters:
                one.process.kill()
                one.process.wait(PATIENCE)
        if not start:
            assert number_of_active() == 0
            asyncio.run(post(server, people, [(login, "while nobody counted") for login in people]))


def assert_the_views_show(file: Path, folder: Path) -> None:
    """The terminal and the page show the results that are in the file."""
    summary = results.read_summary(file)
    with ExitStack() as stack:
        command = (sys.executable, EXAMPLE / "serve.py", file, "0")
        page = stack.enter_context(running(*command, folder=folder / "page", env=clean_environment()))
        page.until(lambda: page.out)
        address = page.out.strip()
        with urllib.request.urlopen(address + "results.json") as answer:
            shown = json.load(answer)
        with urllib.request.urlopen(address) as answer:
            assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        assert shown == json.loads(json.dumps(summary))
        watch = (sys.executable, EXAMPLE / "watch.py", file, "0.1")
        terminal = stack.enter_context(running(*watch, folder=folder / "watch", env=clean_environment(FORCE_COLOR="1")))
        terminal.until(lambda: "Most mentioned" in terminal.out)
        assert f"{KILLS * POSTS_BETWEEN} in all" in terminal.out
        assert {name for name, _ in summary["tags"]} <= set(re.findall(r"#(\w+)", terminal.out))
        assert terminal.interrupt() == page.interrupt() == 0


async def sign_up(server: Server, *logins: str) -> dict[str, str]:
    async with Client(server.address) as client:
        users = [await client.sign_up(one, one, f"{one}@example.org", "a good password") for one in logins]
    return {user.login: user.id for user in users}


async def post(server: Server, people: dict[str, str], posting: list[tuple[str, str]]) -> None:
    async with AsyncExitStack() as stack:
        clients = {
            login: await stack.enter_async_context(Client(server.address, mint(uid))) for login, uid in people.items()
        }
        for login, message in posting:
            await clients[login].post(message)


@pytest.mark.extended
def test_a_counter_says_why_it_cannot_count(server: Server, tmp_path: Path) -> None:
    command = (sys.executable, EXAMPLE / "count.py", server.address, "nonsense", tmp_path / "results.db")
    with running(*command, folder=tmp_path, env=clean_environment(PYTHONPATH=str(ROOT))) as refused:
        assert refused.process.wait(PATIENCE) == 1
        assert refused.err == "401 invalid_token: the token is not a JSON Web Token\n"


NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def batch(cursor: str, *messages: str, at: datetime = NOON) -> object:
    return results.Batch(
        [results.Post(at, "ann", message, re.findall(r"#(\w+)", message), []) for message in messages], cursor
    )


def test_a_batch_that_fails_leaves_neither_counts_nor_cursor(tmp_path: Path) -> None:
    """The cursor and the counts of a batch are one transaction."""
    file = results.Results(tmp_path / "results.db")
    assert file.begin(1, 2) is None
    file.add("1/2", batch("c1", "lantern #one"))
    broken = batch("c2", "lantern #two")._replace(missed=object())  # type: ignore[attr-defined]  # the example has no types
    with pytest.raises(sqlite3.Error):
        file.add("1/2", broken)
    assert file.begin(1, 2) == "c1"
    assert file.summary()["tags"] == [("one", 1)]
    file.close()


def test_another_number_of_parts_is_refused(tmp_path: Path) -> None:
    file = results.Results(tmp_path / "results.db")
    file.begin(1, 2)
    with pytest.raises(ValueError, match="counted in 2 parts"):
        file.begin(1, 4)
    file.close()


def test_a_term_trends_if_it_is_more_frequent_than_before(tmp_path: Path) -> None:
    """A tag that is always frequent is below one that has just come up, and old terms are forgotten."""
    file = results.Results(tmp_path / "results.db")
    for hour in range(23, 0, -1):
        file.add("1/1", batch("c", *["#always there"] * 60, at=NOON - timedelta(hours=hour)))
    file.add("1/1", batch("c", "#ancient lantern", at=NOON - timedelta(hours=25)))
    file.add("1/1", batch("c", *["#always there"] * 10, *["#fresh granite"] * 5))
    assert file.summary()["tags"] == [("fresh", 5), ("always", 10)]
    assert [word for word, _ in file.summary()["words"]] == ["granite"]
    file.forget_old_terms()
    assert ("tag", "ancient") not in counted(tmp_path / "results.db")
    assert ("tag", "always") in counted(tmp_path / "results.db")
    file.close()
