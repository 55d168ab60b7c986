"""What the hub knows of a client: what it asked for, where it stands, and how to reach its socket."""

import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from filters.base import FilterFailure
from filters.index_keys import Key
from filters.rule import SavedRules
from filters.subscription import Subscription
from stream_server.events.entry import Entry
from stream_server.events.entry_fields import MalformedEntry
from stream_server.events.position import LOG_START, Position
from stream_server.hub.disconnect import DisconnectReason
from stream_server.hub.messages import ControlMessage, StreamNotice
from stream_server.hub.visibility.private_view import PrivateView
from stream_server.hub.visibility.viewer import Viewer

if TYPE_CHECKING:
    from stream_server.hub.group import ClientGroup, Framing

FALLING_BEHIND = "falling_behind"
"""The ``warning`` of a stream that reads too slowly; at 100 percent it is live no more, and reads on from the log."""

SLOW_WARNING_INTERVAL_SECONDS = 300.0
"""A stream is told at most so often that it falls behind, as Twitter did."""

FILTER_DISABLED = "filter_disabled"
"""The ``warning`` of a stream one of whose filters, or of whose rules, has raised: that matches nothing any more."""


class SubscribeRequest(NamedTuple):
    """One request for events: who asks, for what, in which framing, from where.

    ``viewer`` is what the asking user may see, None where everybody is given the same; ``private_view`` is there from the
    beginning where the filter is the user's own. ``rules_read_at`` is the head at which the user's saved rules were
    read, if the subscription has them. The stream ends at ``until``, if that is said.
    """

    connection_id: str
    user_id: str
    jti: str
    subscription: Subscription
    framing: "Framing"
    position: Position
    viewer: Viewer | None = None
    private_view: PrivateView | None = None
    rules_read_at: Position = LOG_START
    until: Position | None = None


def _unknown_zero() -> float:
    """Nothing is known of whoever only reads."""
    return 0


class Client:
    """A client of the hub; ``group`` is None while it catches up.

    ``position`` is the last entry *scanned* for it, matched or not; while it is live that is the hub's head.
    ``joined_at_number`` is the head's number when it went live. ``write`` never waits, ``buffered_bytes`` is in bytes,
    ``on_wake`` is called when the hub has something to say: frames were refused, or it is over. ``is_poll`` says that
    it refuses everything, so that it is no slow client; ``overflowed``, that it has since it was last told; ``must_show_progress``,
    that it is to take a byte before it is live again; ``is_peer_dead``, that its machine is gone without a word.
    ``kernel_unacked_bytes`` and ``peer_silent_seconds`` are the kernel's word, see ``Sink``; they cost a system call.
    ``last_rollback`` is the last loss of the log's end that it was told of: where the log goes on, and up to where it was lost.
    ``private_view`` is None as long as its view is everybody's. ``subscription`` is what it asks for by now: saved rules
    change, and filters fail.
    """

    __slots__ = (
        "_next_warning_at", "_search_keys", "_search_keys_subscription", "buffered_bytes", "disconnect_reason", "group", "is_peer_dead", "is_poll", "joined_at_number", "kernel_unacked_bytes",
        "last_rollback", "must_show_progress", "on_wake", "overflowed", "peer_silent_seconds", "position", "private_view", "request", "subscription", "write",
    )  # fmt: skip

    def __init__(
        self,
        request: SubscribeRequest,
        write: Callable[[bytes], None],
        buffered_bytes: Callable[[], float],
        on_wake: Callable[[], None],
        *,
        kernel_unacked_bytes: Callable[[], float] = _unknown_zero,
        peer_silent_seconds: Callable[[], float] = _unknown_zero,
        is_poll: bool = False,
    ) -> None:
        self.request = request
        self.write = write
        self.buffered_bytes = buffered_bytes
        self.on_wake = on_wake
        self.kernel_unacked_bytes = kernel_unacked_bytes
        self.peer_silent_seconds = peer_silent_seconds
        self.is_poll = is_poll
        self.overflowed = False
        self.must_show_progress = False
        self.is_peer_dead = False
        self._next_warning_at = -math.inf
        self._search_keys: frozenset[Key] | None = None
        self._search_keys_subscription: Subscription | None = None
        self.position = request.position
        self.subscription = request.subscription
        self.private_view = request.private_view
        self.group: ClientGroup | None = None
        self.joined_at_number = 0
        self.last_rollback: tuple[Position, Position] | None = None
        self.disconnect_reason: DisconnectReason | None = None

    @property
    def group_key(self) -> Hashable:
        """Clients with equal keys share their frames; who has a filter or a view of their own, shares with nobody."""
        ask = self.request
        return ask.connection_id if self.private_view is not None else (self.subscription.canonical_form, ask.framing)

    @property
    def uses_saved_rules(self) -> bool:
        """Whether it goes by saved rules, which change."""
        return self.subscription.find_base(SavedRules.name) is not None

    @property
    def search_keys(self) -> frozenset[Key] | None:
        """Keys of which each event that it asks for has one; None where every event has to be looked at.

        Worked out once: the filters are what they were made, but for those that follow a graph or saved rules.
        """
        if self.private_view is not None or self.uses_saved_rules:
            return None
        if self._search_keys_subscription is not self.subscription:
            self._search_keys_subscription, self._search_keys = (
                self.subscription,
                _compute_search_keys(self.subscription),
            )
        return self._search_keys

    def is_outdated_by_gap(self, gap_end: Position) -> bool:
        """Whether a gap up to ``gap_end`` may have held a change of what it asks for."""
        if self.private_view is not None and self.private_view.is_outdated_by_gap(gap_end):
            return True
        return gap_end.n > self.request.rules_read_at.n and self.uses_saved_rules

    def knows_rollback(self, start: Position, end: Position) -> bool:
        """Whether it was told that the log lost what came after ``start``, up to ``end`` at least."""
        return self.last_rollback is not None and self.last_rollback[0] == start and end <= self.last_rollback[1]

    def is_changed_by_rules_entry(self, entry: Entry) -> bool:
        """Whether this entry changes the saved rules that this stream goes by; one that is malformed changes none."""
        if entry.kind != "rules" or entry.position.n <= self.request.rules_read_at.n or not self.uses_saved_rules:
            return False
        try:
            return entry.rules_change().uid == self.request.user_id
        except MalformedEntry:
            return False  # counted when it was published

    def disable_filter(self, failed: FilterFailure, position: Position) -> StreamNotice:
        """From this position on do without what has failed; gives what to tell."""
        self.subscription = self.subscription.without_failed(failed)
        members: dict[str, object] = {"code": FILTER_DISABLED, "filter": failed.filter.name}
        if failed.rule_id is not None:
            members["rule"] = failed.rule_id
        return StreamNotice("warning", position, members)

    def slow_warning(self, position: Position, unsent_share: float, now: float) -> StreamNotice | None:
        """What to tell a stream of whose bound ``unsent_share`` is unsent (1 is all); None if it was told of late."""
        if now < self._next_warning_at:
            return None
        self._next_warning_at = now + SLOW_WARNING_INTERVAL_SECONDS
        return StreamNotice("warning", position, {"code": FALLING_BEHIND, "percent": min(100, int(unsent_share * 100))})

    def unacked_bytes(self) -> float:
        """Bytes handed over that the client's machine has not acknowledged, wherever they wait.

        None where the transport is closed already, which is noticed by itself.
        """
        try:
            return self.buffered_bytes() + self.kernel_unacked_bytes()
        except RuntimeError:
            return 0

    def has_buffered_bytes(self) -> bool:
        """Whether bytes wait in this process: the kernel takes no more."""
        try:
            return self.buffered_bytes() > 0
        except RuntimeError:
            return False

    def send_control(self, message: ControlMessage) -> None:
        """Write a message to this one client; nothing where the stream's protocol has no word for it."""
        data = self.request.framing.encode_control(message)
        if data:
            self.write(self.request.framing.wrap(data))

    def use_private_view_if_needed(self) -> None:
        """Have a view of one's own from here on, if something personal concerns the user; it is not given up again."""
        viewer = self.request.viewer
        if self.private_view is None and viewer is not None and not viewer.sees_public_view:
            self.use_private_view()

    def use_private_view(self) -> None:
        """Have a view of one's own from here on."""
        if self.request.viewer is not None:
            self.private_view = PrivateView(self.request.viewer, self.position)

    def disconnect(self, reason: DisconnectReason) -> None:
        """End this client's stream; the first reason holds."""
        if self.disconnect_reason is None:
            self.disconnect_reason = reason
            self.on_wake()

    def detach(self) -> None:
        """Wake nobody any more: whom it woke holds it, and a circle lives until some later garbage collection."""
        self.on_wake = _ignore_wake


def _ignore_wake() -> None:
    """Nobody is woken who is gone."""


def socketless_client(request: SubscribeRequest, on_wake: Callable[[], None]) -> Client:
    """A member for whoever only reads: it takes no byte, so every frame is refused, which wakes it where it stands."""
    return Client(request, _discard_bytes, _infinite_bytes, on_wake, is_poll=True)


def _discard_bytes(data: bytes) -> None:
    """Nothing is written where nothing is taken."""


def _infinite_bytes() -> float:
    return math.inf


def _compute_search_keys(subscription: Subscription) -> frozenset[Key] | None:
    try:
        return subscription.candidate_keys()
    except Exception:  # noqa: BLE001 - a third party's filter may raise anything; then it is asked about every event
        return None
