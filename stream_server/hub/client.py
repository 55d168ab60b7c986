"""A client in the hub: what it asked for, its position and its socket."""

import math
from collections.abc import Callable, Hashable, Iterable
from typing import ClassVar, NamedTuple, Protocol

from filters.base import FilterFailure
from filters.index_keys import Key
from filters.rule import SavedRules, TooCostly
from filters.subscription import Subscription
from stream_server.errors import ApiError
from stream_server.events.content import MalformedEntry
from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.disconnect import RESYNC, DisconnectReason
from stream_server.hub.messages import ControlMessage, Framing, Gap, StreamNotice
from stream_server.hub.visibility.private_view import PrivateView
from stream_server.hub.visibility.viewer import Viewer
from stream_server.hub.window import Window


class Sink(Protocol):
    """The part of a client's socket that the hub uses. The hub passes bytes that `Framing.wrap` has wrapped already."""

    def write(self, data: bytes) -> None:
        """Hand bytes to the transport. Never waits."""

    def buffered_bytes(self) -> float:
        """Return the number of bytes that were passed to `write` and that the kernel has not taken yet.

        0 after the connection has ended.
        """

    def lend_descriptor(self, borrower: "Outlet | None") -> None:
        """Lend the socket's descriptor: keep ``borrower.descriptor`` up to date until the next call of this method.

        None ends the loan. Does nothing for a socket without a descriptor.
        """

    def kernel_unacked_bytes(self) -> float:
        """Return the number of bytes in the kernel that the peer has not acknowledged, 0 if unknown. A system call."""

    def peer_silent_seconds(self) -> float:
        """Return the seconds since the peer acknowledged anything. 0 if all bytes are acknowledged, or if unknown.

        It makes a system call.
        """

    @property
    def is_full(self) -> bool:
        """Whether the caller should wait for room before it hands over more bytes."""

    async def wait_writable(self) -> None:
        """Wait until there is room for more bytes. Raises `ConnectionError` if the client closed the connection."""

    def finish(self, reason: DisconnectReason) -> None:
        """End the stream after the bytes that were passed to `write`. ``reason`` is that of the `goodbye`."""

    def abort(self) -> None: ...

    def fail(self) -> None:
        """Close the connection because of a fault of the server."""


FILTER_DISABLED = "filter_disabled"
"""Code of the `warning` for a stream whose filter or rule raised. From then on that filter or rule matches nothing."""

FILTER_TOO_COSTLY = "filter_too_costly"
"""Code of the `warning` for a stream whose rules took too long. From then on none of these rules matches."""


class StreamToken(NamedTuple):
    """The access token of a stream: its id, its log-in session ("" for none), and when it was issued and expires.

    Times are in seconds since 1970.
    """

    jti: str
    session: str = ""
    issued_at: float = math.inf
    expires_at: float = math.inf


class SubscribeRequest(NamedTuple):
    """One request for events: of a stream, a long poll or a preview.

    Attributes:
        connection_id: Id of the connection, also in `hello`.
        token: The user's access token.
        position: Position after which the stream begins.
        viewer: The relations that decide what the user may see. None for a stream that is the same for every user.
        private_view: The private view at the start. None unless the filter depends on the user (such as `follow=@me`).
        until: Position at which the stream ends, None for a stream without an end.
        opened_ms: When the request was checked, in ms since 1970, to the microsecond: the order of a user's streams.
        path: Path of the request.
        parameters: Filters of the request, as a query, for the list of open streams.
    """

    connection_id: str
    user_id: str
    token: StreamToken
    subscription: Subscription
    framing: Framing
    position: Position
    viewer: Viewer | None = None
    private_view: PrivateView | None = None
    until: Position | None = None
    opened_ms: float = 0
    path: str = ""
    parameters: str = ""


class BoundFilters(NamedTuple):
    """The filters of a stream with what depends on its user, such as followed users. See `SubscribeRequest`.

    They are in force after ``position``. They contain the saved rules that the user had at this position.
    """

    subscription: Subscription
    position: Position
    viewer: Viewer | None = None
    private_view: PrivateView | None = None


class LiveGroup(Protocol):
    """The part of a `ClientGroup` that its live clients use: how many events the group has put into batches."""

    batched: int


NO_DESCRIPTOR = -1


class Outlet:
    """The part of a client that each delivery uses of its socket. Its attributes come first, to share a cache line.

    Attributes:
        write: Hands bytes to the transport. Never waits.
        descriptor: The socket's file descriptor while its transport is open and has nothing unsent, else
            `NO_DESCRIPTOR`.
    """

    __slots__ = ("descriptor", "write")

    descriptor: int
    write: Callable[[bytes], None]


class Client(Outlet):
    """A client of the hub, live or catching up: a stream, a long poll, or a preview of rules.

    What its request asked for stands here once, and changes here: filters, token and position.

    Attributes:
        is_poll: Whether the client is a long poll or a preview. The hub writes no bytes to it, so it is never slow.
        sink: The socket, None for a poll.
        overflowed: Whether frames did not fit since the last `falling_behind` warning.
        must_show_progress: Whether the peer has to take a byte before the client may go live again.
        is_peer_dead: Whether the peer acknowledged nothing for a whole write timeout.
        since: Position after which the client began.
        position: Position of the last entry scanned for this client, matched or not. For a live client, the hub's head.
        subscription: The current filters. They change with saved rules, and filters that raised are disabled.
        private_view: The client's private view, None while it sees the public view.
        last_rollback: The last rollback for which the client was sent a `gap`: the position after which the log
            continues, and the last position that was lost.
        token: The token that gives the right to the stream. A new one may replace it.
        disconnect_reason: Why the server ends the client's stream, `GONE` when it has left the hub, None before.
        group: The group of a live client, None while it is not live.
        joined_version: Version of the group (`ClientGroup.version`) at which the client joined it.
        written_before_joining: Number of events that were written to the client before it joined its present group.
        batched_before_joining: Number of events that its present group had put into batches before it joined.
        window: What a summary stream has counted while it catches up. None for others, and while it is live: then the
            window of its group counts for it.
    """

    __slots__ = (
        "_next_warning_at", "_search_keys", "batched_before_joining", "connection_id", "disconnect_reason", "framing",
        "group", "is_peer_dead", "joined_version", "last_rollback", "must_show_progress", "opened_ms", "overflowed",
        "parameters", "path", "position", "private_view", "since", "subscription", "token", "until",
        "user_id", "viewer", "window", "written_before_joining",
    )  # fmt: skip

    is_poll: ClassVar[bool] = False
    sink: Sink | None = None

    def __init__(self, request: SubscribeRequest, write: Callable[[bytes], None]) -> None:
        (
            self.connection_id, self.user_id, self.token, self.subscription, self.framing, self.position, self.viewer,
            self.private_view, self.until, self.opened_ms, self.path, self.parameters,
        ) = request  # fmt: skip
        self.since = self.position
        self.write = write
        self.descriptor = NO_DESCRIPTOR
        self.overflowed = self.must_show_progress = self.is_peer_dead = False
        self.joined_version = self.written_before_joining = self.batched_before_joining = 0
        self._next_warning_at = -math.inf
        self._search_keys: tuple[Subscription, frozenset[Key] | None] | None = None
        self.last_rollback: tuple[Position, Position] | None = None
        self.disconnect_reason: DisconnectReason | None = None
        self.group: LiveGroup | None = None
        summary_ms = self.framing.summary_ms
        self.window = Window(summary_ms, self.position) if summary_ms else None

    def buffered_bytes(self) -> float:
        """Return the bytes that the kernel has not taken yet. A client without a socket seems to be full always."""
        return math.inf if self.sink is None else self.sink.buffered_bytes()

    def wake(self) -> None:
        """Let the client's task act: frames do not fit, or the hub demotes or disconnects the client."""

    @property
    def is_live(self) -> bool:
        """Whether the client is a member of a group, which gets each entry as it is published."""
        return self.group is not None

    @property
    def delivered(self) -> int:
        """Number of events written to the client, with those that wait in batches of its group."""
        joined = 0 if self.group is None else self.group.batched - self.batched_before_joining
        return self.written_before_joining + joined

    @property
    def group_key(self) -> Hashable:
        """Key of the client's group. Clients with equal keys share frames. A private view has a group of its own."""
        if self.private_view is not None:
            return self.connection_id
        if self.window is not None:  # what a window has counted depends on its start
            return self.subscription.canonical_form, self.framing, self.window.start
        return self.subscription.canonical_form, self.framing

    @property
    def resume_position(self) -> Position:
        """Position at which the client may resume: behind all that it was told. Call it while it is not live."""
        return self.position if self.window is None else self.window.start

    @property
    def uses_saved_rules(self) -> bool:
        """Whether the subscription contains the user's saved rules. They are always those at the client's position."""
        return self.subscription.find_base(SavedRules.name) is not None

    @property
    def search_keys(self) -> frozenset[Key] | None:
        """Index keys (users, words, places) to find candidates: an event without any of these keys cannot match.

        None if the filters have no such keys, or if the filters can change.
        """
        if self.private_view is not None or self.uses_saved_rules:
            return None
        if self._search_keys is None or self._search_keys[0] is not self.subscription:
            try:
                keys = self.subscription.candidate_keys()
            except Exception:  # noqa: BLE001 - a third party's filter may raise anything; then every event is tested
                keys = None
            self._search_keys = self.subscription, keys
        return self._search_keys[1]

    def accept_gap(self, gap: Gap) -> bool:
        """Move the position to the end of a gap. Return whether the stream may continue.

        The client is disconnected with `resync` if the gap may have hidden a change of followed users or saved rules.
        """
        self.position = gap.end
        is_outdated = self.private_view is not None and self.private_view.is_outdated_by_gap(gap.end)
        if is_outdated or self.uses_saved_rules:
            self.disconnect(RESYNC)
            return False
        return True

    def knows_rollback(self, start: Position, end: Position) -> bool:
        """Return whether the client already got a `gap` for a loss of the entries after ``start`` up to ``end``."""
        return self.last_rollback is not None and self.last_rollback[0] == start and end <= self.last_rollback[1]

    def is_changed_by_rules_entry(self, entry: Entry) -> bool:
        """Return whether this entry changes the saved rules of the subscription. A malformed entry changes nothing."""
        if entry.kind != "rules" or not self.uses_saved_rules:
            return False
        try:
            return entry.rules_change().uid == self.user_id
        except MalformedEntry:
            return False  # counted when it was published

    def disable_filter(self, failed: FilterFailure, position: Position) -> StreamNotice:
        """Disable the filter or rule that failed, from ``position`` on. Return the warning for the stream."""
        self.subscription = self.subscription.without_failed(failed)
        code = FILTER_TOO_COSTLY if isinstance(failed.error, TooCostly) else FILTER_DISABLED
        members: dict[str, object] = {"code": code, "filter": failed.filter.name}
        if failed.rule_id is not None:
            members["rule"] = failed.rule_id
        return StreamNotice("warning", position, members)

    def use_filters(self, filters: BoundFilters, parameters: str) -> None:
        """Go on with other filters from the current position on. Call it while the client is not live."""
        self.end_private_view()
        self.subscription, self.viewer, self.private_view = filters.subscription, filters.viewer, filters.private_view
        self.parameters = parameters

    def end_private_view(self) -> None:
        """Forget the statuses and comments that the stream was sent. Call it before the view ends or is replaced."""
        if self.private_view is not None:
            self.private_view.end()

    def slow_warning(self, position: Position, unsent_share: float, now: float) -> StreamNotice | None:
        """Return a `falling_behind` warning, None if the last one is less than five minutes old, as in Twitter's API.

        ``unsent_share`` is the used share of the client's buffer. At 1 the stream leaves live and catches up. ``now``
        is in seconds.
        """
        if now < self._next_warning_at:
            return None
        self._next_warning_at = now + 300.0
        members: dict[str, object] = {"code": "falling_behind", "percent": min(100, int(unsent_share * 100))}
        return StreamNotice("warning", position, members)

    def unacked_bytes(self) -> float:
        """Return the number of sent or waiting bytes that the peer has not acknowledged. 0 for a closed transport."""
        try:
            return self.buffered_bytes() + (0 if self.sink is None else self.sink.kernel_unacked_bytes())
        except RuntimeError:
            return 0

    def has_buffered_bytes(self) -> bool:
        """Return whether bytes for this client wait in this process because the kernel's buffer is full."""
        try:
            return self.buffered_bytes() > 0
        except RuntimeError:
            return False

    def send_control(self, message: ControlMessage) -> None:
        """Write a control message to this client only. Write nothing if the client's framing has no such message.

        If the client is live, its group must forget its history (`SharedHistory.forget`).
        """
        data = self.framing.encode_control(message)
        if data:
            self.write(self.framing.wrap(data))

    def use_private_view_if_needed(self) -> None:
        """Switch to a private view if the user no longer sees the public view. The client never switches back."""
        if self.private_view is None and self.viewer is not None and not self.viewer.sees_public_view:
            self.private_view = PrivateView(self.viewer)

    def disconnect(self, reason: DisconnectReason) -> None:
        """End this client's stream. The first reason wins; later calls do nothing."""
        if self.disconnect_reason is None:
            self.disconnect_reason = reason
            self.wake()


class SocketlessClient(Client):
    """A long poll or a preview.

    No frame is written to it. If a frame waits for it while it is live, the hub demotes and wakes it.
    """

    __slots__ = ()

    is_poll = True

    def __init__(self, request: SubscribeRequest) -> None:
        super().__init__(request, drop_bytes)


def drop_bytes(data: bytes) -> None:
    """Take bytes for a client that has no socket, or whose connection has ended."""


class FilterChange(Protocol):
    """Other filters that a client asked for. The stream calls these methods between two messages."""

    @property
    def parameters(self) -> str:
        """The filters as a query, for the list of open streams."""

    async def bind(self, position: Position) -> BoundFilters:
        """Return the new filters, which begin after ``position``.

        Raises an ApiError if what the filters need cannot be read now.
        """

    def notices(self, position: Position) -> Iterable[StreamNotice]:
        """Return the messages that the stream sends to its client when the new filters are in force."""

    def refuse(self, error: ApiError) -> None:
        """Tell the client that its filters were not changed."""
