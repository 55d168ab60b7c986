"""Who is protected and who is suspended, for the whole worker: what every stream must know of everybody."""

from collections.abc import Collection

from stream_server.events import START, TAKES_BACK, Entry, Position


class Standing:
    """Both sets as they are at the hub's head, or at ``known`` while the hub has not come so far.

    ``outcasts`` are the users of either set: what shows none of them may be shown to all.
    """

    def __init__(self) -> None:
        self.protected: set[str] = set()
        self.suspended: set[str] = set()
        self.outcasts: set[str] = set()
        self._known = START

    def load(self, protected: Collection[str], suspended: Collection[str], known: Position) -> None:
        """Begin with what was read when the log's head was ``known``: entries up to it are in it already."""
        self.protected, self.suspended, self._known = set(protected), set(suspended), known
        self.outcasts = self.protected | self.suspended

    def clears(self, entry: Entry) -> bool:
        """Whether nobody is shown by it who is protected or suspended."""
        return not self.outcasts or self.outcasts.isdisjoint(entry.actors)

    def tells(self, entry: Entry) -> Entry | None:
        """A public entry as it may be shown to all: what takes back always is, without an outcast's words."""
        if entry.kind == "delete" or self.clears(entry):
            return entry
        return entry.without_status() if entry.kind in TAKES_BACK else None

    def apply(self, entry: Entry) -> None:
        """Change as ``entry`` says."""
        if entry.position.n <= self._known.n:
            return
        if entry.kind in ("protect", "unprotect"):
            self._set(self.protected, entry.event.author or "", present=entry.kind == "protect")
        elif entry.kind in ("suspend", "reinstate"):
            self._set(self.suspended, entry.revocation().uid, present=entry.kind == "suspend")

    def _set(self, which: set[str], uid: str, *, present: bool) -> None:
        which.add(uid) if present else which.discard(uid)
        if uid in self.protected or uid in self.suspended:
            self.outcasts.add(uid)
        else:
            self.outcasts.discard(uid)
