"""Hears the log and hands it to the hub: every entry, once, in order.

PUBLISH is the fast path, the log is the truth. Each message carries its contiguous number, so a missed one
is known at once and read from the log; a canary compares the hub's head with the log's, so that a link which
is silent without an error is found as well, and dialled anew. Live messages are never buffered: on a gap they
only raise the target up to which the log is read.

A log may also lose its end: a power cut, a failover. Its numbers are used again then, and ids too with the clock set
back, so the feed looks whether what it heard is still there. What is not is told on the log itself before anybody
reads on, so that whoever returns with a lost cursor, to whichever server, is set back to where the log went on.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from itertools import chain, takewhile
from typing import NamedTuple

from stream_server.errors import ApiError, Unavailable
from stream_server.events import START, Entry, MalformedEntry, Position, parse_message
from stream_server.hub.hub import Hub
from stream_server.link_health import LinkHealth
from stream_server.store.log import Located, Log
from stream_server.store.rollbacks import Loss, Rollbacks
from stream_server.store.viewers import Outcasts

logger = logging.getLogger(__name__)

PAGE = 512
"""Entries a read of the log, at most: about 0.5 MB."""

OWN_SECONDS = 2.0
"""What this process was told is written should have been heard by then."""


LOSSES = 16
"""So many lost ends of the log are remembered here."""


MARKS = 4096
"""So many places are remembered beyond those in the ring, one a beat: an hour and more."""


class LinkLost(Exception):
    """The subscription ended, or cannot be trusted any more: dial anew and read the log first."""


class Moved(LinkLost):
    """All is well, but there is a better place to hear from."""


class Told(NamedTuple):
    """What the log lost up to ``lost``, as it was told by the entry ``word``, or by another that is not known here."""

    start: Position
    lost: Position
    word: Position


class Feed:
    """One worker's link to the log; :meth:`run` owns it until cancelled.

    ``written`` is the newest entry that this process was told it wrote. ``malformed`` counts messages that were no
    entries, ``repeated`` those heard before, ``repaired`` entries read from the log, ``redials`` the links after the
    first, ``rollbacks`` the times that the log had lost what was heard. All seconds are of a clock that never jumps.
    """

    def __init__(
        self,
        log: Log,
        rollbacks: Rollbacks,
        hub: Hub,
        outcasts: Callable[[], Awaitable[Outcasts]],
        *,
        written: Callable[[], Position],
        canary_seconds: float,
        random_source: random.Random,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._rollbacks = rollbacks
        self.hub = hub
        self._outcasts = outcasts
        self._written = written
        self.canary_seconds = canary_seconds
        self._monotonic = monotonic
        self._health = LinkHealth(random_source, monotonic=monotonic)
        self._standing_known = False
        self._untold: list[Position] = []
        self._shaken = asyncio.Event()
        self._turn = asyncio.Lock()
        self._begun = self._answered = 0
        self._redis_run = ""
        self._verified = hub.head
        self._marks = deque([hub.head], maxlen=MARKS)
        self._losses: list[Told] = []
        self._owed: tuple[Position, float] | None = None
        self._settled = START
        self.malformed = 0
        self.repeated = 0
        self.repaired = 0
        self.redials = 0
        self.rollbacks = 0
        self.lag_ms = hub.lag_ms = self._health.lag_ms
        log.doubt = self.look

    @property
    def ready(self) -> bool:
        """Whether an event that is written now would arrive."""
        return self._health.well.is_set()

    async def wait_ready(self) -> None:
        """Until the feed is ready for the first time, or again."""
        await self._health.well.wait()

    # The link: dialled, listened to, dialled anew.

    async def run(self) -> None:
        """Listen and watch until cancelled; what Redis does is waited out, any other failure ends it."""
        while True:
            lost = await self._live()
            self.redials += 1
            if isinstance(lost, Moved):
                logger.info("link to Redis: %s", lost)
                continue
            logger.warning("link to Redis: %s", lost)
            self._log.near.leave()
            await asyncio.sleep(self._health.lost())

    async def _live(self) -> Exception:
        """One life of the link; gives what ended it.

        Not a TaskGroup: before Python 3.13 that forgets that it was cancelled when a task of its fails just then, and a
        server would live on that was told to stop.
        """
        life = [
            asyncio.create_task(self._listen(), name="feed: listen"),
            asyncio.create_task(self._watch(), name="feed: canary"),
        ]
        try:
            await asyncio.wait(life, return_when=asyncio.FIRST_COMPLETED)
            if self._untold:
                async with self._turn:  # whoever tells it is not to be cut off by hearing his own word
                    pass
        finally:
            for task in life:
                task.cancel()
            ended = await asyncio.gather(*life, return_exceptions=True)
        reasons = [why for why in ended if isinstance(why, Exception)]
        for why in reasons:
            if not isinstance(why, LinkLost | ApiError | OSError):
                raise why
        return reasons[0]

    async def _listen(self) -> None:
        """One life of the subscription; the log is read once it is confirmed, so nothing falls between."""
        self._shaken.clear()
        async with aclosing(self._log.listen()) as messages:
            async for message in messages:
                if message is None:
                    head = await self._check(whole=True)
                    self.hub.log_ready.set()
                    if not self._standing_known:
                        await self._learn_standing()
                    await self._catch_up(head)
                    self._health.seen_well()
                else:
                    await self._hear(message)

    async def _hear(self, message: bytes) -> None:
        try:
            entry = parse_message(message)
        except MalformedEntry:
            self.malformed += 1
            return
        self._require_footing()
        following = self.hub.head.n + 1
        if entry.position.n == following and entry.position > self.hub.head:
            self.hub.publish(entry)
            if self.hub.outflow.busy:
                await self.hub.outflow.calm()  # in a burst the rest waits in Redis, not here once for each client
        elif entry.position.n >= following:
            await self._catch_up(entry.position)
            self.malformed += entry.position.n > self.hub.head.n  # it names a place that the log does not have
        elif self.hub.ring.holds(entry.position):
            self.repeated += 1
        else:
            await self._check()  # a number that was heard with another id: another history, or junk
            self.malformed += 1

    async def _catch_up(self, target: Position) -> None:
        """Publish from the log until ``target`` is reached; what was trimmed before it was read is told."""
        hub = self.hub
        while hub.head.n < target.n:
            heard = hub.head
            entries = await self._log.read(heard, self._log.portion.of(PAGE))
            if not entries:
                return
            missed = entries[0].position.n - heard.n - 1
            if missed:
                await self._check()  # the log goes on elsewhere than behind the head: is that still there?
                if hub.head != heard:
                    continue
                self._jump(entries[0].position.before(), "trimmed" if missed > 0 else "rolled_back", max(missed, 0))
                await self._learn_standing()
            self._publish(entries)
            await hub.outflow.calm()

    def _jump(self, to: Position, reason: str, missed: int | None = None) -> None:
        """What was lost may have been a protection: nothing is published until it is known who has it."""
        self._standing_known = False
        self.hub.jump(to, reason, missed or None)
        self._verified = to

    async def _learn_standing(self) -> None:
        """Who is protected and suspended now: later than the hub's head perhaps, as it is for whoever replays."""
        self.hub.standing.load(*await self._outcasts())
        self._standing_known = True

    def _require_footing(self) -> None:
        """Raises :class:`LinkLost` where a look on behalf of a reader has found that the hub has to go back."""
        if self._untold or not self._standing_known:
            raise LinkLost("what was heard is not on the log any more")

    def _publish(self, entries: list[Entry]) -> None:
        """As far as they go on from the head: it may have moved while they were read."""
        self._require_footing()
        for entry in entries:
            if entry.position.n == self.hub.head.n + 1 and entry.position > self.hub.head:
                self.repaired += 1
                self.hub.publish(entry)

    # The canary: is the hub where the log is?

    async def _watch(self) -> None:
        """Raises :class:`LinkLost` when the log went on and nothing of it was heard for a beat."""
        await self._health.well.wait()
        while True:
            await self._rest()
            heard = self.hub.head
            head = await self._check()
            self.hub.log_ready.set()
            await self._account_for_own()
            if head.n > self.hub.head.n:
                await asyncio.sleep(self.canary_seconds / 2)
                if self.hub.head == heard:
                    message = f"silent: the log is at {head.cursor}, heard until {heard.cursor}"
                    raise LinkLost(message)
            else:
                self._health.seen_well()
            if await self._log.near.back(head.n):
                raise Moved("the log is heard from the replica again")

    async def _rest(self) -> None:
        """Until the next beat; raises :class:`LinkLost` at once where a reader's doubt was found to be right."""
        try:
            async with asyncio.timeout(self.canary_seconds):
                await self._shaken.wait()
        except TimeoutError:
            return
        raise LinkLost("a reader's doubt in what was heard was right")

    async def _account_for_own(self) -> None:
        """What this process was told is written is heard, or on the log, or was lost; it is said which.

        Raises :class:`LinkLost` where it is on the log.
        """
        written, now = self._written(), self._monotonic()
        known = max(self.hub.head, self._settled)
        if self._owed is None or self._owed[0] <= known:
            self._owed = None if written <= known else (written, now)
        elif now - self._owed[1] >= OWN_SECONDS:
            lost = self._settled = self._owed[0]
            located = await self._log.locate(lost.ms, lost.seq)
            if located.found is not None:
                raise LinkLost(f"deaf: this process wrote {lost.cursor}, which is on the log and was not heard")
            if not located.trimmed(lost):
                logger.error("the log lost %s, which this process wrote and never heard", lost.cursor)
                async with self._turn:
                    await self._tell(self.hub.head, lost)

    async def look(self) -> None:
        """Look whether the hub's own place is there, for whoever found that another is not.

        If not, the hub has gone back when this returns. Raises Unavailable while that cannot be known or told.
        """
        asked = self._begun
        try:
            async with self._turn:
                if self._answered <= asked:  # else one that began after the doubt did has answered it too
                    await self._inspect(whole=True)
        except LinkLost:
            self._shaken.set()
        except ApiError:
            self._shaken.set()
            raise
        if self._untold:
            raise Unavailable("the log lost what was told, and takes no word of it yet", retry_after=1)

    async def _check(self, *, whole: bool = False) -> Position:
        """The log's head; raises :class:`LinkLost` if the log lost what was heard, when the hub has gone back.

        What comes after that is read by a new link, whatever was on its way.
        """
        async with self._turn:
            return await self._inspect(whole=whole)

    async def _inspect(self, *, whole: bool) -> Position:
        """The log's head; ``whole`` looks at all that was heard since the last beat.

        So it is also on a Redis that was started since: it may have lost some, and be longer again than it was.
        """
        self._begun += 1
        heard = self.hub.head
        run, located = await self._log.inspect(heard)
        gone = heard.n > 0 and not located.trimmed(heard)
        gone = gone and (located.found is None or located.found.position != heard)
        if gone or whole or self._untold or run != self._redis_run:
            await self._go_back(heard if gone else None, located)
        self._redis_run, self._verified, self._answered = run, heard, self._begun
        if heard.n > self._marks[-1].n:
            self._marks.append(heard)
        return located.head

    async def _go_back(self, gone: Position | None, located: Located) -> None:
        """To the newest place that is left, if something is not; raises :class:`LinkLost` then."""
        ring = self.hub.ring
        recent = list(takewhile(lambda place: place.n > self._verified.n, ring.newest_first()))
        if self._verified.n:
            recent.append(self._verified)  # what was there then may be lost since, and heard over by what came instead
        lost = [place for place in await self._log.lost(recent) if not located.trimmed(place)]
        if gone is not None:
            lost = lost or [gone]
        # Until it is told, nobody hears more. What was found before is told also if that was broken off on the way.
        self._untold = lost = lost or self._untold
        if not lost:
            await self._repeat(located)
            return
        known = (place for place in chain(ring.newest_first(), reversed(self._marks)) if place.n < lost[-1].n)
        survivor = await self._log.survivor(known) or await self._below_all()
        told = await self._tell(survivor, lost[0])
        await self._repeat(located)
        self._untold = []
        if told is None:
            raise LinkLost(f"{lost[0].cursor} was not on the log, and is again")
        self.rollbacks += 1
        self._jump(told.start, "rolled_back")
        while len(self._marks) > 1 and self._marks[-1].n > told.start.n:
            self._marks.pop()
        message = f"the log was rolled back: {lost[0].cursor} is gone, it goes on after {told.start.cursor}"
        raise LinkLost(message)

    async def _tell(self, survivor: Position, lost: Position) -> Loss | None:
        """Remembered, since what was told may be lost as well; where the log goes on further down, that holds now."""
        told = await self._rollbacks.tell(survivor, lost)
        if told is not None:
            standing = [one for one in self._losses if one.start <= told.start]
            self._losses = [*standing, Told(told.start, lost, told.told or lost)][-LOSSES:]
        return told

    async def _repeat(self, located: Located) -> None:
        """What was told by an entry that is lost as well is told again."""
        words = set(await self._log.lost([one.word for one in self._losses]))
        for at, one in enumerate(self._losses):
            if one.word in words and not located.trimmed(one.word):
                again = await self._rollbacks.tell(one.start, one.lost)
                if again is not None and again.told is not None:
                    self._losses[at] = one._replace(word=again.told)

    async def _below_all(self) -> Position:
        """The newest place on the log below all that is remembered: what this hub had there, nobody knows."""
        oldest = self._marks[0]
        if not oldest.n:
            return START
        located = await self._log.locate(oldest.ms, oldest.seq)
        return located.survivor or located.before or START
