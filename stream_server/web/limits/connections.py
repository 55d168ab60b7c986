"""Limits the connections of one server process, in total and per address. An IPv6 network of 64 bits is one address.

The total is the limit of open files minus a reserve for Redis, the log and the next connections. So a flood of
connections never takes the last file. If the total is reached, the server first closes the connections that have been
idle for longest. A connection without a request is idle, so a flood of such connections displaces only itself. When
streams have all slots, a few more connections are accepted for the requests of the operator (`OPERATOR_PATHS`):
whatever watches the server must not take a full one for a dead one, and end its streams.

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

import logging
import math
import resource
import time
from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol
from weakref import WeakValueDictionary

from stream_server.config.settings import Config
from stream_server.monitoring.incidents import LimitHits
from stream_server.runtime.fair_queue import FairQueue, Slot
from stream_server.web.http.responses import JSON_HEADERS, date_header
from stream_server.web.limits.client_address import subject_of_peer

logger = logging.getLogger(__name__)

OPERATOR_PLACES = 16
"""Connections beyond the total that may ask for :data:`OPERATOR_PATHS` alone."""

OPERATOR_PATHS = ("/healthz", "/readyz", "/metrics")
"""Paths that are served in each state of the server."""

OPERATOR_BEGINS = tuple(
    f"{method} {path}{end}".encode() for method in ("GET", "HEAD") for path in OPERATOR_PATHS for end in " ?"
)
"""How a request head for one of these paths begins."""


class Refusal(NamedTuple):
    """Status, reason phrase, error code and message of the answer to a connection that the server does not serve."""

    status: int
    phrase: str
    code: str
    message: str

    def encode(self) -> bytes:
        """Return the bytes of the HTTP response. It says that the server closes the connection."""
        member, header = (',"retry_after":1', "Retry-After: 1\r\n") if self.status in {429, 503} else ("", "")
        if self.status == 405:
            header = "Allow: \r\n"  # no method is allowed on such a target (RFC 9110 §10.2.1)
        body = f'{{"error":{{"code":"{self.code}","message":"{self.message}"{member}}}}}'
        fields = "".join([f"{name}: {value}\r\n" for name, value in JSON_HEADERS.items()])
        head = f"HTTP/1.1 {self.status} {self.phrase}\r\n{fields}{header}Content-Length: {len(body)}\r\n"
        head += f"Date: {date_header()}\r\nConnection: close\r\n\r\n"
        return (head + body).encode()


HEAD_TOO_LARGE = Refusal(413, "Content Too Large", "too_large", "the request line and headers are too long")
NO_HTTP = Refusal(400, "Bad Request", "malformed_body", "the request is not valid HTTP")
NO_CONNECT = Refusal(405, "Method Not Allowed", "method_not_allowed", "this server is no proxy: CONNECT is not served")
NO_ROOM_FOR_ADDRESS = Refusal(429, "Too Many Requests", "rate_limited", "too many connections from your address")
NO_ROOM_FOR_CONNECTION = Refusal(
    503, "Service Unavailable", "unavailable", "this server has no room for another connection"
)
NO_ROOM_FOR_REQUEST = Refusal(503, "Service Unavailable", "unavailable", "too many unfinished requests")


class SlotKind(Enum):
    """Which slot of the table a connection has."""

    FULL = "one for all requests"
    OPERATOR = "one for requests to OPERATOR_PATHS alone, because the others are taken"
    NONE = "none: it was refused, or it has ended, or a stream has its slot"


class Admission(NamedTuple):
    """The slot of a connection, and why it has not a full one.

    Attributes:
        slot: Which slot it has.
        refusal: What answers a request for which it has no slot. None with a full slot.
    """

    slot: SlotKind
    refusal: Refusal | None


ADMITTED = Admission(SlotKind.FULL, None)
NO_SLOT = Admission(SlotKind.NONE, None)


class ConnectionSlot:
    """The slot of one connection in the table of connections.

    A call gives the slot back; further calls do nothing. The object takes few bytes.
    """

    __slots__ = ("_address", "_table")

    def __init__(self, table: "ConnectionTable", address: str) -> None:
        self._table: ConnectionTable | None = table
        self._address = address

    def __call__(self) -> None:
        """Give the slot back."""
        if self._table is not None:
            self._table.release(self._address)
            self._table = None


class EvictIdle(Protocol):
    """Closes up to ``count`` connections that are idle or take no answer, the oldest first.

    These are connections of the operator if ``of_operator``, else others.
    """

    def __call__(self, count: int, /, *, of_operator: bool) -> None: ...


class ConnectionTable:
    """Counts the open connections of a server process, streams included.

    Attributes:
        evict_idle: Makes room. Set by the HTTP server.
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
        self._count = self._operator_count = 0
        self._is_full = False  # from a refusal until slots are free again
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        # The others are kept from clients: for forty connections to Redis, sockets and what is accepted next.
        self._room = max(1, files - min(160, files // 2))
        self.evict_idle: EvictIdle = lambda _, *, of_operator: None  # noqa: ARG005 - until the HTTP server is there
        self.evicted = 0
        self.refused = 0

    def __len__(self) -> int:
        return self._count

    @property
    def maximum(self) -> int:
        """Most connections that the process holds."""
        return min(self._room, self._config.connections_max or self._room)

    def take(self, address: str) -> Admission:
        """Count a new connection from ``address``, if it is accepted.

        ``address`` is the IP address of the peer, or "" for a unix socket.
        """
        maximum, subject, refusal = self.maximum, subject_of_peer(address), None
        if self._count >= maximum:
            before = self._count
            # A fiftieth is closed at once, so that the server does not look for idle ones at each accept.
            self.evict_idle(max(1, maximum // 50), of_operator=False)
            self.evicted += before - self._count
        # An address has two for each stream that it may open, because a page with a stream sends requests, too.
        most = min(2 * self._config.streams_per_address or maximum, max(1, maximum // 2))
        if self._count >= maximum:
            refusal = NO_ROOM_FOR_CONNECTION
        elif self._count_by_address[subject] >= most and self.limited_subject(address):
            refusal = NO_ROOM_FOR_ADDRESS
        if refusal is None:
            self._count += 1
            self._count_by_address[subject] += 1
            return ADMITTED
        if self._operator_count >= OPERATOR_PLACES:
            self.evict_idle(1, of_operator=True)
        if self._operator_count >= OPERATOR_PLACES:
            self.count_refusal(refusal)
            return Admission(SlotKind.NONE, refusal)
        self._operator_count += 1
        return Admission(SlotKind.OPERATOR, refusal)

    def count_refusal(self, refusal: Refusal) -> None:
        """Count a refused connection. The log has a line when the table becomes full."""
        self.refused += 1
        self.hits.add("connections_per_address" if refusal is NO_ROOM_FOR_ADDRESS else "connections_max")
        if refusal is NO_ROOM_FOR_CONNECTION and not self._is_full:
            self._is_full = True
            logger.warning("all %d slots are taken: new connections are refused with 503", self.maximum)

    def release(self, address: str, slot: SlotKind = SlotKind.FULL) -> None:
        """Take back the slot of a connection from ``address`` that has ended."""
        if slot is SlotKind.OPERATOR:
            self._operator_count -= 1
        if slot is not SlotKind.FULL:
            return
        self._count -= 1
        if self._is_full and self._count < 0.95 * self.maximum:  # so a client that comes and goes causes one line
            self._is_full = False
        subject = subject_of_peer(address)
        self._count_by_address[subject] -= 1
        if not self._count_by_address[subject]:
            del self._count_by_address[subject]

    def limited_subject(self, address: str) -> str:
        """Return the subject under which limits of addresses count ``address``. Empty for a proxy and a unix socket.

        Only this machine's proxy can open a unix socket.
        """
        if not address or self._config.limits == "off" or self._is_trusted_proxy(address):
            return ""
        return subject_of_peer(address)


def raise_open_files_limit() -> None:
    """Raise the limit of open files of this process to the greatest that the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


MAX_RUNNING = 4
"""Most requests of one address that run at the same time in one process, while other addresses send requests too."""

SHARED_SECONDS = 1.0
"""Seconds that the limit lasts after another address has sent a request."""

MAX_WAIT_SECONDS = 2.0
"""Longest wait of a request for its turn."""


BUSY = "too many requests from your address are waiting"


class Turns:
    """Limits how many requests of one address run at the same time while other addresses send requests, too."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lines: WeakValueDictionary[str, FairQueue] = WeakValueDictionary()  # each lives as long as its slots
        self._latest_address = ""
        self._shared_until = -math.inf

    def turn(self, address: str) -> Slot:
        """Return a context for a request that an address has sent. Entering it waits until the request may run.

        It raises `Unavailable` after :data:`MAX_WAIT_SECONDS`.
        """
        if address != self._latest_address:
            if self._latest_address:
                self._shared_until = self._monotonic() + SHARED_SECONDS
            self._latest_address = address
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = FairQueue(
                MAX_RUNNING, BUSY, MAX_WAIT_SECONDS, heeds_failures=False,
                has_more=lambda: self._monotonic() >= self._shared_until,  # whoever is alone is not limited
            )  # fmt: skip
        return Slot(line)


PROMPT_REFUSALS = 10
"""Refusals of one address in a second that are answered at once."""

DELAY_SECONDS = 0.5
"""Seconds that each further refusal in this second waits."""


class RefusalDelay:
    """Counts the refusals of each address in the current second."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._second = 0
        self._counts: Counter[str] = Counter()

    def seconds(self, address: str) -> float:
        """Count one refusal of an address. Return the number of seconds by which to delay the answer."""
        second = int(self._monotonic())
        if second != self._second:
            self._second = second
            self._counts.clear()
        self._counts[address] += 1
        return DELAY_SECONDS if self._counts[address] > PROMPT_REFUSALS else 0.0
