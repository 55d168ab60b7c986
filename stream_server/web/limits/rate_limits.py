"""The table of rate limits. The setting ``limits`` has their numbers; a limit of 0 means that there is no limit.

A `RateLimiter` counts the uses. Most uses are counted in memory only, the others in Redis.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from stream_server.errors import Unavailable
from stream_server.store.rate_counters import RateCount

MINUTE, QUARTER_HOUR, HOUR, DAY = 60, 900, 3600, 86_400
"""Lengths of windows in seconds."""


class Subject(Enum):
    """The kind of subject whose uses a limit counts together."""

    USER = "user"
    ADDRESS = "address"
    LOGIN_AND_ADDRESS = "login and address"
    LOGIN = "login"


class RateLimit(NamedTuple):
    """One row of the table.

    Attributes:
        name: Name of the limit in the setting ``limits``, of its counter and in the metrics.
        window_seconds: Length of the window, which begins with the first use.
        noun: What the limit counts, in the plural, for the message of a refusal.
    """

    name: str
    window_seconds: int
    subject: Subject
    noun: str


READS = RateLimit("reads", MINUTE, Subject.USER, "reads")
WRITES = RateLimit("writes", MINUTE, Subject.USER, "writes")
STATUSES = RateLimit("statuses", MINUTE, Subject.USER, "statuses, comments and messages")
WRITE_BYTES = RateLimit("write_bytes", HOUR, Subject.USER, "bytes of writes")
LOG_BYTES = RateLimit("log_bytes", HOUR, Subject.USER, "bytes of events on the log")
FOLLOWS = RateLimit("follows", DAY, Subject.USER, "follows, and people added to lists and groups")
REPORTS = RateLimit("reports", DAY, Subject.USER, "reports")
TALKS = RateLimit("talks", DAY, Subject.USER, "new talks")
CONNECTS = RateLimit("connects", QUARTER_HOUR, Subject.USER, "connects to streams")
DIALECT_CONNECTS = RateLimit("dialect_connects", QUARTER_HOUR, Subject.USER, "connects to this stream")
POLLS = RateLimit("polls", MINUTE, Subject.USER, "polls")
TICKETS = RateLimit("tickets", MINUTE, Subject.USER, "tickets")
TRIALS = RateLimit("rule_trials", MINUTE, Subject.USER, "explanations, previews and counts of rules, and searches")
WEBHOOK_TESTS = RateLimit("webhook_tests", MINUTE, Subject.USER, "challenges and tests of webhooks")
LOG_INS = RateLimit("log_ins", QUARTER_HOUR, Subject.LOGIN_AND_ADDRESS, "log-ins of this account")
LOG_INS_OF_ACCOUNT = RateLimit("log_ins_of_account", QUARTER_HOUR, Subject.LOGIN, "log-ins of this account")
LOG_INS_OF_ADDRESS = RateLimit("log_ins_of_address", QUARTER_HOUR, Subject.ADDRESS, "log-ins from this address")
SIGN_UPS = RateLimit("sign_ups", HOUR, Subject.ADDRESS, "sign-ups from this address")
LOOKUPS = RateLimit("lookups", MINUTE, Subject.ADDRESS, "questions for free names from this address")
ANONYMOUS = RateLimit("anonymous", MINUTE, Subject.ADDRESS, "requests without a valid token from this address")
FILES = RateLimit("files", MINUTE, Subject.ADDRESS, "files of the console from this address")

RATE_LIMITS: tuple[RateLimit, ...] = (
    READS, WRITES, WRITE_BYTES, LOG_BYTES, STATUSES, FOLLOWS, REPORTS, TALKS, CONNECTS, DIALECT_CONNECTS,
    POLLS, TICKETS, TRIALS, WEBHOOK_TESTS, LOG_INS, LOG_INS_OF_ACCOUNT, LOG_INS_OF_ADDRESS, SIGN_UPS, LOOKUPS,
    ANONYMOUS, FILES,
)  # fmt: skip
"""All rate limits."""

WRITE_LIMITS = (WRITES, WRITE_BYTES, LOG_BYTES)
"""The limits of each write with a token. Some routes have one more."""

BYTE_LIMITS = (WRITE_BYTES, LOG_BYTES)
"""The limits of bytes, which never refuse a write for somebody's safety."""


PORTION = 20
"""A process buys this part of a limit at once: a twentieth. Limits below 20 are bought one by one, so they are exact.

As much as one portion may be used before the process asks Redis at all.
"""

MAX_WINDOWS = 20_000
"""Number of windows that a process remembers, about 6 MB. A forgotten window is read again from Redis."""


class Counters(Protocol):
    """The shared counters, see `RateCounters`."""

    async def add(self, limit_name: str, subject: str, amount: int, window_seconds: int) -> RateCount: ...


class Allowance(NamedTuple):
    """Whether a use of a limit is admitted, and how many more are until ``ends_at`` (Unix time)."""

    admitted: bool
    limit: int
    remaining: int
    ends_at: float


@dataclass(slots=True)
class _Window:
    """The uses of one limit by one subject in one window.

    Attributes:
        balance: Uses that were bought from the shared counter and are not used yet. Negative: used, not reported yet.
        shared_count: The shared counter at the last report.
        is_exhausted: Whether the shared counter is above the limit. Then no use is admitted until the window ends.
        lock: Held during a report, so that waiting uses do not buy twice.
    """

    ends_at: float
    balance: int = 0
    shared_count: int = 0
    is_exhausted: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def admits(self, amount: int, maximum: int) -> bool:
        """Return whether ``amount`` uses fit into the bought uses and those that may stay unreported."""
        unreported = 0 if self.is_exhausted else min(maximum // PORTION, maximum - self.shared_count)
        return self.balance + unreported >= amount


class RateLimiter:
    """Counts uses of limits by subjects such as users and addresses, for one server process."""

    def __init__(self, counters: Counters, unix_time: Callable[[], float] = time.time) -> None:
        self._counters = counters
        self._unix_time = unix_time
        self._windows: dict[tuple[str, str], _Window] = {}

    def use_known(self, limit: RateLimit, subject: str, maximum: int, amount: int = 1) -> Allowance | None:
        """Count ``amount`` uses as :meth:`use` does, if this needs no question to Redis. Otherwise return None."""
        window = self._window(limit, subject)
        admitted = window.admits(amount, maximum)
        if admitted:
            window.balance -= amount
        elif not window.is_exhausted:
            return None
        return self._allowance(window, maximum, admitted=admitted)

    async def use(self, limit: RateLimit, subject: str, maximum: int, amount: int = 1) -> Allowance:
        """Count ``amount`` uses, and return whether they are admitted: all of them, or none.

        If Redis does not answer, the uses are admitted, because a request that needs Redis fails anyway. In a cluster
        the node with the counter may be away alone: then its subjects are not limited until it is back.
        """
        known = self.use_known(limit, subject, maximum, amount)
        if known is not None:
            return known
        window = self._window(limit, subject)
        async with window.lock:  # another request may buy meanwhile
            if not window.admits(amount, maximum) and not window.is_exhausted:
                await self._buy(window, limit, subject, maximum, amount)
        admitted = window.admits(amount, maximum)
        if admitted:
            window.balance -= amount
        return self._allowance(window, maximum, admitted=admitted)

    def charge(self, limit: RateLimit, subject: str, maximum: int, amount: int) -> Allowance:
        """Count ``amount`` uses that were made already, also beyond the limit. Later uses pay for them.

        A write passes the check before its bytes are known. So those that run at the same time may exceed the limit
        together, by what they append. What a user owes is forgotten when the window ends. It is also forgotten if Redis
        does not answer when it would be reported.
        """
        window = self._window(limit, subject)
        window.balance -= amount
        return self._allowance(window, maximum, admitted=True)

    def give_back(self, limit: RateLimit, subject: str) -> None:
        """Take back a use that should not count, such as a log-in with the right password."""
        window = self._windows.get((limit.name, subject))
        if window is not None and window.ends_at > self._unix_time():
            window.balance += 1

    async def _buy(self, window: _Window, limit: RateLimit, subject: str, maximum: int, amount: int) -> None:
        """Report the counted uses, and buy ``amount`` uses and one portion more from the shared counter."""
        bought = amount + maximum // PORTION - window.balance
        try:
            count = await self._counters.add(limit.name, subject, bought, limit.window_seconds)
        except Unavailable:
            window.balance = max(window.balance, amount)
            return
        window.shared_count, window.ends_at = count.value, count.ends_at
        window.balance += bought
        if count.value >= maximum:
            window.balance -= count.value - maximum
            window.is_exhausted = True

    def _allowance(self, window: _Window, maximum: int, *, admitted: bool) -> Allowance:
        remaining = max(0, maximum - min(window.shared_count, maximum) + min(window.balance, maximum))
        return Allowance(admitted, maximum, remaining, window.ends_at)

    def _window(self, limit: RateLimit, subject: str) -> _Window:
        key, now = (limit.name, subject), self._unix_time()
        window = self._windows.get(key)
        if window is None or window.ends_at <= now:
            if len(self._windows) >= MAX_WINDOWS:  # forget those that have ended and, if need be, the oldest half
                known = {each: kept for each, kept in self._windows.items() if kept.ends_at > now}
                self._windows = (
                    known if len(known) < MAX_WINDOWS // 2 else dict(list(known.items())[MAX_WINDOWS // 2 :])
                )
            window = self._windows[key] = _Window(now + limit.window_seconds)
        return window
