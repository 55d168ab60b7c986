"""What the hub knows of a client: what it asked for, where it stands, and how to reach its socket."""

import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from filters.base import Failed
from filters.combine import Subscription
from filters.key import Key
from filters.rule import SavedRules
from stream_server.events import START, Entry, MalformedEntry, Position
from stream_server.hub.closing import Closing
from stream_server.hub.control import Control, Notice
from stream_server.hub.personal import Personal
from stream_server.hub.viewer import Viewer

if TYPE_CHECKING:
    from stream_server.hub.group import Framing, Group

FALLING_BEHIND = "falling_behind"
"""The ``warning`` of a stream that reads too slowly; at 100 percent it is live no more, and reads on from the log."""

WARN_SECONDS = 300.0
"""A stream is told at most so often that it falls behind, as Twitter did."""

FILTER_DISABLED = "filter_disabled"
"""The ``warning`` of a stream one of whose filters, or of whose rules, has raised: that matches nothing any more."""


class Ask(NamedTuple):
    """One request for events: who asks, for what, in which framing, from where.

    ``viewer`` is what the asking user may see, None where everybody is given the same; ``personal`` is there from the
    beginning where the filter is the user's own. ``rules_known`` is the head at which the user's saved rules were
    read, if the subscription has them. The stream ends at ``until``, if that is said.
    """

    connection: str
    user_id: str
    jti: str
    subscription: Subscription
    framing: "Framing"
    position: Position
    viewer: Viewer | None = None
    personal: Personal | None = None
    rules_known: Position = START
    until: Position | None = None


def _nothing() -> float:
    """Nothing is known of whoever only reads."""
    return 0


class Member:
    """A client of the hub; ``group`` is None while it catches up.

    ``position`` is the last entry *scanned* for it, matched or not; while it is live that is the hub's head.
    ``joined_n`` is the head's number when it went live. ``write`` never waits, ``backlog`` is in bytes,
    ``on_wake`` is called when the hub has something to say: frames were refused, or it is over. ``polls`` says that
    it refuses everything, so that it is no slow client; ``refused``, that it has since it was last told; ``stuck``,
    that it is to take a byte before it is live again; ``vanished``, that its machine is gone without a word.
    ``held`` and ``silence`` are the kernel's word, see ``Sink``; they cost a system call.
    ``lost`` is the last loss of the log's end that it was told of: where the log goes on, and up to where it was lost.
    ``personal`` is None as long as its view is everybody's. ``subscription`` is what it asks for by now: saved rules
    change, and filters fail.
    """

    __slots__ = (
        "_sought", "_sought_by", "_warn_at", "ask", "backlog", "closing", "group", "held", "joined_n", "lost",
        "on_wake", "personal", "polls", "position", "refused", "silence", "stuck", "subscription", "vanished", "write",
    )  # fmt: skip

    def __init__(
        self,
        ask: Ask,
        write: Callable[[bytes], None],
        backlog: Callable[[], float],
        on_wake: Callable[[], None],
        *,
        held: Callable[[], float] = _nothing,
        silence: Callable[[], float] = _nothing,
        polls: bool = False,
    ) -> None:
        self.ask = ask
        self.write = write
        self.backlog = backlog
        self.on_wake = on_wake
        self.held = held
        self.silence = silence
        self.polls = polls
        self.refused = False
        self.stuck = False
        self.vanished = False
        self._warn_at = -math.inf
        self._sought: frozenset[Key] | None = None
        self._sought_by: Subscription | None = None
        self.position = ask.position
        self.subscription = ask.subscription
        self.personal = ask.personal
        self.group: Group | None = None
        self.joined_n = 0
        self.lost: tuple[Position, Position] | None = None
        self.closing: Closing | None = None

    @property
    def group_key(self) -> Hashable:
        """Clients with equal keys share their frames; who has a filter or a view of their own, shares with nobody."""
        ask = self.ask
        return ask.connection if self.personal is not None else (self.subscription.key, ask.framing)

    @property
    def ruled(self) -> bool:
        """Whether it goes by saved rules, which change."""
        return self.subscription.base(SavedRules.name) is not None

    @property
    def sought(self) -> frozenset[Key] | None:
        """Keys of which each event that it asks for has one; None where every event has to be looked at.

        Worked out once: the filters are what they were made, but for those that follow a graph or saved rules.
        """
        if self.personal is not None or self.ruled:
            return None
        if self._sought_by is not self.subscription:
            self._sought_by, self._sought = self.subscription, _keys(self.subscription)
        return self._sought

    def outdated(self, reached: Position) -> bool:
        """Whether a gap up to ``reached`` may have held a change of what it asks for."""
        if self.personal is not None and self.personal.outdated(reached):
            return True
        return reached.n > self.ask.rules_known.n and self.ruled

    def knows_of(self, start: Position, end: Position) -> bool:
        """Whether it was told that the log lost what came after ``start``, up to ``end`` at least."""
        return self.lost is not None and self.lost[0] == start and end <= self.lost[1]

    def ruled_by(self, entry: Entry) -> bool:
        """Whether this entry changes the saved rules that this stream goes by; one that is malformed changes none."""
        if entry.kind != "rules" or entry.position.n <= self.ask.rules_known.n or not self.ruled:
            return False
        try:
            return entry.rules_change().uid == self.ask.user_id
        except MalformedEntry:
            return False  # counted when it was published

    def disable(self, failed: Failed, position: Position) -> Notice:
        """From this position on do without what has failed; gives what to tell."""
        self.subscription = self.subscription.without(failed)
        members: dict[str, object] = {"code": FILTER_DISABLED, "filter": failed.culprit.name}
        if failed.part is not None:
            members["rule"] = failed.part
        return Notice("warning", position, members)

    def falls_behind(self, position: Position, full: float, now: float) -> Notice | None:
        """What to tell a stream of whose bound ``full`` is unsent (1 is all); None if it was told of late."""
        if now < self._warn_at:
            return None
        self._warn_at = now + WARN_SECONDS
        return Notice("warning", position, {"code": FALLING_BEHIND, "percent": min(100, int(full * 100))})

    def unsent(self) -> float:
        """Bytes handed over that the client's machine has not acknowledged, wherever they wait.

        None where the transport is closed already, which is noticed by itself.
        """
        try:
            return self.backlog() + self.held()
        except RuntimeError:
            return 0

    def backed_up(self) -> bool:
        """Whether bytes wait in this process: the kernel takes no more."""
        try:
            return self.backlog() > 0
        except RuntimeError:
            return False

    def tell(self, message: Control) -> None:
        """Write a message to this one client; nothing where the stream's protocol has no word for it."""
        data = self.ask.framing.control(message)
        if data:
            self.write(self.ask.framing.wrap(data))

    def attend(self) -> None:
        """Have a view of one's own from here on, if something personal concerns the user; it is not given up again."""
        viewer = self.ask.viewer
        if self.personal is None and viewer is not None and not viewer.plain:
            self.stand_apart()

    def stand_apart(self) -> None:
        """Have a view of one's own from here on."""
        if self.ask.viewer is not None:
            self.personal = Personal(self.ask.viewer, self.position)

    def close(self, closing: Closing) -> None:
        """End this client's stream; the first reason holds."""
        if self.closing is None:
            self.closing = closing
            self.on_wake()

    def let_go(self) -> None:
        """Wake nobody any more: whom it woke holds it, and a circle lives until some later garbage collection."""
        self.on_wake = _asleep


def _asleep() -> None:
    """Nobody is woken who is gone."""


def without_socket(ask: Ask, on_wake: Callable[[], None]) -> Member:
    """A member for whoever only reads: it takes no byte, so every frame is refused, which wakes it where it stands."""
    return Member(ask, _never, _always_full, on_wake, polls=True)


def _never(data: bytes) -> None:
    """Nothing is written where nothing is taken."""


def _always_full() -> float:
    return math.inf


def _keys(subscription: Subscription) -> frozenset[Key] | None:
    try:
        return subscription.keys()
    except Exception:  # noqa: BLE001 - a third party's filter may raise anything; then it is asked about every event
        return None
