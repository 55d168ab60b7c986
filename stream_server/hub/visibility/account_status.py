"""Who is protected and who is suspended, for the whole worker: what every stream must know of everybody."""

from collections.abc import Collection

from stream_server.events.entry import Entry
from stream_server.events.kinds import CREATION_KINDS, PUBLIC_AUDIENCE
from stream_server.events.position import LOG_START, Position


class AccountStatus:
    """Both sets as they are at the hub's head, or at ``known`` while the hub has not come so far.

    ``restricted`` are the users of either set: what shows none of them may be shown to all.
    """

    def __init__(self) -> None:
        self.protected: set[str] = set()
        self.suspended: set[str] = set()
        self.restricted: set[str] = set()
        self._read_at = LOG_START

    def load(self, protected: Collection[str], suspended: Collection[str], read_at: Position) -> None:
        """Begin with what was read when the log's head was ``read_at``: entries up to it are in it already."""
        self.protected, self.suspended, self._read_at = set(protected), set(suspended), read_at
        self.restricted = self.protected | self.suspended

    def shows_no_restricted_user(self, entry: Entry) -> bool:
        """Whether nobody is shown by it who is protected or suspended."""
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
        """Change as ``entry`` says."""
        if entry.position.n <= self._read_at.n:
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
