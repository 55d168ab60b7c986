"""What the hub knows of a client: what it asked for, where it stands, and how to reach its socket."""

import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from filters.base import Failed
from filters.combine import Subscription
from filters.rule import SavedRules
from stream_server.events import START, Entry, MalformedEntry, Position
from stream_server.hub.closing import Closing
from stream_server.hub.control import Notice
from stream_server.hub.personal import Personal
from stream_server.hub.viewer import Viewer

if TYPE_CHECKING:
    from stream_server.hub.group import Framing, Group

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


class Member:
    """A client of the hub; ``group`` is None while it catches up.

    ``position`` is the last entry *scanned* for it, matched or not; while it is live that is the hub's head.
    ``joined_n`` is the head's number when it went live. ``write`` never waits, ``backlog`` is in bytes,
    ``on_wake`` is called when the hub has something to say: frames were refused, or it is over. ``polls`` says that
    it refuses everything, so that it is no slow client; ``refused``, that it has since it was last told.
    ``personal`` is None as long as its view is everybody's. ``subscription`` is what it asks for by now: saved rules
    change, and filters fail.
    """

    __slots__ = (
        "ask", "backlog", "closing", "group", "joined_n", "on_wake", "personal", "polls", "position", "refused",
        "subscription", "write",
    )  # fmt: skip

    def __init__(
        self,
        ask: Ask,
        write: Callable[[bytes], None],
        backlog: Callable[[], float],
        on_wake: Callable[[], None],
        *,
        polls: bool = False,
    ) -> None:
        self.ask = ask
        self.write = write
        self.backlog = backlog
        self.on_wake = on_wake
        self.polls = polls
        self.refused = False
        self.position = ask.position
        self.subscription = ask.subscription
        self.personal = ask.personal
        self.group: Group | None = None
        self.joined_n = 0
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

    def outdated(self, reached: Position) -> bool:
        """Whether a gap up to ``reached`` may have held a change of what it asks for."""
        if self.personal is not None and self.personal.outdated(reached):
            return True
        return reached.n > self.ask.rules_known.n and self.ruled

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


def without_socket(ask: Ask, on_wake: Callable[[], None]) -> Member:
    """A member for whoever only reads: it takes no byte, so every frame is refused, which wakes it where it stands."""
    return Member(ask, _never, _always_full, on_wake, polls=True)


def _never(data: bytes) -> None:
    """Nothing is written where nothing is taken."""


def _always_full() -> float:
    return math.inf
