"""Whatever the way, a client gets what a plain model of the rules says, entry by entry.

The model (`tests/stream_server/hub/visibility/model.py`) shares no code with the server. The ways are live streams,
resumed streams and replays in each format, polls that wait, and previews.
"""

import asyncio
import random
from typing import Any, Self

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
from tests.stream_server.hub.visibility.model import StreamModel, matches_word, visibility
from tests.tiers import quick, seeds
from tests.waiting import eventually

POLLED = ("track", "follow", "firehose")
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


async def previewed(api: Api, history: History, user: str) -> Any:
    """Return a complete preview of the history's word."""

    async def complete() -> Any:
        body = {"rule": f"{history.word} -from:{history.herald.uid}", "minutes": 60}
        told = await api.done("POST", "/v1/rules/preview", token=mint(user), json=body)
        return told if told["complete"] else None

    return await eventually(complete, what="a complete preview")


def check_preview(history: History, user: str, told: Any) -> None:
    """A preview counts what the user may see today, and shows the ten newest."""
    now = history.state
    posts = [h for h in history.entries if h.kind == "post" and h.deleted_n is None]
    shown = [(h, visibility(user, h, now, own=False)) for h in posts if not h.audience.startswith("group:")]
    expected = [h.about for h, how in shown if how != "not" and _finds(history, h, how)]
    assert [one["status"]["id"] for one in told["examples"]] == expected[:-11:-1]
    assert told["matched"] == len(expected)


def _finds(history: History, post: Any, how: str) -> bool:
    """Whether a rule of the word finds a post: by its own text, or by that of the quoted post that the user sees."""
    if matches_word(history.word, post, history.state):
        return True
    quoted = None if post.quoted is None or how == "bare" else history.entries[post.original - 1]
    return quoted is not None and quoted.deleted_n is None and history.word in quoted.text


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
        check_preview(history, user, await previewed(api, history, user))
