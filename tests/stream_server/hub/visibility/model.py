"""A plain model of who may see what: sets of pairs, and a history that keeps everything. It uses no code of the hub."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

Received = tuple[str, str, bool, str]
"""A received event: its kind, the id that it names, whether its original or status was left out, and its texts."""


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
    """An entry, with the state just before it. ``undoes`` is the post or comment that a delete undoes.

    ``edits`` is the post that an edit changes, and ``later`` has the edits of a post. ``text`` is what filters search:
    that of the original, for a repost without words.
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
    undoes: "HistoryEntry | None" = None
    on_post: "HistoryEntry | None" = None
    deleted_n: int | None = None
    others: tuple[str, ...] = ()
    room: int | None = None
    edits: "HistoryEntry | None" = None
    later: "list[HistoryEntry]" = field(default_factory=list, repr=False)

    @property
    def is_wordless(self) -> bool:
        """Whether it is a repost without words."""
        return self.original is not None and self.quoted is None

    def version_at(self, n: int) -> "HistoryEntry":
        """Return the last version of the post in the first ``n`` entries of the history."""
        return next((edit for edit in reversed(self.later) if edit.n <= n), self)


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
    if own and h.kind in ("follow", "unfollow") and viewer in h.shown:
        lifted = True
    if h.kind == "unfollow" and h.author == viewer:
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
    them or as it was when they were scanned. A stream ``is_plain`` if it asked for posts and deletes only.
    """

    user: str
    matches: Callable[[HistoryEntry, State], bool]
    start_n: int
    opened_n: int
    today: State = field(repr=False)
    own: bool = False
    viewer_independent: bool = False
    graph: bool = False
    is_plain: bool = False
    unsure: set[int] = field(default_factory=set, repr=False)

    def expects(self, history: list[HistoryEntry]) -> list[tuple[Received, bool]]:
        """Return the expected messages in order, and whether each must arrive (else it may)."""
        expected: list[tuple[Received, bool]] = []
        for h in history:
            if h.n <= self.start_n or (self.is_plain and h.kind not in ("post", "delete")):
                continue
            if h.undoes is not None:
                must = self.expects_delete(h, h.undoes, history)
                if must is not None:
                    expected.append(((h.kind, h.about, self._bared(h), ""), must))
            elif (how := self.sees_last(h, history)) != "not" and not self._gone(h):
                bare = how == "bare" or self._original_gone(h, history)
                is_sure = h.n not in self.unsure
                expected.append(((h.kind, h.about, bare, self._texts(h, history, bare=bare)), is_sure))
                if not is_sure and h.edits is not None:
                    expected.append((("left", h.about, False, ""), False))
            elif h.edits is not None:
                if h.n in self.unsure:
                    expected += [((h.kind, h.about, bare, text), False) for bare, text in self._live_forms(h, history)]
                must = self.expects_delete(h, h.edits, history)
                if must is not None:
                    expected.append((("left", h.about, False, ""), must and h.n not in self.unsure))
            elif h.n in self.unsure and self.sees(h, h.before) != "not":
                expected.append(((h.kind, h.about, False, self._texts(h, history, bare=False)), False))
        return expected

    def _live_forms(self, h: HistoryEntry, history: list[HistoryEntry]) -> list[tuple[bool, str]]:
        """Return what this stream shows of an edit if it goes by the state before the edit."""
        how = self.sees(h, h.before)
        bare = how == "bare" or self._original_gone(h, history)
        return [] if how == "not" else [(bare, self._texts(h, history, bare=bare))]

    def _last(self, h: HistoryEntry) -> HistoryEntry:
        """Return the version of a post, or of the post that an edit changed, which this stream shows at its place."""
        return (h.edits or h).version_at(max(h.n, self.scanned_n(h) or 0))

    def _last_original(self, h: HistoryEntry, history: list[HistoryEntry]) -> HistoryEntry | None:
        original = None if h.original is None else history[h.original - 1]
        return original and original.version_at(max(h.n, self.scanned_n(h) or 0))

    def _texts(self, h: HistoryEntry, history: list[HistoryEntry], *, bare: bool) -> str:
        """Return the texts that the stream shows of a post or an edit: the last ones when it was read."""
        if h.kind not in ("post", "edit"):
            return ""
        original = None if bare else self._last_original(h, history)
        return f"{'' if h.is_wordless else self._last(h).text}|{original.text if original else ''}"

    def sees_last(self, h: HistoryEntry, history: list[HistoryEntry]) -> str:
        """Return how this stream must show the entry. Filters must match it as it was, and as it is shown."""
        shown = self._last(h)
        if h.is_wordless:
            original = self._last_original(h, history)
            assert original is not None
            shown = replace(h, text=original.text, room=original.room)
        return self.sees(h) if self.matches(shown, self._graph(h)) else "not"

    def _graph(self, h: HistoryEntry) -> State:
        """Return the state whose follows the filters use. A stream changes them where it reads a follow, also late."""
        return self.today if h.n <= self.opened_n else h.before

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
        if not self.matches(h, self._graph(h)):
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
        n = self.scanned_n(h) or (h.n if h.edits is not None else None)  # an edit has the original as it is then
        return h.original is not None and self._gone_by(history[h.original - 1], n)

    def expects_delete(self, h: HistoryEntry, post: HistoryEntry, history: list[HistoryEntry]) -> bool | None:
        """True: the delete must arrive. None: it must not. False: it may. The same for an edit that shows no status.

        It must, if the user could see the post at some time, however late, and the filters match it now. Where they
        follow the user's graph, it must too if they matched it when it was sent or read. What goes to the followers
        of a user does not reach others, who could read a comment since this user opened because they follow the other,
        but it may if they were sent the comment.

        A delete is matched by each version of the post, and such an edit by the one that it replaces. A stream may have
        remembered an earlier one. Then it may be told again that the post has left.
        """
        states = [one.before for one in history[post.n - 1 : h.n]]
        versions = [post, *(edit for edit in post.later if edit.n < h.n)]
        sought = versions[-1:] if h.edits is not None else versions
        finds = any(self.matches(replace(one, audience=h.audience), self._graph(h)) for one in sought)
        if self.viewer_independent:
            return True if h.audience == "public" and finds else None
        if not self.own and h.audience.startswith(("group:", "users:")):
            return None
        later = [] if self.scanned_n(h) is None else [one.before for one in history[h.n : self.scanned_n(h)]]
        if h.audience == "public":  # somebody judged that everybody could see it
            states = [replace(state, protected=set()) for state in states]
        could_see = self.could_see(h, post, states, [*later, self._now(h)])
        sent = [one for one in versions if self.was_sent(one)]
        if sent and (finds or self.graph):
            return could_see or self.scanned_n(sent[-1]) is None
        may_remember = h.edits is not None and any(self.matches(one, self._graph(h)) for one in versions)
        if may_remember or not could_see:
            return False if may_remember else None
        if finds:
            return True
        is_read_late = post.n > self.start_n and self.scanned_n(post) is not None
        matched = self.matches(post, self._graph(post))
        return self.was_visible(post) if is_read_late and self.graph and matched else None

    def was_sent(self, post: HistoryEntry) -> bool:
        """Whether this stream was sent the post or comment, or an edit, live or by a replay."""
        if post.n <= self.start_n or (self.is_plain and post.kind == "edit"):
            return False
        return self.sees(post) != "not" and not self._gone(post)

    def could_see(self, h: HistoryEntry, post: HistoryEntry, states: list[State], later: list[State]) -> bool:
        """Whether the user, of the audience of ``h``, could see the post in one of ``states``, as the server knows.

        It does not know blocks and mutes that have ended, in these states or later, and no suspensions.
        """
        which, _, who = h.audience.partition(":")
        blocks = set.intersection(*(state.blocks for state in (*states, *later)))
        mutes = set.intersection(*(state.mutes for state in (*states, *later)))
        read = [one for one in states if which != "followers" or who == self.user or (self.user, who) in one.follows]
        known = (replace(state, blocks=blocks, mutes=mutes, suspended=set()) for state in read)
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
        bare = kind in ("post", "edit") and "original" in status and status["original"] is None
        if kind == "uncomment":
            bare = "message" not in status
        if "left" in message:
            found.append(("left", str(message["left"]["id"]), False, ""))
            continue
        nouns = {**dict.fromkeys(("post", "edit", "delete"), "status"), "comment": "comment", "uncomment": "comment"}
        noun = nouns.get(kind)
        about = str(message["cursor"] if noun is None else message[noun]["id"])
        found.append((kind, about, bare, texts_of(kind, status)))
    return found


def texts_of(kind: str, status: dict[str, Any]) -> str:
    """Return the texts that a post or an edit shows: its own and that of its original."""
    if kind not in ("post", "edit"):
        return ""
    return f"{status['message']}|{(status.get('original') or {}).get('message', '')}"


def held_texts(messages: list[dict[str, Any]], name: str = "id") -> dict[str, str]:
    """Return what a program holds that takes posts and edits, and drops what is deleted or has left: text by id."""
    held: dict[str, str] = {}
    for message in messages:
        if message["kind"] in ("post", "edit") and "status" in message:
            held[message["status"][name]] = message["status"]["message"]
        elif message["kind"] in ("edit", "delete"):
            held.pop((message.get("left") or message["status"])[name], None)
    return held


def matches_word(word: str, h: HistoryEntry, _: State) -> bool:
    """Whether `track` with this word matches."""
    return h.kind in ("post", "edit", "delete", "comment", "uncomment") and word in h.text


def matches_room(room: int, h: HistoryEntry, _: State) -> bool:
    """Whether the rule `meta.room:` with this number matches. A repost without words has the `meta` of its original."""
    return h.kind in ("post", "edit", "delete") and h.room == room


def matches_anything(h: HistoryEntry, _: State) -> bool:
    """Whether `firehose` matches."""
    graph = ("follow", "unfollow", "user_update", "protect", "unprotect")
    return h.kind in ("post", "edit", "delete", "like", "comment", "uncomment", *graph)


def matches_people(ids: set[str], h: HistoryEntry, now: State) -> bool:
    """Whether `follow` with these ids matches."""
    if h.kind in ("like", "comment", "uncomment", "follow", "unfollow"):
        return bool(ids & set(h.shown))
    return matches_anything(h, now) and bool(ids & {h.author, *h.others})


def matches_followed(user: str, h: HistoryEntry, now: State) -> bool:
    """Whether `follow=@me` of this user matches."""
    return h.kind in ("post", "edit", "delete") and any((user, uid) in now.follows for uid in (h.author, *h.others))


def matches_home(user: str, h: HistoryEntry, now: State) -> bool:
    """Whether the own stream of this user has the entry."""
    if not h.audience.startswith(("public", "followers:")) and not is_open(h, now):
        return True
    if h.kind in ("post", "edit", "delete", "user_update", "protect", "unprotect"):
        return h.author == user or (user, h.author) in now.follows
    return user in h.shown


def compare(got: list[Received], expected: list[tuple[Received, bool]], ours: StreamModel) -> None:
    """Compare received with expected messages, in order. Messages that may arrive may be absent.

    Two messages may look the same, of which one must arrive. So each number of received messages that what was expected
    so far can explain is kept in ``reached``.
    """
    reached = {0}
    for thing, must in expected:
        taken = {at + 1 for at in reached if at < len(got) and got[at] == thing}
        if must and not taken:
            at = max(reached)
            raise AssertionError((thing, got[at : at + 3], ours))
        reached = taken if must else reached | taken
    assert got[max(reached) :] == [], ours
