"""The processor time that one user, and one address, may take with what they send: messages, forms and rules to parse.

A limit for each connection alone would be no limit, because a client opens more of them. A limit of bytes would not
bound the time, because some bytes take much longer than others. So the time is measured where it arises, and charged to
the user and to the address, whatever connection it came by. Each has a share of the time that
passes, and may be some seconds ahead of it. Who is further ahead waits until the share has caught up: a socket is not
read, and a request is not parsed. Everybody else goes on. What comes from an address without a token is together one
user, who pays as others do.

Those who wait form a line for each user of an address, in the order of their arrival. The lines of an account take
turns: the first of one line goes on, then the first of the next line. So a user waits for one piece of work of each
other user of the address, however many connections those open. A request is parsed in its turn, and not after it: so it
cannot lose the turn to others, and the next one sees what it took. An account begins no further piece of those who wait
when it has taken :data:`SLICE_SECONDS` in one iteration of the event loop, so that others are served in between. A
piece that has begun takes as long as it takes.

With the setting ``limits`` turned off, there are turns and slices, but no shares. The clock is that of the thread that
does the work: on a busy machine a client pays nothing for the time in which the process waits for a core.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from stream_server.errors import RateLimited
from stream_server.runtime.event_loop import WorkThread

USER_SHARE, ADDRESS_SHARE = 0.05, 0.1
"""Seconds of processor time that one user and one address may take in each second."""

MAX_AHEAD_SECONDS = 4.0
"""Seconds by which an account may be ahead of its share: a user who was quiet may take a fifth of a second at once."""

SLICE_SECONDS = 0.002
"""Seconds of processor time that an account takes in one iteration of the event loop. The last piece may take more."""

MAX_WAIT_SECONDS = 2.0
"""Longest wait of a request for its turn."""

T = TypeVar("T")


class Line:
    """The sockets and requests of one user at one address that wait, in the order of their arrival.

    A line waits for one of its two accounts at a time.
    """

    __slots__ = ("__weakref__", "accounts", "waiting")

    def __init__(self, accounts: "tuple[Account, Account]") -> None:
        self.accounts = accounts
        self.waiting: dict[Callable[[], None], None] = {}

    def queue(self, usual: "Account") -> None:
        """Put the line into the queue of the account that is over; into that of ``usual`` if neither is."""
        next((account for account in self.accounts if account.is_over), usual).wait(self)

    def take_turn(self, turn_of: "Account") -> None:
        """Let the first socket or request of the line go on. The others wait for the next turn of the line.

        If an account of the line is over, nobody goes on, and the line waits for this account.
        """
        is_over = any(account.is_over for account in self.accounts)
        go_on = None if is_over or not self.waiting else next(iter(self.waiting))
        if go_on is not None:
            del self.waiting[go_on]
        if self.waiting:
            self.queue(turn_of)
        if go_on is not None:
            go_on()


class Account:
    """The processor time that one user or one address takes in this process, and the lines that wait for it."""

    __slots__ = ("__weakref__", "_is_on", "_lines", "_monotonic", "_paid_until", "_share", "_spent_seconds", "_timer")

    def __init__(self, share: float, monotonic: Callable[[], float], is_on: Callable[[], bool]) -> None:
        self._share = share
        self._monotonic = monotonic
        self._is_on = is_on
        self._paid_until = monotonic()
        self._spent_seconds = 0.0
        self._lines: dict[Line, None] = {}
        self._timer: asyncio.Handle | None = None

    @property
    def over_seconds(self) -> float:
        """The seconds until the account may be used again by its share, 0 or less if it may be used now."""
        return self._paid_until - self._monotonic() - MAX_AHEAD_SECONDS if self._is_on() else 0.0

    @property
    def is_over(self) -> bool:
        """Whether all who are charged to this account must wait: its slice of the iteration, or its share, is used."""
        return self._spent_seconds >= SLICE_SECONDS or self.over_seconds > 0

    def charge(self, seconds: float) -> None:
        """Take ``seconds`` of processor time from the account."""
        is_first = not self._spent_seconds
        if self._is_on():
            self._paid_until = max(self._paid_until, self._monotonic()) + seconds / self._share
        self._spent_seconds += seconds
        if is_first:
            self._look_later()

    def wait(self, line: Line) -> None:
        """Give ``line`` a turn as soon as the account is not over and the lines before it had their turns."""
        self._lines[line] = None
        if len(self._lines) == 1:
            self._look_later()

    def _look_later(self) -> None:
        """Look again in the next iteration, which begins a new slice; else when somebody may go on.

        If nobody waits, look again when all is paid: until then the timer keeps the account.
        """
        if self._timer is not None:
            self._timer.cancel()
        seconds = self.over_seconds if self._lines else self._paid_until - self._monotonic()
        if self._spent_seconds:
            seconds = 0.0
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._look) if seconds > 0 else loop.call_soon(self._look)

    def _look(self) -> None:
        self._timer = None
        self._spent_seconds = 0.0
        while self._lines and not self.is_over:
            line = next(iter(self._lines))
            del self._lines[line]
            line.take_turn(self)
        if self._timer is None and (self._lines or self._paid_until > self._monotonic()):
            self._look_later()


class Payer:
    """The user and the address whose accounts are charged for one socket or request. The object takes few bytes.

    ``user`` is "" while the user is not known. All such payers of an address are one user.
    """

    __slots__ = ("_address", "_time", "_user")

    def __init__(self, time: "ProcessorTime", address: str, user: str) -> None:
        self._time = time
        self._address = address
        self._user = user

    @property
    def _accounts(self) -> tuple[Account, Account]:
        return self._time.accounts(self._address, self._user)

    @property
    def is_over(self) -> bool:
        """Whether one of the accounts is over, so that the payer must wait."""
        return any(account.is_over for account in self._accounts)

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call ``go_on`` once, in its turn, when no account is over. If it waits already, it keeps its place."""
        line = self._time.line(self._address, self._user)
        if go_on not in line.waiting:
            line.waiting[go_on] = None
            if len(line.waiting) == 1:
                line.queue(line.accounts[-1])

    async def wait_for_turn(self) -> None:
        """Return when no account is over, in the turn of the payer: for work that no client waits for."""
        turn = asyncio.Event()
        if self.must_wait(turn.set):
            try:
                await turn.wait()
            finally:
                self.leave(turn.set)

    def must_wait(self, go_on: Callable[[], None]) -> bool:
        """Return whether an account is over. Then ``go_on`` is called in its turn, as by :meth:`wait`."""
        is_over = self.is_over
        if is_over:
            self.wait(go_on)
        return is_over

    def leave(self, go_on: Callable[[], None]) -> None:
        """Give up the place of ``go_on`` in its line: it is not called any more."""
        self._time.line(self._address, self._user).waiting.pop(go_on, None)

    def charge(self, seconds: float) -> None:
        """Take ``seconds`` of processor time from each account."""
        for account in self._accounts:
            account.charge(seconds)

    def run(self, work: Callable[[], T]) -> T:
        """Call ``work`` and return its result. Its time is charged, even if it raises."""
        started_at = self._time.thread_time()
        try:
            return work()
        finally:
            self.charge(self._time.thread_time() - started_at)

    def repeat(self, step: Callable[[], bool]) -> bool:
        """Call ``step`` until it returns False, or the payer is over. Return whether it is over. The time is charged.

        The clock is read after each step, and the accounts are asked after each slice, which take longer.
        """
        may_go_on = True
        while may_go_on and not self.is_over:
            started_at = self._time.thread_time()
            try:
                while (may_go_on := step()) and self._time.thread_time() - started_at < SLICE_SECONDS:
                    pass
            finally:
                self.charge(self._time.thread_time() - started_at)
        return may_go_on

    @coroutine
    def run_steps(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Await ``work`` and return its result. The time of each of its steps is charged, and what it awaits is not."""
        step = partial(work.send, None)
        while True:
            try:
                awaited = self.run(step)
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                step = partial(work.send, (yield awaited))
            except BaseException as error:  # noqa: BLE001 - a cancellation, for instance, is for the work to handle
                step = partial(work.throw, error)

    async def run_in(self, thread: WorkThread, work: Callable[[], T]) -> T:
        """Return the result of ``work``, which runs in ``thread``. Its time there is charged.

        Raises as `WorkThread.run` does.
        """
        spent: list[float] = []

        def measured() -> T:
            started_at = self._time.thread_time()
            try:
                return work()
            finally:
                spent.append(self._time.thread_time() - started_at)

        try:
            return await thread.run(measured, self._user or self._address)
        finally:
            self.charge(sum(spent))

    async def run_in_turn(self, work: Callable[[], T]) -> T:
        """Run ``work`` at once, or when the turn of the payer comes, and charge its time. Return its result.

        Raises what ``work`` raises, and `RateLimited` if the turn comes later than a client should wait.
        """
        accounts = self._accounts
        if not any(account.is_over for account in accounts):
            return self.run(work)
        seconds = max(account.over_seconds for account in accounts)
        if seconds > MAX_WAIT_SECONDS:
            raise _taken_too_much(seconds)
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def go_on() -> None:
            if done.done():
                return  # its request has gone in this iteration
            try:
                done.set_result(self.run(work))
            except Exception as error:  # noqa: BLE001 - it is the request's to handle
                done.set_exception(error)

        self.wait(go_on)
        try:
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                return await done
        except TimeoutError:
            raise _taken_too_much(MAX_WAIT_SECONDS) from None
        finally:
            self.leave(go_on)


def _taken_too_much(seconds: float) -> RateLimited:
    message = "what you send takes too much of the server's time; send less, or more seldom"
    return RateLimited(message, limit="processor_time", retry_after=round(max(1.0, seconds), 3))


class ProcessorTime:
    """The accounts of one server process. One is kept while somebody waits for it, and until all is paid.

    Attributes:
        thread_time: Returns the processor time of the thread that calls it, in seconds.
    """

    def __init__(
        self, is_on: Callable[[], bool], monotonic: Callable[[], float] = time.monotonic,
        thread_time: Callable[[], float] = time.thread_time,
    ) -> None:  # fmt: skip
        """``is_on`` returns whether the limits are on."""
        self.thread_time = thread_time
        self._is_on = is_on
        self._monotonic = monotonic
        self._by_user: WeakValueDictionary[str, Account] = WeakValueDictionary()
        self._by_address: WeakValueDictionary[str, Account] = WeakValueDictionary()
        self._lines: WeakValueDictionary[tuple[str, str], Line] = WeakValueDictionary()

    def payer(self, address: str, user: str = "") -> Payer:
        """Return the payer for what a user sends from an address. ``user`` is "" if nobody knows who it is."""
        return Payer(self, address, user)

    def accounts(self, address: str, user: str) -> tuple[Account, Account]:
        """Return the accounts of a payer: that of its user (all without a token are one user), and of its address."""
        of_user = self._find(self._by_user, user or address, USER_SHARE)  # no user has the id of an address
        return of_user, self._find(self._by_address, address, ADDRESS_SHARE)

    def line(self, address: str, user: str) -> Line:
        """Return the line of a payer. It is kept while it waits for an account."""
        line = self._lines.get((address, user))
        if line is None:
            line = self._lines[address, user] = Line(self.accounts(address, user))
        return line

    def _find(self, known: WeakValueDictionary[str, Account], name: str, share: float) -> Account:
        account = known.get(name)
        if account is None:
            account = known[name] = Account(share, self._monotonic, self._is_on)
        return account
