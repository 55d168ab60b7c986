"""One walk through a store and the model at once: what is done to one is done to the other."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import redis

from stream_server.errors import ApiError
from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from stream_server.jobs.workers import JobWorkers
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.store import Store
from tests.property.model.ground import Refused
from tests.property.model.journal import Journal, about, told
from tests.property.model.world import World

T = TypeVar("T")

UNKNOWN = "4096"
"""An id that nothing has: of the first milliseconds of the epoch."""

DUE, PARKED = keys.key_for("due"), keys.key_for("parked")

LOGINS = ("ann", "Bob", "cyd", "dee", "Eve", "admin")
"""Those who live here; the last only watches over them."""

PASSWORD_HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"


class Walk:
    """A store, the model, and all that was made so far, so that it can be pointed at by small numbers."""

    def __init__(self, store: Store, raw: "redis.Redis", cap: int, *, prompt: bool) -> None:
        self.store = store
        self.raw = raw
        self.world = World(cap)
        self.journal = Journal()
        self.prompt = prompt
        """Whether the jobs are run after every operation; else only where timelines are compared."""
        self.people: list[str] = []
        self.admin = ""
        self.statuses: list[str] = []
        self.comments: list[str] = []
        self.lists: list[str] = []
        self.groups: list[str] = []
        self.talks: list[str] = []
        self.messages: list[str] = []
        self.owners: dict[str, str] = {}
        """Whose each of these is."""
        self.parties: dict[str, list[str]] = {}
        """Who is in a talk."""
        self.on: dict[str, list[str]] = {}
        """Who was put on a list."""
        self.trace: list[str] = []
        self._idle: set[int] = set()
        self._position: Position = LOG_START

    async def begin(self) -> None:
        """Some people."""
        for login in LOGINS:
            made = await self.store.users.create(
                login, login, f"{login}@example.org", PASSWORD_HASH, IdempotencyKey.generate()
            )
            self.people.append(made.split(b'"')[3].decode())
            self.world.people.create(self.people[-1], login)
        self.admin = self.people.pop()

    # -- what is pointed at

    def who(self, number: int) -> str:
        """Somebody."""
        return self.people[number % len(self.people)]

    @staticmethod
    def any_of(made: Sequence[str], number: int) -> str:
        """One of what was made, gone or not, the latest more often; now and then what never was."""
        if number == 0 or not made:
            return UNKNOWN
        return made[-1 - (number * number // 64) % len(made)]

    def whom(self, number: int) -> str:
        """Somebody, or nobody."""
        return UNKNOWN if number == 0 else self.who(number)

    def owner(self, made: str, number: int, often: int) -> str:
        """Mostly whose it is, else anybody."""
        return self.owners[made] if made in self.owners and often % 4 else self.who(number)

    def party(self, talk: str, number: int, often: int) -> str:
        """Mostly one of those in a talk, else anybody."""
        people = self.parties.get(talk, self.people) if often % 4 else self.people
        return people[number % len(people)]

    # -- what is done

    async def do(self, what: str, ask: Awaitable[T], model: Callable[[Any], object]) -> T | None:
        """Ask the store, then the model with what the store answered: both do it, or both refuse by the same code."""
        self.trace.append(what)
        await self._next_moment()
        before = len(self.world.ground.told)
        made, code = await outcome(ask)
        expected = None
        try:
            model(made)
        except Refused as refusal:
            expected = refusal.code
        assert code == expected, self.because(f"{what.split(maxsplit=1)[0]}: {code} instead of {expected}")
        if code is not None:
            self._idle.add(len(self.trace) - 1)
        await self._hear(before)
        if self.prompt:
            await self.settle()
        return made

    async def settle(self) -> None:
        """Run the jobs until none is left, here and there."""
        await run_jobs(self.store, self.raw)
        self.world.timelines.settle()

    def because(self, why: str) -> str:
        """The way that led here, for whoever reads a failure, without what was rightly refused."""
        return f"{why} after:\n  " + "\n  ".join(one for n, one in enumerate(self.trace) if n not in self._idle)

    async def _hear(self, before: int) -> None:
        """The log has grown by just what the model tells."""
        entries = await self.store.log.read(self._position, 1000)
        for entry in entries:
            self._position = entry.position
            self.journal.hear(entry)
        heard = Counter(told(entry) for entry in entries)
        self._of_one_moment(entries)
        due = Counter(self.world.ground.told[before:])
        assert heard == due, self.because(f"the log tells {list(heard - due)} instead of {list(due - heard)}")

    def _of_one_moment(self, entries: list[Entry]) -> None:
        """What a batch did within one millisecond has one time."""
        for kind, pairs in (("follow", self.world.ground.follows), ("request", self.world.ground.asks)):
            first: dict[int, int] = {}
            for entry in entries:
                if entry.kind == kind:
                    found = about(entry)
                    pair = found["source"], found["target"]
                    if pair in pairs:
                        pairs[pair] = first.setdefault(entry.position.ms, pairs[pair])

    async def _next_moment(self) -> None:
        """Wait until the store's clock has moved, so that nothing has the time of what was before it."""
        now = _milliseconds(self.raw)
        while _milliseconds(self.raw) == now:
            pass  # the condition is the clock's; it moves within a millisecond


def _milliseconds(raw: "redis.Redis") -> int:
    seconds, micros = raw.time()
    return int(seconds) * 1000 + int(micros) // 1000


async def outcome(ask: Awaitable[T]) -> tuple[T | None, str | None]:
    """What was answered, or the code of the refusal."""
    try:
        return await ask, None
    except ApiError as refusal:
        return None, refusal.error_code


async def run_jobs(store: Store, raw: "redis.Redis") -> None:
    """Do now what is due at any time; none of it may fail."""
    receivers = JobWorkers(store.job_queue, store.job_runner, random.Random(0))
    while hasten(raw, 1000):
        await receivers.run_until_empty()
    assert receivers.failed_passes == 0
    assert not raw.exists(PARKED)


def hasten(raw: "redis.Redis", most: int) -> int:
    """Make jobs due that are due in a while, the first ones first; gives how many there were."""
    due: Any = raw.zrange(DUE, 0, most - 1)
    if due:
        raw.zadd(DUE, dict.fromkeys(due, 0), xx=True)
    return len(due)
