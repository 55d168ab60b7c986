"""Protected and suspended users. Every stream of the process needs these two sets."""

from collections.abc import Collection

from stream_server.events.entry import Entry
from stream_server.events.kinds import CREATION_KINDS, PUBLIC_AUDIENCE
from stream_server.events.position import LOG_START, Position


class AccountStatus:
    """The ids of the protected and of the suspended users. ``restricted`` is the union of both sets.

    The sets are those at the hub's head; directly after `load` they may be newer. This object is the view of the
    streams that are the same for every user: `render_today` returns only what every user may see.
    """

    def __init__(self) -> None:
        self.protected: set[str] = set()
        self.suspended: set[str] = set()
        self.restricted: set[str] = set()
        self._applied_from = LOG_START

    def load(self, protected: Collection[str], suspended: Collection[str], applied_from: Position) -> None:
        """Set the protected and suspended users. `apply` skips entries up to ``applied_from``.

        That is the log's head before they were read. They are exact once all entries up to the end of the read are
        applied.
        """
        self.protected, self.suspended, self._applied_from = set(protected), set(suspended), applied_from
        self.restricted = self.protected | self.suspended

    def shows_no_restricted_user(self, entry: Entry) -> bool:
        return not self.restricted or self.restricted.isdisjoint(entry.actors)

    def render_today(self, entry: Entry) -> Entry | None:
        """Return the entry as every user may see it today, None if it is hidden from some users.

        A public `delete` is always shown. A public `uncomment` that names a protected or suspended user is shown with
        its ids only.
        """
        if entry.audience != PUBLIC_AUDIENCE:
            return None
        if entry.kind == "delete" or self.shows_no_restricted_user(entry):
            return entry
        return entry.without_status() if entry.kind in CREATION_KINDS else None

    def apply(self, entry: Entry) -> None:
        """Apply `protect`, `unprotect`, `suspend`, `reinstate`; ignore other kinds. May raise `MalformedEntry`."""
        if entry.position.n <= self._applied_from.n:
            return
        if entry.kind in ("protect", "unprotect"):
            self._update_set(self.protected, entry.event.author or "", is_member=entry.kind == "protect")
        elif entry.kind in ("suspend", "reinstate"):
            self._update_set(self.suspended, entry.revocation().uid, is_member=entry.kind == "suspend")

    def _update_set(self, users: set[str], uid: str, *, is_member: bool) -> None:
        users.add(uid) if is_member else users.discard(uid)
        if uid in self.protected or uid in self.suspended:
            self.restricted.add(uid)
        else:
            self.restricted.discard(uid)
