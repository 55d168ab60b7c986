"""A walk through a store and the model: each action is done to both."""

import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import redis

from stream_server.errors import ApiError
from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.jobs.workers import JobWorkers
from stream_server.store.store import Store
from tests.property.model.journal import Journal, about, as_logged
from tests.property.model.state import Refused
from tests.property.model.world import World

T = TypeVar("T")

UNKNOWN = "4096"
"""An id that no object has: from the first milliseconds of the epoch."""

DUE, PARKED = keys.key_for("due"), keys.key_for("parked")

LOGINS = ("ann", "Bob", "cyd", "dee", "Eve", "admin")
"""The users. The last is the administrator."""

PASSWORD_HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"


class Walk:
    """A store, the model, and all objects made so far, which actions choose by small numbers."""

    def __init__(self, store: Store, raw: "redis.Redis", cap: int, *, prompt: bool) -> None:
        self.store = store
        self.raw = raw
        self.world = World(cap)
        self.journal = Journal()
        self.prompt = prompt
        """Whether the jobs are run after every operation; else only where timelines are compared."""
        self.people: list[str] = []
        self.logins = list(LOGINS)
        """The logins of the people, and behind them that of the administrator."""
        self.newcomers = itertools.count()
        self.admin = ""
        self.statuses: list[str] = []
        self.comments: list[str] = []
        self.lists: list[str] = []
        self.groups: list[str] = []
        self.talks: list[str] = []
        self.messages: list[str] = []
        self.owners: dict[str, str] = {}
        """The owner of each object."""
        self.parties: dict[str, list[str]] = {}
        """The users in each talk."""
        self.trace: list[str] = []
        self._idle: set[int] = set()
        self._position: Position = LOG_START

    async def begin(self) -> None:
        self.people = [await self.sign_up(login) for login in LOGINS]
        self.admin = self.people.pop()

    async def sign_up(self, login: str) -> str:
        """Create a user in the store and in the model. Returns the id."""
        make = self.store.users.create
        made = await make(login, login, f"{login}@example.org", PASSWORD_HASH, IdempotencyKey.generate())
        uid = made.split(b'"')[3].decode()
        self.world.people.create(uid, login)
        return uid

    # -- choosing objects

    def user(self, number: int) -> str:
        return self.people[number % len(self.people)]

    @staticmethod
    def any_of(made: Sequence[str], number: int) -> str:
        """One of the objects, deleted or not, mostly a late one. Sometimes an unknown id."""
        if number == 0 or not made:
            return UNKNOWN
        return made[-1 - (number * number // 64) % len(made)]

    def user_or_unknown(self, number: int) -> str:
        return UNKNOWN if number == 0 else self.user(number)

    def owner(self, made: str, number: int, often: int) -> str:
        """Mostly the owner of the object, else any user."""
        return self.owners[made] if made in self.owners and often % 4 else self.user(number)

    def party(self, talk: str, number: int, often: int) -> str:
        """Mostly a user in the talk, else any user."""
        people = self.parties.get(talk, self.people) if often % 4 else self.people
        return people[number % len(people)]

    # -- actions

    async def do(self, what: str, ask: Awaitable[T], model: Callable[[Any], object]) -> T | None:
        """Ask the store, then the model. Both must do it, or refuse it with the same code."""
        self.trace.append(what)
        await self._next_moment()
        before = len(self.world.ground.logged)
        made, code = await outcome(ask)
        expected = None
        try:
            model(made)
        except Refused as refusal:
            expected = refusal.code
        assert code == expected, self.because(f"{what.split(maxsplit=1)[0]}: {code} instead of {expected}")
        if code is not None:
            self._idle.add(len(self.trace) - 1)
        await self._check_log(before)
        if self.prompt:
            await self.settle()
        return made

    async def settle(self) -> None:
        await run_jobs(self.store, self.raw)
        self.world.timelines.settle()

    async def pause(self) -> None:
        """Let all jobs end before the next action."""
        await self.settle()

    def because(self, why: str) -> str:
        """The message of a failure, with all actions that were not rightly refused."""
        return f"{why} after:\n  " + "\n  ".join(one for n, one in enumerate(self.trace) if n not in self._idle)

    async def _check_log(self, before: int) -> None:
        """The log must have grown by exactly the events of the model."""
        entries = await self.store.log.read(self._position, 1000)
        for entry in entries:
            self._position = entry.position
            self.journal.apply(entry)
        found = Counter(event for entry in entries for event in as_logged(entry))
        self._of_one_moment(entries)
        due = Counter(self.world.ground.logged[before:])
        assert found == due, self.because(f"the log has {list(found - due)} instead of {list(due - found)}")

    def _of_one_moment(self, entries: list[Entry]) -> None:
        """Give one time to all actions of a batch within one millisecond."""
        for kind, pairs in (("follow", self.world.ground.follows), ("request", self.world.ground.asks)):
            first: dict[int, int] = {}
            for entry in entries:
                if entry.kind == kind:
                    found = about(entry)
                    pair = found["source"], found["target"]
                    if pair in pairs:
                        pairs[pair] = first.setdefault(entry.position.ms, pairs[pair])

    async def _next_moment(self) -> None:
        """Wait for the next millisecond of the store's clock, so that times differ."""
        now = _milliseconds(self.raw)
        while _milliseconds(self.raw) == now:
            pass  # the loop waits for the store's clock, which changes within a millisecond


def _milliseconds(raw: "redis.Redis") -> int:
    seconds, micros = raw.time()
    return int(seconds) * 1000 + int(micros) // 1000


async def outcome(ask: Awaitable[T]) -> tuple[T | None, str | None]:
    """The answer, or the code of the refusal."""
    try:
        return await ask, None
    except ApiError as refusal:
        return None, refusal.error_code


async def run_jobs(store: Store, raw: "redis.Redis") -> None:
    """Run all jobs now. None may fail."""
    job_workers = JobWorkers(store.job_queue, store.job_runner)
    while make_due(raw, 1000):
        await job_workers.run_until_empty()
    assert job_workers.failed_passes == 0
    assert not raw.exists(PARKED)


def make_due(raw: "redis.Redis", most: int) -> int:
    """Make the first ``most`` jobs due now. Returns their number."""
    due: Any = raw.zrange(DUE, 0, most - 1)
    if due:
        raw.zadd(DUE, dict.fromkeys(due, 0), xx=True)
    return len(due)
