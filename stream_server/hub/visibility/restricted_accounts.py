"""The protected and suspended users, whom every stream must know: what every user may see depends on them."""

from collections.abc import Collection

from stream_server.events.entry import PROTECTION_KINDS, PUBLIC_AUDIENCE, Entry
from stream_server.events.position import LOG_START, Position


class RestrictedAccounts:
    """The ids of the protected and of the suspended users. ``restricted`` is the union of both sets.

    ``gone`` are those of the suspended users whose accounts were deleted.

    The sets are those at the hub's head; directly after `load` they may be newer. This object is the view of the
    streams that are the same for every user, and of the users who see what everybody sees: `render_today` returns only
    what every user may see.
    """

    def __init__(self) -> None:
        self.protected: set[str] = set()
        self.suspended: set[str] = set()
        self.gone: set[str] = set()
        self.restricted: set[str] = set()
        self._applied_from = LOG_START

    def load(
        self, protected: Collection[str], suspended: Collection[str], applied_from: Position,
        gone: Collection[str] = (),
    ) -> None:  # fmt: skip
        """Set the protected and suspended users, as read from Redis after the log's head was ``applied_from``.

        ``gone`` are those of the suspended ones whose accounts were deleted.

        `apply` skips entries up to this position. The sets are exact as soon as all entries are applied that were
        written while they were read.
        """
        self.protected, self.suspended, self._applied_from = set(protected), set(suspended), applied_from
        self.gone = set(gone)
        self.restricted = self.protected | self.suspended

    def is_public_today(self, entry: Entry) -> bool:
        """Return whether an entry is for everybody: as it was written, or because a protection has ended since.

        The audience of a `delete` or `uncomment` never changes.
        """
        if entry.audience == PUBLIC_AUDIENCE:
            return True
        owners = [] if entry.is_removal else entry.protected_users
        return bool(owners) and self.protected.isdisjoint(owners)

    def render_today(self, entry: Entry) -> Entry | None:
        """Return the entry as every user may see it today, None if it is hidden from some users.

        A public `delete` and a `user_delete` are always shown. A public `uncomment` that names a protected or suspended
        user is shown with its ids only. A quote of such a user is shown without its original.
        """
        if entry.audience != PUBLIC_AUDIENCE and not self.is_public_today(entry):
            return None
        hidden_users = self.suspended if entry.kind in PROTECTION_KINDS else self.restricted
        if entry.kind in ("delete", "user_delete") or not hidden_users or hidden_users.isdisjoint(entry.actors):
            return entry
        if entry.is_removal:
            return entry.without_status() if entry.kind == "uncomment" else entry
        return without_hidden(entry, hidden_users & entry.actors)

    def apply(self, entry: Entry) -> None:
        """Apply `protect`, `unprotect`, `suspend`, `reinstate`; ignore other kinds. May raise `MalformedEntry`."""
        if entry.position.n <= self._applied_from.n:
            return
        if entry.kind in ("protect", "unprotect"):
            users, uid = self.protected, entry.event.author or ""
        elif entry.kind in ("suspend", "reinstate"):
            revocation = entry.revocation()
            users, uid = self.suspended, revocation.uid
            if revocation.deleted:
                self.gone.add(uid)
        else:
            return
        users.add(uid) if entry.kind in ("protect", "suspend") else users.discard(uid)
        if uid in self.protected or uid in self.suspended:
            self.restricted.add(uid)
        else:
            self.restricted.discard(uid)


def without_hidden(entry: Entry, hidden_users: Collection[str]) -> Entry | None:
    """Return the entry, without its original if only the quoted author is hidden. None if another user is hidden."""
    if not hidden_users:
        return entry
    is_quoted_alone = entry.quoted_author != entry.event.author and set(hidden_users) == {entry.quoted_author}
    return entry.without_original() if is_quoted_alone else None
