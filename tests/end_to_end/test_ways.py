"""Whatever the way, a client gets what a plain model of the rules says, entry by entry.

The model (`tests/stream_server/hub/visibility/model.py`) shares no code with the server. The ways are live streams,
resumed streams and replays in each format, polls that wait, previews, and counts.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeAlias

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.ways.history import History
from tests.end_to_end.ways.listeners import (
    FRAMINGS,
    Poller,
    ScannedModel,
    StreamReader,
    all_filters,
    present,
)
from tests.stream_server.hub.visibility.model import HistoryEntry, StreamModel, matches_room, matches_word, visibility
from tests.tiers import quick, seeds
from tests.waiting import eventually

POLLED = ("track", "follow", "meta", "firehose")
"""The filters that polls and resumed streams have: those that do not change with the user's follows."""


class Play:
    """A history with its readers, which are closed at its end. ``cursors`` has where they were after each step."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.source = random.Random(history.seed)
        self.live: list[StreamReader] = []
        self.resuming: list[StreamReader] = []
        self.pollers: list[Poller] = []
        self.replays: list[StreamReader] = []
        self.cursors: list[tuple[int, str]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for reader in self.readers():
            await reader.close()

    def readers(self) -> list[StreamReader | Poller]:
        return [*self.live, *self.resuming, *self.pollers, *self.replays]

    async def open(self) -> None:
        """Open all readers, at the begin of the history."""
        start = await self.history.api.head()
        now = present(self.history)
        for number, user in enumerate(self.history.readers):
            for filters in all_filters(self.history, user):
                framing = FRAMINGS[(number + len(self.live)) % len(FRAMINGS)]
                model = filters.model(user, StreamModel, 0, *now)
                self.live.append(StreamReader(self.history, user, filters, framing, model))
                if filters.name in POLLED:
                    again, polled = [filters.model(user, ScannedModel, 0, *now) for _ in range(2)]
                    self.resuming.append(StreamReader(self.history, user, filters, framing, again))
                    self.pollers.append(Poller(self.history, user, filters, polled, start))
        await asyncio.gather(*(reader.open(start) for reader in (*self.live, *self.resuming)))

    async def step(self) -> None:
        """Let one thing happen, until all who poll or are about to leave know of it."""
        await self.history.step()
        mark = await self.history.mark()
        await asyncio.gather(*(poller.reach(mark) for poller in self.pollers))
        self.cursors.append((len(self.history.entries), self.pollers[-1].cursor))
        for reader in self.resuming:
            if reader.consumer is None and self.source.random() < 0.4:
                await self._return(reader)
            elif reader.consumer is not None and self.source.random() < 0.25:
                await reader.reach(mark)
                await reader.close()
                reader.left_n = len(self.history.entries)

    async def _return(self, reader: StreamReader) -> None:
        n, state = present(self.history)
        assert isinstance(reader.model, ScannedModel)
        reader.model.scans |= dict.fromkeys(range(reader.left_n + 1, n + 1), (n, state))
        await reader.open(reader.cursor)

    async def end(self) -> None:
        """Let all who left return, and close all readers when they have got everything."""
        for reader in self.resuming:
            if reader.consumer is None:
                await self._return(reader)
        mark = await self.history.mark()
        for reader in (*self.live, *self.resuming):
            await reader.reach(mark)
        for done in self.readers():
            await done.close()

    async def replay(self, count: int) -> None:
        """Read the history again, from its begin and from random places, in all formats."""
        starts = [self.cursors[0], *self.source.choices(self.cursors, k=count)]
        for at, (start_n, cursor) in enumerate(starts):
            for user in self.history.readers:
                for filters in all_filters(self.history, user):
                    framing = FRAMINGS[(at + len(self.replays)) % len(FRAMINGS)]
                    model = filters.model(user, StreamModel, start_n, *present(self.history))
                    reader = StreamReader(self.history, user, filters, framing, model)
                    self.replays.append(reader)
                    await reader.open(cursor)
        mark = await self.history.mark()
        for reader in self.replays:
            await reader.reach(mark)
            await reader.close()


async def previewed(api: Api, history: History, user: str, operator: str) -> Any:
    """Return a complete preview of an operator, without the herald's posts."""

    async def complete() -> Any:
        body = {"rule": f"{operator} -from:{history.herald.uid}", "minutes": 60}
        told = await api.done("POST", "/v1/rules/preview", token=mint(user), json=body)
        return told if told["complete"] else None

    return await eventually(complete, what="a complete preview")


Finds: TypeAlias = Callable[[History, HistoryEntry, HistoryEntry | None], bool]
"""Whether an operator finds a version of a post that is shown with a version of the post that it quotes."""


class Shown(NamedTuple):
    """A post that a user may see today: as it was written, and its last version, each with the post that it quotes."""

    about: str
    written: tuple[HistoryEntry, HistoryEntry | None]
    last: tuple[HistoryEntry, HistoryEntry | None]


def shown_posts(history: History, user: str) -> Iterator[Shown]:
    """Yield the posts that a replay shows to a user, if its filter finds both versions."""
    now, n = history.state, len(history.entries)
    for h in history.entries:
        how = "not" if h.kind != "post" or h.deleted_n is not None else visibility(user, h, now, own=False)
        if how == "not" or h.audience.startswith("group:"):
            continue
        original = None if h.original is None else history.entries[h.original - 1]
        written, last = None if original is None else original.version_at(h.n), h.version_at(n)
        if original is not None and h.is_wordless:
            shown = original.version_at(n)
            last = replace(h, text=shown.text, room=shown.room)
        seen = None if original is None or how == "bare" or original.deleted_n else original.version_at(n)
        yield Shown(h.about, (h, written), (last, seen))


def check_preview(history: History, user: str, told: Any, finds: Finds) -> None:
    """A preview counts what the user may see today, and shows the ten newest, each in its last version."""
    expected = {
        post.about: "" if post.last[0].is_wordless else post.last[0].text
        for post in shown_posts(history, user) if finds(history, *post.written) and finds(history, *post.last)
    }  # fmt: skip
    shown_texts = [(one["status"]["id"], one["status"]["message"]) for one in told["examples"]]
    assert shown_texts == [*expected.items()][:-11:-1]
    assert told["matched"] == len(expected)


def finds_word(history: History, post: HistoryEntry, original: HistoryEntry | None) -> bool:
    """Whether a rule of the word finds a post: by its own text, or by that of the quoted post that the user sees."""
    is_in_quoted = post.quoted is not None and original is not None and history.word in original.text
    return matches_word(history.word, post, history.state) or is_in_quoted


def finds_room(history: History, post: HistoryEntry, _: HistoryEntry | None) -> bool:
    """Whether a rule of the room finds a post: a quoted post does not count."""
    return matches_room(history.room, post, history.state)


def finds_indeed(_: History, post: HistoryEntry, original: HistoryEntry | None) -> bool:
    """Whether a rule of the word *indeed* finds a post, as `finds_word` does."""
    return "indeed" in post.text or (post.quoted is not None and original is not None and "indeed" in original.text)


def random_rule(history: History, source: random.Random) -> tuple[str, Finds]:
    """Return a rule of two random operators, and whether it finds a post."""
    author = source.choice([*history.people])
    leaves: list[tuple[str, Finds]] = [
        (history.word, finds_word), ("indeed", finds_indeed), (f"meta.room:{history.room}", finds_room),
        (f"from:{author}", lambda _history, post, _original: post.author == author),
    ]  # fmt: skip
    (one, finds_one), (other, finds_other) = source.sample(leaves, 2)
    return source.choice([
        (f"{one} {other}", lambda *asked: finds_one(*asked) and finds_other(*asked)),
        (f"({one} OR {other})", lambda *asked: finds_one(*asked) or finds_other(*asked)),
        (f"{one} -{other}", lambda *asked: finds_one(*asked) and not finds_other(*asked)),
    ])  # fmt: skip


async def _ask_for_counts(api: Api, user: str, body: dict[str, Any]) -> dict[str, Any]:
    """Ask until there is an answer: on a busy machine, an earlier question has used up the user's processor time."""

    async def ask() -> dict[str, Any] | None:
        answer = await api.call("POST", "/v1/rules/counts", token=mint(user), json=body)
        assert answer.status in {200, 429}
        return answer.json if answer.status == 200 else None

    answered = await eventually(ask)
    assert isinstance(answered, dict)
    return answered


async def check_counts(api: Api, history: History, user: str) -> None:
    """A question counts for each of several rules the posts with which a replay of all these rules names it.

    Such a replay has a post if some rule finds it as it was written, and names the rules that find what is shown.
    """
    source = random.Random(f"{history.seed} {history.readers.index(user)}")
    rules = {str(number): random_rule(history, source) for number in range(8)}
    authors = " OR ".join(f"from:{uid}" for uid in history.people)  # other histories of the server have some words, too
    asked = [{"tag": tag, "rule": f"{text} ({authors})"} for tag, (text, _) in rules.items()]
    body = {"rules": asked, "from": "-1h", "every": source.choice(["minute", "hour", "day"])}
    told = await _ask_for_counts(api, user, body)
    buckets = told["buckets"]
    while told["next"] is not None:
        told = await _ask_for_counts(api, user, body | {"next": told["next"]})
        buckets += told["buckets"]
    expected, total = Counter[str](), 0
    for post in shown_posts(history, user):
        found = [tag for tag, (_, finds) in rules.items() if finds(history, *post.last)]
        if found and any(finds(history, *post.written) for _, finds in rules.values()):
            expected.update(found)
            total += 1
    counts = Counter[str]()
    for bucket in buckets:
        counts.update({one["tag"]: one["count"] for one in bucket["counts"]})
    wrong = {rules[tag][0]: (counts[tag], expected[tag]) for tag in rules if counts[tag] != expected[tag]}
    assert wrong == {}, (history.seed, user, history.word)
    assert sum(bucket["count"] for bucket in buckets) == total


@pytest.mark.parametrize("seed", seeds(12, first_tier=1, second_tier=2))
async def test_each_way_shows_what_a_plain_model_of_the_rules_says(api: Api, seed: int) -> None:
    history = await History.begin(api, seed, 4 if quick() else 5)
    async with Play(history) as play:
        await play.open()
        for _ in range(30 if quick() else 120):
            await play.step()
        await play.end()
        await play.replay(1 if quick() else 3)
        assert sum(reader.check() for reader in play.readers()) > 10 * len(history.entries)
    for user in history.readers:
        check_preview(history, user, await previewed(api, history, user, history.word), finds_word)
        check_preview(history, user, await previewed(api, history, user, f"meta.room:{history.room}"), finds_room)
        await check_counts(api, history, user)
