"""What the hub knows of a client: what it asked for, where it stands, and how to reach its socket."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from filters.combine import Subscription
from stream_server.events import Position
from stream_server.hub.closing import Closing
from stream_server.hub.personal import Personal
from stream_server.hub.viewer import Viewer

if TYPE_CHECKING:
    from stream_server.hub.group import Framing, Group


class Ask(NamedTuple):
    """One request for events: who asks, for what, in which framing, from where.

    ``viewer`` is what the asking user may see, None where everybody is given the same; ``personal`` is there from the
    beginning where the filter is the user's own.
    """

    connection: str
    user_id: str
    jti: str
    subscription: Subscription
    framing: "Framing"
    position: Position
    viewer: Viewer | None = None
    personal: Personal | None = None


class Member:
    """A client of the hub; ``group`` is None while it catches up.

    ``position`` is the last entry *scanned* for it, matched or not; while it is live that is the hub's head.
    ``joined_n`` is the head's number when it went live. ``write`` never waits, ``backlog`` is in bytes,
    ``on_wake`` is called when the hub has something to say: frames were refused, or it is over. ``polls`` says that
    it refuses everything, so that it is no slow client. ``personal`` is None as long as its view is everybody's.
    """

    __slots__ = ("ask", "backlog", "closing", "group", "joined_n", "on_wake", "personal", "polls", "position", "write")

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
        self.position = ask.position
        self.personal = ask.personal
        self.group: Group | None = None
        self.joined_n = 0
        self.closing: Closing | None = None

    @property
    def group_key(self) -> Hashable:
        """Clients with equal keys share their frames; who has a filter or a view of their own, shares with nobody."""
        ask = self.ask
        return ask.connection if self.personal is not None else (ask.subscription.key, ask.framing)

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
