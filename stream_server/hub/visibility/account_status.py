"""Protected and suspended users. Every stream of the worker needs these two sets."""

from collections.abc import Collection

from stream_server.events.entry import Entry
from stream_server.events.kinds import CREATION_KINDS, PUBLIC_AUDIENCE
from stream_server.events.position import LOG_START, Position


class AccountStatus:
    """The protected and suspended users at the hub's head. After a load they may be newer than the head for a moment.

    It is the view of impersonal streams: it shows an entry only if every user may see it.

    Attributes:
        protected: Ids of protected users.
        suspended: Ids of suspended users.
        restricted: Ids of users in either set.
    """

    def __init__(self) -> None:
        self.protected: set[str] = set()
        self.suspended: set[str] = set()
        self.restricted: set[str] = set()
        self._read_at = LOG_START

    def load(self, protected: Collection[str], suspended: Collection[str], read_at: Position) -> None:
        """Replace both sets by what the store returned when the log's head was ``read_at``.

        Earlier entries are ignored.
        """
        self.protected, self.suspended, self._read_at = set(protected), set(suspended), read_at
        self.restricted = self.protected | self.suspended

    def shows_no_restricted_user(self, entry: Entry) -> bool:
        """Return whether the entry shows no protected and no suspended user."""
        return not self.restricted or self.restricted.isdisjoint(entry.actors)

    def render_today(self, entry: Entry) -> Entry | None:
        """Return the entry as every user may see it today, None if it is hidden from some users.

        A removal is always shown, because it carries ids. If it shows a restricted user, only its ids remain.
        """
        if entry.audience != PUBLIC_AUDIENCE:
            return None
        if entry.kind == "delete" or self.shows_no_restricted_user(entry):
            return entry
        return entry.without_status() if entry.kind in CREATION_KINDS else None

    def apply(self, entry: Entry) -> None:
        """Apply a `protect`, `unprotect`, `suspend` or `reinstate` entry.

        Ignore other kinds. Raises `MalformedEntry`.
        """
        if entry.position.n <= self._read_at.n:
            return
        if entry.kind in ("protect", "unprotect"):
            self._update_set(self.protected, entry.event.author or "", is_member=entry.kind == "protect")
        elif entry.kind in ("suspend", "reinstate"):
            self._update_set(self.suspended, entry.revocation().uid, is_member=entry.kind == "suspend")

    def _update_set(self, users: set[str], uid: str, *, is_member: bool) -> None:
        """Add a user to one of the two sets or remove it, and update ``restricted``."""
        users.add(uid) if is_member else users.discard(uid)
        if uid in self.protected or uid in self.suspended:
            self.restricted.add(uid)
        else:
            self.restricted.discard(uid)
