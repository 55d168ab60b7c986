"""A plain model of who may see what: sets of pairs, and a history that keeps everything. It uses no code of the hub."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

Received = tuple[str, str, bool]
"""A received event: its kind, the id that it names, and whether its original or status was left out."""


PROTECTIONS = ("protect", "unprotect")
REACTIONS = ("like", "comment")


@dataclass
class State:
    follows: set[tuple[str, str]] = field(default_factory=set)
    blocks: set[tuple[str, str]] = field(default_factory=set)
    mutes: set[tuple[str, str]] = field(default_factory=set)
    protected: set[str] = field(default_factory=set)
    suspended: set[str] = field(default_factory=set)
    groups: set[tuple[str, str]] = field(default_factory=set)


@dataclass
class HistoryEntry:
    """An entry, with the state just before it. ``undoes`` is the post or comment that a delete undoes."""

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
    undoes: "HistoryEntry | None" = None
    on_post: "HistoryEntry | None" = None
    deleted_n: int | None = None
    others: tuple[str, ...] = ()


def hides(viewer: str, actor: str, now: State, *, lifted: bool) -> bool:
    """Whether an actor is hidden from a viewer. With ``lifted``, protection does not count."""
    if actor in now.suspended:
        return True
    if actor == viewer:
        return False
    if (viewer, actor) in now.blocks or (actor, viewer) in now.blocks or (viewer, actor) in now.mutes:
        return True
    return actor in now.protected and (viewer, actor) not in now.follows and not lifted


def is_open(h: HistoryEntry, now: State) -> bool:
    """Whether an entry is for everybody, perhaps because the protection under which it was made has ended."""
    which, _, who = h.audience.partition(":")
    made_under_protection = which == "followers" or (which == "users" and h.kind in REACTIONS)
    return which == "public" or (made_under_protection and not now.protected & set(who.split(",")))


def removal_audience(gone: HistoryEntry, later: list[HistoryEntry], now: State) -> str:
    """Return the audience of a delete, as the store chooses it: everybody if everybody could read what goes."""
    readable = [state for state in (*(h.before for h in later), now) if is_open(gone, state)]
    if gone.kind == "comment" and gone.audience != "public":  # it is read by those who may see both its users
        readable = [state for state in readable if not state.protected & set(gone.shown)]
    return "public" if readable else gone.audience


def reaction_audience(actor: str, author: str, now: State) -> str:
    """Return the audience of what ``actor`` does with a post of ``author`` that is in no group."""
    hidden = [uid for uid in dict.fromkeys((actor, author)) if uid in now.protected]
    return "public" if not hidden else f"followers:{hidden[0]}" if len(hidden) == 1 else f"users:{actor},{author}"


def in_audience(viewer: str, h: HistoryEntry, now: State) -> bool:
    """Whether the audience includes the viewer."""
    which, _, who = h.audience.partition(":")
    if which == "followers":
        return True  # those who may not read the author are kept out by `hides`
    if which == "group":
        return (viewer, who) in now.groups or (h.kind in ("group_join", "group_leave") and h.author == viewer)
    return is_open(h, now) or viewer in who.split(",")


def visibility(viewer: str, h: HistoryEntry, now: State, *, own: bool) -> str:
    """Return ``whole``, ``bare`` (without the quoted original) or ``not``."""
    if not in_audience(viewer, h, now):
        return "not"
    lifted = h.kind in PROTECTIONS or not (is_open(h, now) or h.audience.startswith("followers:"))
    if viewer in h.shown and (h.kind == "unfollow" or (own and h.kind == "follow")):
        lifted = True
    return _shown_as(h, {actor for actor in h.shown if hides(viewer, actor, now, lifted=lifted)})


def public_visibility(h: HistoryEntry, now: State) -> str:
    """Return the same for a stream that does not depend on its user."""
    outcast = now.suspended if h.kind in PROTECTIONS else now.protected | now.suspended
    return _shown_as(h, outcast & set(h.shown)) if is_open(h, now) else "not"


def _shown_as(h: HistoryEntry, hidden: set[str]) -> str:
    if not hidden:
        return "whole"
    return "bare" if hidden == {h.quoted} and h.quoted != h.author else "not"


@dataclass
class StreamModel:
    """One stream: its user, its filter, and the positions from which and at which it was opened.

    ``unsure`` are the numbers of the entries of which it is not known whether they were shown as the state was before
    them or as it was when they were scanned.
    """

    user: str
    matches: Callable[[HistoryEntry, State], bool]
    start_n: int
    opened_n: int
    today: State = field(repr=False)
    own: bool = False
    viewer_independent: bool = False
    graph: bool = False
    unsure: set[int] = field(default_factory=set, repr=False)

    def expects(self, history: list[HistoryEntry]) -> list[tuple[Received, bool]]:
        """Return the expected messages in order, and whether each must arrive (else it may)."""
        expected: list[tuple[Received, bool]] = []
        for h in history:
            if h.n <= self.start_n:
                continue
            if h.undoes is not None:
                must = self.expects_delete(h, h.undoes, history)
                if must is not None:
                    expected.append(((h.kind, h.about, self._bared(h)), must))
            elif (how := self.sees(h)) != "not" and not self._gone(h):
                bare = how == "bare" or self._original_gone(h, history)
                expected.append(((h.kind, h.about, bare), h.n not in self.unsure))
            elif h.n in self.unsure and self.sees(h, h.before) != "not":
                expected.append(((h.kind, h.about, False), False))
        return expected

    def scanned_n(self, h: HistoryEntry) -> int | None:
        """Return the head at which the entry was read for this stream; None if it arrived live."""
        return self.opened_n if h.n <= self.opened_n else None

    def scanned(self, h: HistoryEntry) -> State:
        """Return the state when the entry was read for this stream."""
        return self.today

    def _now(self, h: HistoryEntry) -> State:
        """Return the state by which the entry is shown. A follow counts at its own entry, also of a protected user."""
        if self.scanned_n(h) is not None:
            return self.scanned(h)
        if h.kind != "follow":
            return h.before
        (followed,) = {*h.shown} - {h.author}
        return replace(h.before, follows=h.before.follows | {(h.author, followed)})

    def sees(self, h: HistoryEntry, now: State | None = None) -> str:
        """Return how this stream must show the entry: ``whole``, ``bare`` or ``not``. ``now`` is the state for that."""
        now = now or self._now(h)
        if not self.matches(h, self.today if h.n <= self.opened_n else h.before):
            return "not"
        if self.viewer_independent:
            return public_visibility(h, now)
        if not self.own and h.audience.startswith(("group:", "users:")) and not is_open(h, now):
            return "not"
        return visibility(self.user, h, now, own=self.own)

    def _gone(self, h: HistoryEntry) -> bool:
        return any(one is not None and self._gone_by(one, self.scanned_n(h)) for one in (h, h.on_post))

    def _gone_by(self, h: HistoryEntry, n: int | None) -> bool:
        return n is not None and h.deleted_n is not None and h.deleted_n <= n

    def _bared(self, h: HistoryEntry) -> bool:
        """Whether what takes a comment back comes without the status under which that stood."""
        if h.kind == "delete":
            return False
        now = self._now(h)
        hidden = public_visibility(h, now) if self.viewer_independent else visibility(self.user, h, now, own=self.own)
        return self._gone(h) or hidden == "not"

    def _original_gone(self, h: HistoryEntry, history: list[HistoryEntry]) -> bool:
        return h.original is not None and self._gone_by(history[h.original - 1], self.scanned_n(h))

    def expects_delete(self, h: HistoryEntry, post: HistoryEntry, history: list[HistoryEntry]) -> bool | None:
        """True: the delete must arrive. None: it must not. False: it may.

        It must, if the user could see the post at some time, however late, and the filters match it now. Where they
        follow the user's graph, it must too if they matched it when it was sent or read. What goes to the followers
        of a user need not reach others, who could read a comment since this user opened because they follow the other.
        """
        states = [one.before for one in history[post.n - 1 : h.n]]
        if self.viewer_independent:
            opened = h.audience == "public"
            return True if opened and self.matches(post, self._now(h)) else None
        if not self.own and h.audience.startswith(("group:", "users:")):
            return None
        owner = h.audience.removeprefix("followers:")
        is_owners = owner in (self.user, h.audience) or any((self.user, owner) in state.follows for state in states)
        if self.was_sent(post) and (self.matches(post, self._now(h)) or self.graph):
            return is_owners or self.scanned_n(post) is None
        later = [] if self.scanned_n(h) is None else [one.before for one in history[h.n : self.scanned_n(h)]]
        if h.audience == "public":  # somebody judged that everybody could see it
            states = [replace(state, protected=set()) for state in states]
        if not self.could_see(post, states, [*later, self._now(h)]):
            return None
        if self.matches(replace(post, audience=h.audience), self._now(h)):
            return is_owners
        is_read_late = post.n > self.start_n and self.scanned_n(post) is not None
        matched = self.matches(post, self.today if post.n <= self.opened_n else post.before)
        return self.was_visible(post) if is_read_late and self.graph and matched else None

    def was_sent(self, post: HistoryEntry) -> bool:
        """Whether this stream was sent the post or comment, live or by a replay."""
        return post.n > self.start_n and self.sees(post) != "not" and not self._gone(post)

    def could_see(self, post: HistoryEntry, states: list[State], later: list[State]) -> bool:
        """Whether the user could see the post in one of ``states``, as far as the server knows.

        It does not know blocks and mutes that have ended, in these states or later, and no suspensions.
        """
        blocks = set.intersection(*(state.blocks for state in (*states, *later)))
        mutes = set.intersection(*(state.mutes for state in (*states, *later)))
        known = (replace(state, blocks=blocks, mutes=mutes, suspended=set()) for state in states)
        return any(visibility(self.user, post, state, own=self.own) != "not" for state in known)

    def was_visible(self, post: HistoryEntry) -> bool:
        """Whether the user could see the post when it was written."""
        return visibility(self.user, post, post.before, own=self.own) != "not"


def received_events(messages: list[dict[str, Any]]) -> list[Received]:
    """Return what a stream was sent, without control messages."""
    found: list[Received] = []
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


def matches_word(word: str, h: HistoryEntry, _: State) -> bool:
    """Whether `track` with this word matches."""
    return h.kind in ("post", "delete", "comment", "uncomment") and word in h.text


def matches_anything(h: HistoryEntry, _: State) -> bool:
    """Whether `firehose` matches."""
    graph = ("follow", "unfollow", "user_update", "protect", "unprotect")
    return h.kind in ("post", "delete", "like", "comment", "uncomment", *graph)


def matches_people(ids: set[str], h: HistoryEntry, now: State) -> bool:
    """Whether `follow` with these ids matches."""
    if h.kind in ("like", "comment", "uncomment", "follow", "unfollow"):
        return bool(ids & set(h.shown))
    return matches_anything(h, now) and bool(ids & {h.author, *h.others})


def matches_followed(user: str, h: HistoryEntry, now: State) -> bool:
    """Whether `follow=@me` of this user matches."""
    return h.kind in ("post", "delete") and any((user, uid) in now.follows for uid in (h.author, *h.others))


def matches_home(user: str, h: HistoryEntry, now: State) -> bool:
    """Whether the own stream of this user has the entry."""
    if not h.audience.startswith(("public", "followers:")) and not is_open(h, now):
        return True
    if h.kind in ("post", "delete", "user_update", "protect", "unprotect"):
        return h.author == user or (user, h.author) in now.follows
    return user in h.shown


def compare(got: list[Received], expected: list[tuple[Received, bool]], ours: StreamModel) -> None:
    """Compare received with expected messages, in order. Messages that may arrive may be absent."""
    at = 0
    for thing, must in expected:
        if at < len(got) and got[at] == thing:
            at += 1
        else:
            assert not must, (thing, got[at : at + 3], ours)
    assert got[at:] == [], ours
