"""The promises about who sees what, once more in plain Python: sets of pairs, and a history that forgets nothing.

Nothing of the hub is used here. What a store would do (a block cuts both follows) is done here too.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Got = tuple[str, str, bool]
"""What arrived: its kind, what it is about, and whether it came without its original (or the status around it)."""


@dataclass
class State:
    """The graph at one moment."""

    follows: set[tuple[str, str]] = field(default_factory=set)
    blocks: set[tuple[str, str]] = field(default_factory=set)
    mutes: set[tuple[str, str]] = field(default_factory=set)
    protected: set[str] = field(default_factory=set)
    suspended: set[str] = field(default_factory=set)
    groups: set[tuple[str, str]] = field(default_factory=set)


@dataclass
class Happening:
    """One entry as the oracle knows it; ``before`` is the state just before it.

    ``brought`` is the post or the comment that it takes back, ``under`` the post to which something was done.
    """

    n: int
    kind: str
    audience: str
    author: str
    shown: list[str]
    about: str
    before: State
    text: str = ""
    quoted: str | None = None
    original: int | None = None
    brought: "Happening | None" = None
    under: "Happening | None" = None
    deleted_n: int | None = None
    others: tuple[str, ...] = ()


def hides(viewer: str, actor: str, now: State, *, lifted: bool) -> bool:
    """Whether what an actor does is hidden from a viewer; ``lifted`` says that protection does not matter there."""
    if actor in now.suspended:
        return True
    if actor == viewer:
        return False
    if (viewer, actor) in now.blocks or (actor, viewer) in now.blocks or (viewer, actor) in now.mutes:
        return True
    return actor in now.protected and (viewer, actor) not in now.follows and not lifted


def for_whom(viewer: str, h: Happening, now: State) -> bool:
    """Whether the audience has the viewer in it."""
    which, _, who = h.audience.partition(":")
    if which == "followers":
        return viewer == who or (viewer, who) in now.follows
    if which == "group":
        return (viewer, who) in now.groups or (h.kind in ("group_join", "group_leave") and h.author == viewer)
    return which == "public" or viewer in who.split(",")


def seen(viewer: str, h: Happening, now: State, *, own: bool) -> str:
    """How a viewer sees it: ``whole``, ``bare`` (without what it quotes) or ``not``."""
    if not for_whom(viewer, h, now):
        return "not"
    lifted = h.audience.startswith(("group:", "users:"))
    if own and h.kind in ("follow", "unfollow") and viewer in h.shown:
        lifted = True
    hidden = {actor for actor in h.shown if hides(viewer, actor, now, lifted=lifted)}
    if not hidden:
        return "whole"
    return "bare" if hidden == {h.quoted} and h.quoted != h.author else "not"


def seen_by_all(h: Happening, now: State) -> str:
    """How an impersonal stream has it."""
    outcast = now.protected | now.suspended
    return "whole" if h.audience == "public" and not outcast & set(h.shown) else "not"


@dataclass
class Listener:
    """One stream: whose, what it asks for, and from where to where it replayed when it was opened."""

    user: str
    asks: Callable[[Happening, State], bool]
    start_n: int
    opened_n: int
    today: State
    own: bool = False
    impersonal: bool = False
    graph: bool = False

    def expects(self, history: list[Happening]) -> list[tuple[Got, bool]]:
        """What must arrive in order; where the second is False nobody can know, since what ended is forgotten."""
        expected: list[tuple[Got, bool]] = []
        for h in history:
            if h.n <= self.start_n:
                continue
            if h.brought is not None:
                told = self.end(h, h.brought, history)
                if told is not None:
                    expected.append(((h.kind, h.about, self._bared(h)), told))
            elif (how := self.sees(h)) != "not" and not self._gone(h):
                bare = how == "bare" or self._original_gone(h, history)
                expected.append(((h.kind, h.about, bare), True))
        return expected

    def scanned_n(self, h: Happening) -> int | None:
        """The head at which it was read for this stream; None if that heard it live."""
        return self.opened_n if h.n <= self.opened_n else None

    def scanned(self, h: Happening) -> State:
        """The state when it was read for this stream."""
        return self.today

    def _now(self, h: Happening) -> State:
        if self.scanned_n(h) is not None:
            return self.scanned(h)
        if h.kind != "unprotect":
            return h.before
        after = deepcopy(h.before)
        after.protected.discard(h.author)
        return after

    def sees(self, h: Happening) -> str:
        """How this stream must have it: ``whole``, ``bare`` or ``not``."""
        now = self._now(h)
        if not self.asks(h, self.today if h.n <= self.opened_n else h.before):
            return "not"
        if self.impersonal:
            return seen_by_all(h, now)
        if not self.own and h.audience.startswith(("group:", "users:")):
            return "not"
        return seen(self.user, h, now, own=self.own)

    def _gone(self, h: Happening) -> bool:
        return any(one is not None and self._gone_by(one, self.scanned_n(h)) for one in (h, h.under))

    def _gone_by(self, h: Happening, n: int | None) -> bool:
        return n is not None and h.deleted_n is not None and h.deleted_n <= n

    def _bared(self, h: Happening) -> bool:
        """Whether what takes a comment back comes without the status under which that stood."""
        if h.kind == "delete":
            return False
        now = self._now(h)
        hidden = seen_by_all(h, now) if self.impersonal else seen(self.user, h, now, own=self.own)
        return self._gone(h) or hidden == "not"

    def _original_gone(self, h: Happening, history: list[Happening]) -> bool:
        return h.original is not None and self._gone_by(history[h.original - 1], self.scanned_n(h))

    def end(self, h: Happening, post: Happening, history: list[Happening]) -> bool | None:
        """True: it must arrive; None: it must not; False: it may."""
        if self.impersonal:
            return True if h.audience == "public" and self.asks(post, self._now(h)) else None
        if not self.own and h.audience.startswith(("group:", "users:")):
            return None
        if post.n > self.opened_n:
            return True if self.sees(post) != "not" else None
        if post.n > self.start_n and self.sees(post) != "not" and not self._gone(post) and not self.reached(post):
            return self.graph  # a replay showed it, by today; a stream without memory may forget
        known, at_posting = self._now(h), post.before
        if self.forgotten(post, history[post.n : max(h.n, self.opened_n)], known):
            return False
        asked = self.asks(post, self.today if post.n > self.start_n and self.graph else known)
        return True if asked and seen(self.user, post, at_posting, own=self.own) != "not" else None

    def reached(self, post: Happening) -> bool:
        """Whether it could be seen when it was written."""
        return seen(self.user, post, post.before, own=self.own) != "not"

    def forgotten(self, post: Happening, later: list[Happening], known: State) -> bool:
        """Whether what decided when it was posted has ended since, be it that it began again."""
        states = [*(h.before for h in later), known]
        group = post.audience.partition(":")[2]
        if (self.user, group) in post.before.groups and any((self.user, group) not in s.groups for s in states):
            return True
        return any(self._ended(who, post.before, states) for who in {*post.shown, post.author})

    def _ended(self, who: str, then: State, states: list[State]) -> bool:
        pair, back = (self.user, who), (who, self.user)
        follows = [pair in state.follows for state in (then, *states)]
        if who in then.suspended or len(set(follows)) > 1:
            return True
        for relation, one in (("blocks", pair), ("blocks", back), ("mutes", pair)):
            if one in getattr(then, relation) and any(one not in getattr(state, relation) for state in states):
                return True
        return False


def arrived(messages: list[dict[str, Any]]) -> list[Got]:
    """What a stream was sent, without control messages."""
    found: list[Got] = []
    for message in messages:
        kind = str(message["kind"])
        if kind in ("hello", "heartbeat", "warning", "gap", "goodbye"):
            continue
        status = message.get("status") or {}
        bare = kind == "post" and "original" in status and status["original"] is None
        if kind == "uncomment":
            bare = "message" not in status
        noun = {"post": "status", "delete": "status", "comment": "comment", "uncomment": "comment"}.get(kind)
        about = str(message["cursor"] if noun is None else message[noun]["id"])
        found.append((kind, about, bare))
    return found
