"""Limits the connections of one server process, in total and per address. An IPv6 network of 64 bits is one address.

The total is the limit of open files minus a reserve for Redis, the log and the next connections. So a flood of
connections never takes the last file. If the total is reached, the server first closes the connections that have been
idle for longest. A connection without a request is idle, so a flood of such connections displaces only itself.

The bytes that all connections hold are limited, too: heads that are not whole, and requests that wait. Above
:data:`MAX_HELD_BYTES`, the connections that hold the most are closed first.

The requests of one address that run at the same time are limited, and the others wait for their turn: the event loop
serves requests in the order of their arrival, so an address that sends a hundred requests at once would let every other
client wait for all of them. Requests that run together cost less than one by one, so an address has no such limit while
it is the only one that sends requests. Streams, polls and previews take no turn: they have limits of their own. A
request gives its turn back while it waits for its body, so a slow sender does not delay the other requests of its
address.

`RefusalDelay` delays the refusals of a client that does not slow down, so a flood of refused requests costs little. A
client that waits as `Retry-After` says never meets the delay. A connection carries one request at a time, so a flood
can send only as many requests in a second as its connections allow.
"""

import math
import resource
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Protocol
from weakref import WeakValueDictionary

from stream_server.config.settings import Config
from stream_server.monitoring.incidents import LimitHits
from stream_server.runtime.fair_queue import FairQueue, Place
from stream_server.web.limits.client_address import subject_of_peer

MAX_RESERVED_FILES = 160
"""Most open files that are kept from clients: for forty connections to Redis, sockets and what is accepted next."""

EVICTED_SHARE = 50
"""The server closes a fiftieth of its connections at once, so that it does not look for idle ones at each accept."""

TOO_MANY_FROM_ADDRESS = (429, "Too Many Requests", "rate_limited", "too many connections from your address")
TOO_MANY_IN_TOTAL = (503, "Service Unavailable", "unavailable", "this server has no room for another connection")

CONNECTIONS_PER_STREAM = 2
"""Connections from one address for each stream that it may open: a page with a stream sends requests, too."""


class Refusal(NamedTuple):
    """Status, reason phrase, error code and message of the answer to a connection that the server does not serve."""

    status: int
    phrase: str
    code: str
    message: str

    def encode(self) -> bytes:
        """Return the whole HTTP response. No request has been read, so it closes the connection."""
        member, header = (',"retry_after":1', "Retry-After: 1\r\n") if self.status in {429, 503} else ("", "")
        body = f'{{"error":{{"code":"{self.code}","message":"{self.message}"{member}}}}}'
        head = (
            f"HTTP/1.1 {self.status} {self.phrase}\r\nContent-Type: application/json; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\n{header}Connection: close\r\n"
            "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
            "Cache-Control: no-store\r\n\r\n"
        )
        return (head + body).encode()


class ConnectionPlace:
    """The place of one connection in the table of connections.

    A call gives the place back; further calls do nothing. The object takes few bytes.
    """

    __slots__ = ("_address", "_table")

    def __init__(self, table: "ConnectionTable", address: str) -> None:
        self._table: ConnectionTable | None = table
        self._address = address

    def __call__(self) -> None:
        """Give the place back."""
        if self._table is not None:
            self._table.release(self._address)
            self._table = None


class ConnectionTable:
    """Counts the open connections of a server process, streams included.

    Attributes:
        evict_idle: Closes up to the given number of connections that are idle or take no answer, the oldest first.
            Set by the HTTP server.
        evicted: Number of connections that were closed to make room.
        refused: Number of connections that were refused.
        hits: The limits that were met.
    """

    def __init__(self, config: Config, is_trusted_proxy: Callable[[str], bool], hits: LimitHits | None = None) -> None:
        """``is_trusted_proxy`` says whether an address is that of a trusted proxy, which has no limit of its own."""
        self._config = config
        self._is_trusted_proxy = is_trusted_proxy
        self.hits = hits or LimitHits()
        self._count_by_address: Counter[str] = Counter()
        self._count = 0
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._room = max(1, files - min(MAX_RESERVED_FILES, files // 2))
        self.evict_idle: Callable[[int], None] = lambda _: None
        self.evicted = 0
        self.refused = 0

    def __len__(self) -> int:
        return self._count

    @property
    def maximum(self) -> int:
        """Most connections that the process holds."""
        return min(self._room, self._config.connections_max or self._room)

    def take(self, address: str) -> Refusal | None:
        """Count a new connection from ``address``. If there is no room for it, count nothing and return the refusal.

        ``address`` is the IP address of the peer, or "" for a unix socket.
        """
        maximum = self.maximum
        if self._count >= maximum:
            before = self._count
            self.evict_idle(max(1, maximum // EVICTED_SHARE))
            self.evicted += before - self._count
        refusal = self._reason_to_refuse(address, maximum)
        if refusal is not None:
            self.refused += 1
            self.hits.add("connections_per_address" if refusal.status == 429 else "connections_max")
            return refusal
        self._count += 1
        self._count_by_address[subject_of_peer(address)] += 1
        return None

    def release(self, address: str) -> None:
        """Forget a connection that was taken and has ended."""
        self._count -= 1
        subject = subject_of_peer(address)
        self._count_by_address[subject] -= 1
        if not self._count_by_address[subject]:
            del self._count_by_address[subject]

    def _reason_to_refuse(self, address: str, maximum: int) -> Refusal | None:
        if self._count >= maximum:
            return Refusal(*TOO_MANY_IN_TOTAL)
        if not address:
            return None  # a unix socket, which only this machine's proxy can open
        most = min(CONNECTIONS_PER_STREAM * self._config.streams_per_address or maximum, max(1, maximum // 2))
        if self._config.limits != "off" and self._count_by_address[subject_of_peer(address)] >= most:
            return None if self._is_trusted_proxy(address) else Refusal(*TOO_MANY_FROM_ADDRESS)
        return None


def raise_open_files_limit() -> None:
    """Raise the limit of open files of this process to the greatest that the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


MAX_HEAD_BYTES = 131_072
"""Longest request head in bytes: the longest request line and the longest header field, with as much again."""

MAX_HELD_BYTES = 16 * 2**20
"""Most bytes of heads that are not whole, or wait behind a running request, in one process."""

HELD_SHARE_AFTER_EVICTION = 0.875
"""Share of :data:`MAX_HELD_BYTES` down to which connections are closed. So a flood does not sort them each time."""

HEAD_TOO_LARGE = Refusal(413, "Content Too Large", "too_large", "the request line and headers are too long")
NO_HTTP = Refusal(400, "Bad Request", "malformed_body", "the request is not valid HTTP")
NO_ROOM_FOR_HEAD = Refusal(503, "Service Unavailable", "unavailable", "too many unfinished requests")


class Holder(Protocol):
    """A connection that keeps the bytes of an unfinished request head in memory."""

    def refuse(self, refusal: Refusal) -> None:
        """Answer with ``refusal`` if no other answer is on its way, and close the connection."""


class HeldHeads:
    """Counts the bytes that the connections of a process hold.

    Attributes:
        total: The number of these bytes.
    """

    def __init__(self, hits: LimitHits) -> None:
        """``hits`` counts each connection that is closed because all hold too much and it holds the most."""
        self._hits = hits
        self._sizes: dict[Holder, int] = {}
        self.total = 0

    def note(self, connection: Holder, size: int) -> None:
        """Note that ``connection`` holds ``size`` bytes now. Close the connections that hold the most if need be."""
        self.total += size - self._sizes.pop(connection, 0)
        if size:
            self._sizes[connection] = size
            if self.total > MAX_HELD_BYTES:
                self._make_room()

    def _make_room(self) -> None:
        for connection in sorted(self._sizes, key=self._sizes.__getitem__, reverse=True):
            if self.total <= MAX_HELD_BYTES * HELD_SHARE_AFTER_EVICTION:
                return
            self._hits.add("unfinished_heads")
            connection.refuse(NO_ROOM_FOR_HEAD)


MAX_RUNNING = 4
"""Most requests of one address that run at the same time in one process, while other addresses send requests too."""

SHARED_SECONDS = 1.0
"""Seconds that the limit lasts after another address has sent a request."""

MAX_WAIT_SECONDS = 2.0
"""Longest wait of a request for its turn."""


BUSY = "too many requests from your address are waiting"


class Turns:
    """Limits how many requests of one address run at the same time while other addresses send requests, too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: WeakValueDictionary[str, FairQueue] = WeakValueDictionary()  # each lives as long as its places
        self._latest_address = ""
        self._shared_until = -math.inf

    def turn(self, address: str) -> Place:
        """Return a context for a request that an address has sent. Entering it waits until the request may run.

        It raises `Unavailable` after :data:`MAX_WAIT_SECONDS`.
        """
        if address != self._latest_address:
            if self._latest_address:
                self._shared_until = self._clock() + SHARED_SECONDS
            self._latest_address = address
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = FairQueue(
                MAX_RUNNING, BUSY, MAX_WAIT_SECONDS, heeds_failures=False, has_more=self._is_alone
            )
        return Place(line)

    def _is_alone(self) -> bool:
        """Return whether only one address has sent requests lately, which is not limited then."""
        return self._clock() >= self._shared_until


PROMPT_REFUSALS = 10
"""Refusals of one address in a second that are answered at once."""

DELAY_SECONDS = 0.5
"""Seconds that each further refusal in this second waits."""


class RefusalDelay:
    """Counts the refusals of each address in the current second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._second = 0
        self._counts: Counter[str] = Counter()

    def seconds(self, address: str) -> float:
        """Count one refusal of an address. Return the number of seconds by which to delay the answer."""
        second = int(self._clock())
        if second != self._second:
            self._second = second
            self._counts.clear()
        self._counts[address] += 1
        return DELAY_SECONDS if self._counts[address] > PROMPT_REFUSALS else 0.0
