"""Real tweets through the whole server: every kind of client receives exactly what the reference computes."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import reference
from tests.end_to_end.api import Api
from tests.end_to_end.consumer import Consumer, Message, named
from tests.end_to_end.publisher import Publisher, Status
from tests.end_to_end.sample_texts import AIRLINES, Draft, drafts
from tests.end_to_end.server import restartable

pytestmark = pytest.mark.extended

SLICE = 150

SOUTH_SEA = "176,-20,-170,-10"


class Audience(NamedTuple):
    """A listener: its parameters, its viewer, and the users whom the viewer follows at the beginning."""

    params: Mapping[str, str]
    uid: str
    following: tuple[str, ...] = ()


def audiences(texts: list[Draft], people: Mapping[str, str], viewer: str, followed: tuple[str, ...]) -> list[Audience]:
    """Return twenty streams to open, of every kind."""
    airlines = ",".join(people[login] for login in AIRLINES[:2])
    tag, url = common(texts, "#"), common(texts, "http://")
    parameters: list[dict[str, str]] = [
        {"track": "flight"},
        {"track": "customer service,late flight"},
        {"track": "@united,@nobody_here"},
        {"track": f"{tag},#旅行,旅行"},
        {"track": "can't,don\u2019t,roll,e-mail,wi,under_score"},
        {"track": f"{url.removeprefix('http://')},example.com,t co"},
        {"track": "flight.,service!,thanks,¿qué?,3.14"},
        {"track": "東京,CAFÉ,strasse,हिन्दी,שלום,été"},
        {"follow": airlines},
        {"follow": "@me"},
        {"follow": f"@me,{people[AIRLINES[2]]}", "kinds": "post,delete,follow,unfollow"},
        {"locations": "-125,25,-66,49"},
        {"locations": f"{SOUTH_SEA},13,52,14,53"},
        {"sample": "10"},
        {"sample": "33.3", "language": "en,de"},
        {"firehose": "true", "kinds": "post,delete,follow,unfollow"},
        {"firehose": "true", "language": "en"},
        {"firehose": "true", "kinds": "delete"},
        {"track": "bag", "follow": airlines, "locations": "-125,25,-66,49"},
        {"track": "flight,#fail", "language": "ja,de,und", "kinds": "post"},
    ]
    return [Audience(p, viewer, followed if "@me" in p.get("follow", "") else ()) for p in parameters]


def common(texts: Iterable[Draft], start: str) -> str:
    """Return the most frequent word that begins with ``start`` and has no punctuation."""
    words = (w for d in texts for w in d.body["message"].split() if w.startswith(start))
    plain = Counter(w for w in words if w.removeprefix(start).replace("/", "").replace(".", "").isalnum())
    return str(plain.most_common(1)[0][0])


class Day:
    """One run on a server: listeners connect, an author posts the texts, and some are deleted."""

    def __init__(self, api: Api, stack: AsyncExitStack, texts: list[Draft]) -> None:
        self.api = api
        self.stack = stack
        self.texts = texts
        self.deletes = 500 if len(texts) > 5000 else 60
        self.viewer = ""
        self.people: dict[str, str] = {}
        self.followed: tuple[str, ...] = ()

    async def set_up(self) -> Publisher:
        """Create one account per login (ignoring case), and a viewer who follows some of them."""
        logins = {login.lower(): login for login in [*(d.author for d in self.texts), *AIRLINES]}
        made = await self.api.users(logins.values())
        ids = {login.lower(): uid for login, uid in made.items()}
        self.people = {login: ids[login.lower()] for login in [*(d.author for d in self.texts), *AIRLINES]}
        self.viewer = await self.api.user()
        self.followed = tuple({self.people[d.author] for d in self.texts[::40]})
        for target in self.followed:
            await self.api.follow(self.viewer, target)
        return Publisher(self.api, self.people)

    async def listen(self, listeners: Iterable[Audience]) -> list[Consumer]:
        """Open the streams of all listeners."""
        return [
            await self.stack.enter_async_context(
                await self.api.stream(one.params, uid=one.uid, framing=("sse", "ndjson")[n % 2])
            )
            for n, one in enumerate(listeners)
        ]

    async def write(self, publisher: Publisher, recording: Path | None = None) -> str:
        """Post all texts, with `replay` if there is a ``recording``, and change the follows in between.

        Return the head.
        """
        await (publisher.publish(self.texts) if recording is None else publisher.replay(self.texts, recording))
        await publisher.follow(self.viewer, self.people["united"])
        await publisher.answer(max(100, len(self.texts) // 8), seed=1)
        await publisher.unfollow(self.viewer, self.followed[0])
        await publisher.answer(60, seed=2)
        return await self.api.head()

    async def delete(self, publisher: Publisher) -> str:
        await publisher.delete(self.deletes, seed=3)
        return await self.api.head()


def compare(
    events: list[Message],
    expected: list[tuple[str, str]],
    statuses: Mapping[str, Status],
    what: object,
    gone: Collection[str] = (),
) -> None:
    """Compare events, order and content with the server's answers to the authors.

    ``gone`` were deleted before the replay.
    """
    told = [named(e) for e in events]
    missing, extra = Counter(expected) - Counter(told), Counter(told) - Counter(expected)
    shown = [(kind, statuses[name]) for kind, name in [*missing, *extra][:3] if name in statuses]
    assert not missing, f"{what}: {len(missing)} missing, for example {shown}"
    assert not extra, f"{what}: {len(extra)} too many, for example {shown}"
    assert told == expected, f"{what}: not in log order"
    for event in events:
        if event["kind"] == "post":
            assert event["status"] == without(gone, statuses[event["status"]["id"]])
        if event["kind"] == "delete":
            status = statuses[event["status"]["id"]]
            assert event["status"] == {"id": status["id"], "uid": status["uid"], "deleted": True}


def without(gone: Collection[str], status: Status) -> Status:
    """Return the status as clients see it when the status that it reposts is deleted."""
    return {**status, "original": None} if status.get("original") and status["origin"] in gone else status


async def compare_live(listeners: Iterable[Audience], streams: list[Consumer], publisher: Publisher, head: str) -> None:
    """Compare what each stream received while all was written."""
    statuses = {s["id"]: s for s in publisher.statuses}
    for audience, stream in zip(listeners, streams, strict=True):
        await stream.reached(head)
        expected = reference.receives(
            audience.params, publisher.happened, viewer=audience.uid, following=audience.following
        )
        assert expected, f"nothing is expected of {audience.params}: the test is blind there"
        compare(stream.events, expected, statuses, audience.params)
    everything = next(s for a, s in zip(listeners, streams, strict=True) if "unfollow" in a.params.get("kinds", ""))
    cursors = {named(e): e["cursor"] for s in streams for e in s.events}
    assert len(everything.events) > 50
    assert all(cursors[named(e)] == e["cursor"] for s in streams for e in s.events)


async def compare_replays(api: Api, listeners: Iterable[Audience], publisher: Publisher, start: str, head: str) -> None:
    """Compare what a late client of each kind receives, from ``start`` to ``head``."""
    statuses = {s["id"]: s for s in publisher.statuses}
    gone = {h["status"]["id"] for h in publisher.happened if h["kind"] == "delete"}
    for n, audience in enumerate(listeners):
        if not audience.following:
            params = {**audience.params, "since": start}
            async with await api.stream(params, uid=audience.uid, framing=("ndjson", "sse")[n % 2]) as late:
                await late.reached(head)
            compare(late.events, reference.replayed(audience.params, publisher.happened), statuses, params, gone)
            assert not late.of("gap")


@pytest.mark.timeout(600)
async def test_every_write_reaches_every_subscriber_it_matches_once_in_log_order(
    own_folder: Path,
    tmp_path: Path,
    full: bool,  # noqa: FBT001 - a fixture
) -> None:
    """Twenty clients of all kinds, half SSE and half NDJSON, receive what the reference computes, including deletes.

    A client that comes at the end with an early cursor receives the remaining posts and all deletes: from the ring, and
    after a restart without a ring from the log. All texts are posted with ``--full``, else a part of them.
    """
    texts = drafts(None if full else SLICE)
    with restartable(own_folder, "--heartbeat-seconds", "0.2") as server:
        async with Api(server) as api, AsyncExitStack() as stack:
            day = Day(api, stack, texts)
            publisher = await day.set_up()
            listeners = audiences(texts, day.people, day.viewer, day.followed)
            start = await api.head()
            streams = await day.listen(listeners)
            await day.write(publisher, tmp_path / "day.jsonl")
            assert len(publisher.statuses) >= len(texts)
            head = await day.delete(publisher)
            await compare_live(listeners, streams, publisher, head)
            await compare_replays(api, listeners, publisher, start, head)
        await asyncio.to_thread(server.stop)
        server.flags = (*server.flags, "--ring-bytes", "0")
        async with server, Api(server) as api:
            await compare_replays(api, listeners, publisher, start, head)
