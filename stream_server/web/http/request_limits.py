"""Applies the limits of a route to a request, and makes the `RateLimit` headers.

A token with the scope `admin` has no limits but that of processor time. A token with the scope `ingest`, which only the
command line issues, has none for writes: it is for programs that write for many users or at once.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import lru_cache
from hashlib import sha256

from aiohttp import hdrs, web

from stream_server.config.settings import Config, parse_limits
from stream_server.errors import RateLimited, Unavailable
from stream_server.monitoring.incidents import LimitHits
from stream_server.runtime.fair_queue import FairQueue
from stream_server.security.claims import Reader
from stream_server.store.log.retention import bound_log
from stream_server.store.rate_counters import RateCounters
from stream_server.web.http.app_keys import CLAIMS, HUB, OPENING, SHUTDOWN, TURN, WAIVED
from stream_server.web.http.body import MAX_BODY_BYTES, declared_length
from stream_server.web.http.usual_request import hold_slot
from stream_server.web.limits.client_address import TrustedProxies
from stream_server.web.limits.connections import ConnectionTable, RefusalDelay, Turns
from stream_server.web.limits.processor_time import Payer, ProcessorTime
from stream_server.web.limits.rate_limits import (
    BYTE_LIMITS,
    FOLLOWS,
    LOG_BYTES,
    STATUSES,
    WRITE_BYTES,
    WRITES,
    Allowance,
    RateLimit,
    RateLimiter,
    Subject,
)
from stream_server.web.route import Request

ALLOWANCE = web.RequestKey("allowance", Allowance)
"""The rest of the tightest limit of the request, for the ``RateLimit`` headers. Absent if no limit applies."""

ENTRY_BYTES = 512
"""Bytes that each write counts beside its body: for what Redis keeps of it, and under its key."""

WRITE_BYTES_SHARE = 512
"""What one user's writes of an hour leave in Redis may be one of this many parts of its memory."""

LOG_BYTES_SHARE, MIN_LOG_BYTES = 8, 2 * 2**20
"""One user may fill one of this many parts of the log in an hour, or so many bytes if that is more.

With the least number, an honest user can post or like for some minutes as fast as the other limits allow. So one user
can push others' events out of a log below 2 MiB.
"""

MAX_OPENINGS = 128
"""Most streams that open at the same time in one process and ask Redis something. Redis answers so many in time."""

STREAM_RETRY_SECONDS = 10.0
"""Seconds after which a client may try again to open a stream that had no room."""

MAX_UNPROVEN_OF_ADDRESS, MAX_UNPROVEN = 32, 1024
"""Most WebSockets and forms of v1.1 of one address, and in all, whose token has not come yet.

Such a WebSocket takes about 8 KiB, and half a form up to four times `MAX_BODY_BYTES`.
"""

UNLIMITED_SCOPE, INGEST_SCOPE = "admin", "ingest"
INGEST_LIMITS = (*BYTE_LIMITS, WRITES, STATUSES, FOLLOWS)
"""Limits that do not apply to a token with the scope `ingest`."""

LIMITS: "web.AppKey[RequestLimits]" = web.AppKey("limits")
"""The limits of this server process."""


class Running:
    """Counts the requests of one kind that run, by user.

    Attributes:
        counts: The number of those of each user.
        maximum: Most of them for one user.
        noun: What is counted, in the plural.
    """

    def __init__(self, maximum: int, noun: str) -> None:
        self.maximum = maximum
        self.noun = noun
        self.counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return self.counts.total()


class StreamSlot:
    """One of the limited number of open streams of an address. Each stream has such an object, so it takes few bytes.

    A call gives the slot back. As a context manager, it is the slot of one running request of an address or a user.
    ``address`` is the subject of the limit: an address or a user. ``token`` is the subject of the limit of a reader
    token, counted beside it, or "". ``release`` gives the slot of the connection back. It is set when the stream takes
    the connection over; a request has none.
    """

    __slots__ = ("_streams", "address", "release", "token")

    def __init__(self, streams: Counter[str], address: str, token: str = "") -> None:
        streams[address] += 1
        self._streams: Counter[str] | None = streams
        self.address = address
        self.token = ""
        self.release: Callable[[], None] | None = None
        if token:
            self.count_for(token)

    def __enter__(self) -> None:
        """Do nothing: the slot is held since it was made."""

    def __exit__(self, *_: object) -> None:
        """Give the slot back."""
        self()

    def count_for(self, token: str) -> None:
        """Count the stream for ``token`` instead of the token before. "" counts for none, and so does an ended one."""
        if self._streams is not None:
            for subject, by in ((token, 1), (self.token, -1)):
                self._streams[subject] += by
                if not subject or not self._streams[subject]:
                    del self._streams[subject]
            self.token = token

    def __call__(self) -> None:
        """Give back the stream's slot and, if ``release`` is set, the connection's. A second call does nothing."""
        if self.token:
            self.count_for("")
        streams, self._streams = self._streams, None
        if streams is None:
            return
        streams[self.address] -= 1
        if not streams[self.address]:
            del streams[self.address]
        if self.release is not None:
            self.release()


class RequestLimits:
    """The limits of one server process, applied to requests.

    Attributes:
        previews: The running previews, of which a user has one at a time.
        polls: The waiting long polls.
        ingests: The running ingests.
        webhook_tests: The requests that wait for an endpoint.
        connections: The open connections.
        streams: The open streams by address, and those of a reader token that limits them, by ``token <its id>``.
        unproven: The WebSockets and forms by address whose token has not come yet.
        time: The processor time of users and addresses.
        turns: The requests of each address that run or wait for their turn.
        refusal_delay: Counts the refusals of each address in this second.
        openings: The streams that open and ask Redis something.
        proxies: The proxies that are believed when they name a client's address.
        hits: The limits that were met.
        redis_bytes: Returns the memory that Redis may use, 0 if it is not known.
    """

    def __init__(self, config: Config, counters: RateCounters, redis_bytes: Callable[[], int] = int) -> None:
        """Raises `InvalidSetting` if ``trusted_proxies`` or ``forwarded_header`` is invalid."""
        self._config = config
        self.hits = LimitHits()
        self.redis_bytes = redis_bytes
        self._limiter = RateLimiter(counters)
        self.proxies = TrustedProxies(config.trusted_proxies, config.forwarded_header)
        self.previews = Running(1, "preview")
        self.polls = Running(32, "long polls")  # a client needs one for each filter
        self.ingests = Running(8, "ingests")  # each holds two batches of lines in memory
        self.webhook_tests = Running(4, "challenges and tests of webhooks")
        self.streams: Counter[str] = Counter()
        self.unproven: Counter[str] = Counter()
        self.time = ProcessorTime(lambda: self.are_on)
        self.turns = Turns()
        self.refusal_delay = RefusalDelay()
        self.openings = FairQueue(MAX_OPENINGS, "too many streams are being opened; try again")
        self.connections = ConnectionTable(config, self.proxies.is_trusted, self.hits)

    @property
    def are_on(self) -> bool:
        """Whether the limits are on. A reload may change it."""
        return self._config.limits != "off"

    def running(self, request: Request, running: Running) -> "StreamSlot":
        """Count a request of the kind ``running``. Return its slot. Raises `RateLimited` if its user has too many."""
        user = request[CLAIMS].sub or self.address_of(request)  # as in `_subject`
        if self.are_on and running.counts[user] >= running.maximum:
            message = f"you have {running.maximum} {running.noun} at the same time already"
            raise RateLimited(message, limit=f"concurrent {running.noun}", retry_after=1.0)
        return StreamSlot(running.counts, user)

    def turn(self, request: Request) -> AbstractAsyncContextManager[object]:
        """Return a context that holds one of the turns of the client's address. Entering it may raise `Unavailable`."""
        if not self.are_on:
            return nullcontext()
        request[TURN] = turn = self.turns.turn(self.address_of(request))
        return turn

    async def delay_refusal(self, request: Request) -> None:
        """Wait before the refusal of a client that was refused again and again in this second."""
        seconds = self.refusal_delay.seconds(self.address_of(request))
        if seconds:
            await hold_slot(request)
            if OPENING in request:
                request[OPENING].give_back()  # others need not wait for this one
            await asyncio.sleep(seconds)

    def take_stream(self, request: Request) -> "StreamSlot":
        """Count a stream that opens. Return its slot, which counts its end.

        Raises `RateLimited` if the client's address, or its reader token, has as many streams as it may have.
        """
        address = self.address_of(request)
        of_address = self._config.streams_per_address
        if of_address and self.streams[address] >= of_address and self.are_on:
            message = f"at most {of_address} open streams from one address"
            raise RateLimited(message, limit="streams_per_address", retry_after=STREAM_RETRY_SECONDS)
        claims = request[CLAIMS]
        token = "" if claims.reader is None else self.limited_token(claims.jti, claims.reader)
        return StreamSlot(self.streams, address, token)

    def limited_token(self, jti: str, reader: Reader, held: str = "") -> str:
        """Return the subject that counts the streams of a reader token, "" if the token does not limit them.

        Raises `RateLimited` if the limit is reached, unless the stream is counted there already: ``held``.
        """
        token = f"token {jti}" if reader.max_streams else ""
        if token != held and self.streams[token] >= reader.max_streams:
            message = f"at most {reader.max_streams} open streams with this token"
            raise RateLimited(message, limit="max_streams", retry_after=STREAM_RETRY_SECONDS)
        return token

    def take_unproven(self, request: Request) -> "StreamSlot":
        """Count a WebSocket, or a form of v1.1, whose token has not come yet. Return its slot.

        Raises `RateLimited` if there are too many of them.
        """
        address = self.address_of(request)
        has_room = self.unproven[address] < MAX_UNPROVEN_OF_ADDRESS and self.unproven.total() < MAX_UNPROVEN
        if self.are_on and not has_room:
            message = "too many connections have not sent their token yet"
            raise RateLimited(message, limit="unproven_connections", retry_after=STREAM_RETRY_SECONDS)
        return StreamSlot(self.unproven, address)

    def payer(self, request: Request) -> Payer:
        """Return the user and the address to whom a request is charged that takes more processor time than usual."""
        return self.time.payer(self.address_of(request), request[CLAIMS].sub if CLAIMS in request else "")

    def address_of(self, request: Request) -> str:
        """Return the client's address as subject of a limit: an IPv4 address or an IPv6 network."""
        return self.proxies.request_address(request.connection.address, request.headers)

    async def check(self, request: Request, limits: tuple[RateLimit, ...], *, is_for_safety: bool = False) -> None:
        """Count the request. Raises `RateLimited` if one of ``limits`` is reached.

        With ``is_for_safety``, a limit of bytes counts the request, but does not refuse it: its refusal is `WAIVED`.
        """
        maxima, scopes = self.maxima(), request[CLAIMS].scopes if CLAIMS in request else ()
        if UNLIMITED_SCOPE in scopes:
            return
        for limit in limits:
            maximum = maxima[limit.name]
            if not maximum or (INGEST_SCOPE in scopes and limit in INGEST_LIMITS):
                continue
            use = limit, self._subject(request, limit), maximum, _amount(request, limit)
            allowance = self._limiter.use_known(*use) or await self._ask(request, *use)
            if is_for_safety and not allowance.admitted and limit in BYTE_LIMITS:
                request[WAIVED] = too_many(limit, allowance)
                allowance = self._limiter.charge(*use)
            self._note(request, limit, allowance)

    def charge_appended(self, request: Request, appended_bytes: int) -> None:
        """Charge a user for the bytes that a request has appended to the log, of which Redis may keep a copy."""
        for limit in BYTE_LIMITS if request.route.keeps_appended else (LOG_BYTES,):
            maximum = self.maxima()[limit.name]
            if maximum and CLAIMS in request and request[CLAIMS].scopes.isdisjoint((UNLIMITED_SCOPE, INGEST_SCOPE)):
                subject = self._subject(request, limit)
                self._note(request, limit, self._limiter.charge(limit, subject, maximum, appended_bytes))

    async def use(self, request: Request, limit: RateLimit, amount: int = 1, *, login: str = "") -> None:
        """Count ``amount`` uses of one limit. Raises `RateLimited` if it is reached.

        ``login`` is the login or e-mail address for a limit of log-ins.
        """
        maximum = self.maxima()[limit.name]
        if maximum:
            use = limit, self._subject(request, limit, login), maximum, amount
            self._note(request, limit, self._limiter.use_known(*use) or await self._ask(request, *use))

    async def use_without_request(self, limit: RateLimit, subject: str, scopes: Collection[str] = ()) -> None:
        """Count one use of a limit by an operation on an open WebSocket. Raises `RateLimited` if it is reached."""
        maximum = self.maxima()[limit.name]
        if maximum and UNLIMITED_SCOPE not in scopes:
            allowance = await self._limiter.use(limit, subject, maximum)
            if not allowance.admitted:
                raise too_many(limit, allowance)

    async def _ask(self, request: Request, limit: RateLimit, subject: str, maximum: int, amount: int) -> Allowance:
        await hold_slot(request)
        return await self._limiter.use(limit, subject, maximum, amount)

    def _note(self, request: Request, limit: RateLimit, allowance: Allowance) -> None:
        """Keep the rest of the tightest limit of the request. Raises `RateLimited` if this limit is reached."""
        earlier = request.get(ALLOWANCE)
        if (
            earlier is None
            or not allowance.admitted
            or allowance.remaining * earlier.limit < earlier.remaining * allowance.limit  # a smaller share is left
        ):
            request[ALLOWANCE] = allowance
        if not allowance.admitted:
            raise too_many(limit, allowance)

    def maxima(self) -> Mapping[str, int]:
        """Return how many uses each limit admits in a window, by its name. 0 stands for any number."""
        return _maxima_of(self._config.limits, self._config.log_max_bytes, self.redis_bytes())

    def give_back(self, request: Request, limit: RateLimit, *, login: str = "") -> None:
        """Take back one use of a limit of log-ins: the log-in was successful."""
        self._limiter.give_back(limit, self._subject(request, limit, login))

    def _subject(self, request: Request, limit: RateLimit, login: str = "") -> str:
        if limit.subject is Subject.USER:
            return request[CLAIMS].sub or self.address_of(request)  # all visitors share a reader token, without a user
        if limit.subject is Subject.ADDRESS:
            return self.address_of(request)
        account = sha256(login.lower().encode()).hexdigest()[:32]
        return account if limit.subject is Subject.LOGIN else f"{account}@{self.address_of(request)}"


@lru_cache(maxsize=8)
def _maxima_of(limits: str, log_max_bytes: int, redis_bytes: int) -> Mapping[str, int]:
    """Return how many uses each limit admits in a window, by its name. 0 stands for any number.

    ``limits`` is the setting. Limits of bytes admit fewer if Redis, which may use ``redis_bytes``, or the log is small.
    """
    maxima = dict(parse_limits(limits))
    if written := maxima[WRITE_BYTES.name]:
        maxima[WRITE_BYTES.name] = min(written, redis_bytes // WRITE_BYTES_SHARE or written)
    if (logged := maxima[LOG_BYTES.name]) and (log_bytes := bound_log(log_max_bytes, redis_bytes)):
        maxima[LOG_BYTES.name] = min(logged, max(log_bytes // LOG_BYTES_SHARE, MIN_LOG_BYTES))
    return maxima


def reject_when_draining(request: Request) -> None:
    """Raise Unavailable for a new stream or long poll while the server shuts down, because shutdown would end it."""
    if request.app[HUB].is_stopping:
        message = "this server is shutting down; retry, another server will answer"
        raise Unavailable(message, retry_after=request.app[SHUTDOWN].next_retry_after())


def too_many(limit: RateLimit, allowance: Allowance) -> RateLimited:
    """Return the error for a limit that is reached. It names the limit and the seconds until its window ends."""
    seconds, window = max(1.0, allowance.ends_at - time.time()), limit.window_seconds
    duration = {60: "a minute", 3600: "an hour", 86_400: "a day"}.get(window, f"{window // 60} minutes")
    message = f"too many {limit.noun}: at most {allowance.limit} in {duration}"
    return RateLimited(message, limit=limit.name, retry_after=round(seconds, 3))


def is_counted(request: Request) -> bool:
    """Return whether a limit has counted the request. A request that is handled anew would be counted twice."""
    return ALLOWANCE in request


def limit_headers(request: Request) -> dict[str, str]:
    """Return the headers about the tightest limit that a request has met, as the protocol of its route names them."""
    dialect = request.route.dialect
    return (rate_limit_headers if dialect is None else dialect.rate_limit_headers)(request[ALLOWANCE])


def rate_limit_headers(allowance: Allowance) -> dict[str, str]:
    """Return the headers with the limit, the remaining uses, and the seconds until all uses are free again."""
    return {
        "RateLimit-Limit": str(allowance.limit),
        "RateLimit-Remaining": str(allowance.remaining),
        "RateLimit-Reset": str(max(0, math.ceil(allowance.ends_at - time.time()))),
    }


def _amount(request: Request, limit: RateLimit) -> int:
    """Return the uses that a request counts before it runs.

    Of the bytes of writes these are `ENTRY_BYTES` and its body. A body without Content-Length counts as the largest.
    Nobody knows yet what it appends to the log, but a user who owes bytes of the log is refused.
    """
    if limit is not WRITE_BYTES:
        return 0 if limit is LOG_BYTES else 1
    length = declared_length(request.headers)
    if length is None:
        length = MAX_BODY_BYTES if hdrs.TRANSFER_ENCODING in request.headers else 0
    return ENTRY_BYTES + min(length, MAX_BODY_BYTES)
