"""What one person may see in streams: the sets of the graph around them, kept at the hub's head.

All streams of a person on this worker share one object; it lives as long as one of them refers to it. It answers by
:func:`stream_server.sight.sight`, from sets instead of keys: there is no second truth.
"""

from collections.abc import Mapping
from typing import Protocol

from stream_server import sight
from stream_server.events import PUBLIC, START, TAKES_BACK, Entry, Position, made_ms
from stream_server.hub.standing import Standing
from stream_server.sight import Fact

NOW = 1 << 62
"""Later than all that ever was: a question about today, in the place of a time."""

LATE = NOW + 1
"""When that began which is not so."""

_SHOWN = tuple(digit == str(sight.Sight.SHOWN.value) for digit in sight.table())
"""By the bits of the facts; looked up, since flags of an enum cost more than all the rest."""

_OWN, _FOLLOWER, _BLOCKED, _MUTED = Fact.OWN.value, Fact.FOLLOWER.value, Fact.BLOCKED.value, Fact.MUTED.value
_SUSPENDED, _PROTECTED = Fact.SUSPENDED.value, Fact.PROTECTED.value
_AMONG_MEMBERS, _AMONG_PARTY = (Fact.CLOSED | Fact.MEMBER).value, (Fact.DIRECT | Fact.PARTY).value
_PARTY = Fact.PARTY.value


class Graph(Protocol):
    """What was read of a user in one step: each id with when it began (ms since 1970), and the head then."""

    @property
    def following(self) -> Mapping[str, int]: ...
    @property
    def blocks(self) -> Mapping[str, int]: ...
    @property
    def blockers(self) -> Mapping[str, int]: ...
    @property
    def mutes(self) -> Mapping[str, int]: ...
    @property
    def groups(self) -> Mapping[str, int]: ...
    @property
    def head(self) -> Position: ...


class Viewer:
    """The sets of one user. ``known`` is the head at which they were read: entries up to it are in them already.

    Before :meth:`load` it is empty, and keeps the entries that pass meanwhile.
    """

    __slots__ = (
        "__weakref__", "_early", "_standing", "blockers", "blocks", "following", "groups", "known", "loaded", "mutes",
        "user_id",
    )  # fmt: skip

    def __init__(self, user_id: str, standing: Standing) -> None:
        self.user_id = user_id
        self.following: dict[str, int] = {}
        self.blocks: dict[str, int] = {}
        self.blockers: dict[str, int] = {}
        self.mutes: dict[str, int] = {}
        self.groups: dict[str, int] = {}
        self.known = START
        self.loaded = False
        self._standing = standing
        self._early: list[Entry] = []

    def load(self, graph: Graph) -> None:
        """Begin with what was read, and with what has passed since."""
        self.following, self.groups = dict(graph.following), dict(graph.groups)
        self.blocks, self.blockers, self.mutes = dict(graph.blocks), dict(graph.blockers), dict(graph.mutes)
        self.known, self.loaded = graph.head, True
        for entry in self._early:
            self.apply(entry)
        self._early.clear()

    @property
    def plain(self) -> bool:
        """Whether nothing personal concerns this user, who is then shown what everybody is shown."""
        if self.blocks or self.blockers or self.mutes:
            return False
        protected = self._standing.protected
        return not protected or (self.user_id not in protected and self.following.keys().isdisjoint(protected))

    def trusted_by(self, owner: str, then_ms: int = NOW) -> bool:
        """Whether what ``owner`` writes for followers is for this user, at ``then_ms`` as far as is still known."""
        return owner == self.user_id or self.following.get(owner, LATE) <= then_ms

    # What may be seen.

    def shows(self, entry: Entry, *, own_stream: bool = False) -> Entry | None:
        """The entry as this user may see it today: whole, without what it quotes, or not at all.

        On the stream of what concerns one (``own_stream``) whoever follows one is told, protected or not.
        """
        if not self._is_for(entry, NOW):
            return None
        return _without(entry, self._hidden(entry, NOW, self._company(entry, own_stream=own_stream)))

    def tells(self, entry: Entry) -> Entry | None:
        """For a stream that remembers nothing: :meth:`shows`, and what takes back what :meth:`reached` this user."""
        if entry.audience != PUBLIC and entry.owner is None:
            return None
        if entry.kind in TAKES_BACK:
            return self.hears_end(entry) if self.reached(entry) is not None else None
        return self.shows(entry)

    def hears_end(self, entry: Entry, *, own_stream: bool = False) -> Entry:
        """What takes something back that was shown to this user, without the status around it if that is hidden now.

        A quote is taken back as it was shown; where that is forgotten, without its original.
        """
        if entry.kind == "delete":
            return entry if entry.quoted is None else self.reached(entry) or entry.without_original()
        return entry if self.shows(entry, own_stream=own_stream) is not None else entry.without_status()

    def reached(self, entry: Entry) -> Entry | None:
        """The status or the comment that an entry brings or takes back, as it was shown to this user at the time.

        As far as is still known: what began since then is not counted, what ended since then is forgotten.
        """
        then_ms = made_ms(int(entry.subject or 0))
        if not self._is_for(entry, then_ms):
            return None
        return _without(entry, self._hidden(entry, then_ms, self._company(entry, own_stream=False)))

    def _hidden(self, entry: Entry, then_ms: int, company: int) -> list[str]:
        """Those shown by the entry whom this user is not to see."""
        return [uid for uid in entry.actors if not _SHOWN[self._facts(uid, then_ms) | company]]

    def _is_for(self, entry: Entry, then_ms: int) -> bool:
        """Whether the audience of the entry has this user in it."""
        if entry.audience == PUBLIC:
            return True
        if (owner := entry.owner) is not None:
            return self.trusted_by(owner, then_ms)
        if (group := entry.group) is not None:
            return self.groups.get(group, LATE) <= then_ms or (
                entry.kind in ("group_join", "group_leave", "group_create") and entry.event.author == self.user_id
            )
        return self.user_id in entry.addressees

    def _company(self, entry: Entry, *, own_stream: bool) -> int:
        """The facts that come from where it was said, not from who said it."""
        if entry.audience == PUBLIC:
            told = own_stream and entry.kind in ("follow", "unfollow") and self.user_id in entry.actors
            return _PARTY if told else 0
        return 0 if entry.owner is not None else _AMONG_MEMBERS if entry.group is not None else _AMONG_PARTY

    def _facts(self, uid: str, then_ms: int) -> int:
        """The facts between this user and another; standing is one of today's only, since audiences keep the past."""
        bits = _OWN if uid == self.user_id else 0
        if self.following.get(uid, LATE) <= then_ms:
            bits |= _FOLLOWER
        if self.blocks.get(uid, LATE) <= then_ms or self.blockers.get(uid, LATE) <= then_ms:
            bits |= _BLOCKED
        if self.mutes.get(uid, LATE) <= then_ms:
            bits |= _MUTED
        if then_ms == NOW:
            if uid in self._standing.suspended:
                bits |= _SUSPENDED
            if uid in self._standing.protected:
                bits |= _PROTECTED
        return bits

    # What changes it.

    def apply(self, entry: Entry) -> None:
        """Change as an entry says that concerns this user."""
        if not self.loaded:
            self._early.append(entry)
        elif entry.position.n > self.known.n:
            self._change(entry)

    def _change(self, entry: Entry) -> None:
        kind, author, when = entry.kind, entry.event.author or "", entry.position.ms
        if kind.startswith("group_"):
            _set(self.groups, entry.group or "", None if kind in ("group_leave", "group_delete") else when)
            return
        other = next(iter(entry.event.people - {self.user_id}), "")
        began = None if kind.startswith("un") else when
        if kind in ("follow", "unfollow") and author == self.user_id:
            _set(self.following, other, began)
        elif kind in ("block", "unblock"):
            _set(self.blocks if author == self.user_id else self.blockers, other, began)
        elif kind in ("mute", "unmute") and author == self.user_id:
            _set(self.mutes, other, began)


def _without(entry: Entry, hidden: list[str]) -> Entry | None:
    """The entry without those who must be hidden: a quote can do without its original, and nothing else can."""
    if not hidden:
        return entry
    return entry.without_original() if hidden == [entry.quoted] and entry.quoted != entry.event.author else None


def _set(which: dict[str, int], key: str, when: int | None) -> None:
    if when is None:
        which.pop(key, None)
    else:
        which[key] = when
