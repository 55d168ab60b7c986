"""An entry of the log: where it stands, what kind it is, its bytes and the filters' view of it.

On the log an entry has the fields ``n`` (contiguous number), ``k`` (kind), ``a`` (audience)
and ``e`` (JSON). The same travels on ``PUBLISH events:<kind>`` as ``<id> <n> <k> <a> <json>``.
The JSON is ``{"wire": {…}, "facts": {…}?}``: ``wire`` is copied to clients byte for byte, ``facts``
is for matching only (a delete says ids only, and is matched as its post was).

An entry is decoded at most once a process, and framed at most once a framing: what is
computed is kept on the entry, which all its receivers share.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from filters.entities import Cashtag, Entities, Hashtag, Mention, Url
from filters.event import Event

EPOCH_MS = 1_704_067_200_000
"""2024-01-01T00:00:00Z: ids count from here, so that they fit the 53 bits of a double until 2093."""

PUBLIC = "public"
"""The audience of what everyone may see; entries that only steer the server (revocation) have ``-``."""

PUBLIC_KINDS = ("post", "delete", "follow", "unfollow")
"""The kinds that are written today and that a stream can ask for."""

INTERNAL_KINDS = ("revoke",)
"""The kinds that end streams instead of being delivered on them."""

_OF_STATUSES = frozenset({"post", "delete"})
_OF_PEOPLE = frozenset({"follow", "unfollow"})

CHANNELS = tuple(f"events:{kind}" for kind in (*PUBLIC_KINDS, *INTERNAL_KINDS))
"""One channel a kind, so that a plain Redis listener may SUBSCRIBE to one of them."""


class Position(NamedTuple):
    """A place on the log: the entry's (ms, seq) and its contiguous number n, in log order."""

    ms: int
    seq: int
    n: int

    @property
    def entry_id(self) -> str:
        """The Redis stream id, ``<ms>-<seq>``."""
        return f"{self.ms}-{self.seq}"

    @property
    def cursor(self) -> str:
        """What clients hold, opaque to them: ``<ms>-<seq>.<n>``."""
        return f"{self.ms}-{self.seq}.{self.n}"

    @property
    def status_number(self) -> int:
        """The id of a status made at this place, as a number: ids order as the log does."""
        return (self.ms - EPOCH_MS) * 4096 + self.seq

    def before(self) -> "Position":
        """The place just below this one: from there, this entry is the next."""
        if self.n == 1:
            return START
        ms, seq = (self.ms, self.seq - 1) if self.seq else (self.ms - 1, 4095)
        return Position(ms, seq, self.n - 1)


START = Position(0, 0, 0)
"""Before the first entry of an empty log."""


def iso(ms: int) -> str:
    """``ms`` since 1970 as ISO 8601 in UTC with milliseconds, the one form of time on the wire."""
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


class MalformedEntry(ValueError):
    """Bytes on a channel or the log that are no entry of ours: counted and skipped, never fatal."""


class _Mention(msgspec.Struct):
    login: str
    indices: tuple[int, int]
    id: str | None = None


class _Tag(msgspec.Struct):
    text: str
    indices: tuple[int, int]


class _Url(msgspec.Struct):
    url: str
    display_url: str
    expanded_url: str
    indices: tuple[int, int]


class _Entities(msgspec.Struct):
    mentions: list[_Mention] = []
    hashtags: list[_Tag] = []
    cashtags: list[_Tag] = []
    urls: list[_Url] = []


class _Location(msgspec.Struct):
    lon: float
    lat: float


class _Place(msgspec.Struct):
    box: tuple[float, float, float, float] | None = None


class _Status(msgspec.Struct):
    """As much of a status as the filters look at."""

    id: str
    uid: str
    message: str = ""
    lang: str | None = None
    entities: _Entities = msgspec.field(default_factory=_Entities)
    location: _Location | None = None
    place: _Place | None = None
    in_reply_to_uid: str | None = None
    original: "_Status | None" = None


class _User(msgspec.Struct):
    id: str


class _Wire(msgspec.Struct):
    status: _Status | None = None
    source: _User | None = None
    target: _User | None = None


class Revocation(msgspec.Struct):
    """Whose streams end: those of one token (``jti``), or all of a user's."""

    uid: str
    jti: str | None = None


class _Facts(msgspec.Struct):
    status: _Status | None = None


class _Body(msgspec.Struct):
    wire: msgspec.Raw
    facts: _Facts | None = None


_NUMBERS = re.compile(rb"(\d{1,15})-(\d{1,6})\.(\d{1,15})")

_decode_body = msgspec.json.Decoder(_Body).decode
_decode_wire = msgspec.json.Decoder(_Wire).decode


OVERHEAD_BYTES = 512
"""What an entry weighs beside its body while nothing of it is decoded."""


class Entry:
    """One entry of the log, shared by everyone who receives it.

    ``size`` is its weight in bytes for bounded buffers. ``gone`` says that the post it carries was found deleted when
    its page was read, so that a replay leaves it out; ``original_gone`` says the same of what it reposts, which is
    ``original`` (known once :attr:`event` was looked at).
    """

    __slots__ = (
        "_event", "_frames", "_wire",
        "audience", "body", "gone", "kind", "original", "original_gone", "position", "size",
    )  # fmt: skip

    def __init__(self, position: Position, kind: str, audience: str, body: bytes) -> None:
        self.position = position
        self.kind = kind
        self.audience = audience
        self.body = body
        self.size = len(body) + OVERHEAD_BYTES
        self.gone = False
        self.original: str | None = None
        self.original_gone = False
        self._event: Event | None = None
        self._wire: bytes | None = None
        self._frames: dict[object, bytes] | None = None

    @property
    def event(self) -> Event:
        """The filters' view; raises :class:`MalformedEntry` if the JSON is not ours."""
        if self._event is None:
            self._decode()
        assert self._event is not None
        return self._event

    @property
    def wire(self) -> bytes:
        """The members that follow ``kind``, ``cursor`` and ``at`` on the wire, as one JSON object."""
        if self._wire is None:
            self._decode()
        assert self._wire is not None
        return self._wire

    def revocation(self) -> Revocation:
        """What a ``revoke`` entry says; raises :class:`MalformedEntry`."""
        try:
            return msgspec.json.decode(self.wire, type=Revocation)
        except msgspec.MsgspecError as error:
            raise MalformedEntry(str(error)) from error

    def data(self) -> bytes:
        """The whole message as one JSON object: ``{"kind", "cursor", "at", …}``."""
        position = self.position
        head = f'{{"kind":"{self.kind}","cursor":"{position.cursor}","at":"{iso(position.ms)}",'
        return head.encode() + self.wire[1:]

    def frame(self, encode: Callable[[str, str, bytes], bytes]) -> bytes:
        """The message as ``encode(cursor, kind, data)`` frames it; each framing is made once."""
        if self._frames is None:
            self._frames = {}
        made = self._frames.get(encode)
        if made is None:
            made = self._frames[encode] = encode(self.position.cursor, self.kind, self.data())
        return made

    def cool(self) -> None:
        """Let go of all that can be computed again: decoded and framed, an entry weighs ten times its bytes."""
        self._event = self._wire = self._frames = None

    def _decode(self) -> None:
        try:
            body = _decode_body(self.body)
            wire = _decode_wire(body.wire)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise MalformedEntry(str(error)) from error
        if bytes(body.wire) == b"{}":
            raise MalformedEntry("nothing happened")
        status = body.facts.status if body.facts is not None else None
        self._event = _view(self.kind, status or wire.status, wire)
        self._wire = bytes(body.wire)
        shown = wire.status.original if wire.status is not None else None
        self.original = None if shown is None else shown.id

    def without_original(self) -> "Entry":
        """The same entry for a replay after the original was deleted: a repost stays, what it showed does not."""
        wire = msgspec.json.decode(self.wire)
        wire["status"]["original"] = None
        return Entry(self.position, self.kind, self.audience, msgspec.json.encode({"wire": wire}))


def _view(kind: str, status: _Status | None, wire: _Wire) -> Event:
    if status is not None:
        return _status_view(kind, status)
    if kind in _OF_STATUSES or (kind in _OF_PEOPLE and (wire.source is None or wire.target is None)):
        message = f"a {kind} without what it is about"
        raise MalformedEntry(message)
    people = frozenset(user.id for user in (wire.source, wire.target) if user is not None)
    return Event(kind, author=wire.source.id if wire.source else None, people=people, sampled=False)


def _status_view(kind: str, status: _Status) -> Event:
    """What follow, track and locations look at; a repost is matched by its original's text."""
    if not (status.id.isascii() and status.id.isdecimal()):
        raise MalformedEntry("a status' id is a decimal number")
    repost = status.original is not None and not status.message
    shown = status.original if repost and status.original is not None else status
    return Event(
        kind,
        author=status.uid,
        people=_people(status, repost=repost),
        status_id=status.id,
        text=shown.message,
        entities=_entities(shown.entities),
        lang=shown.lang,
        point=None if repost or shown.location is None else (shown.location.lon, shown.location.lat),
        box=None if repost or shown.place is None else shown.place.box,
    )


def _people(status: _Status, *, repost: bool) -> frozenset[str]:
    """By, reply to (also by hand: the text begins with @login), repost by or of; not who is merely mentioned."""
    people = {status.uid}
    if status.in_reply_to_uid is not None:
        people.add(status.in_reply_to_uid)
    if repost and status.original is not None:
        people.add(status.original.uid)
    first = status.entities.mentions[0] if status.entities.mentions else None
    if first is not None and first.id is not None and not status.message[: first.indices[0]].strip():
        people.add(first.id)
    return frozenset(people)


def _entities(found: _Entities) -> Entities:
    return Entities(
        mentions=tuple(Mention(m.login, m.indices) for m in found.mentions),
        hashtags=tuple(Hashtag(t.text, t.indices) for t in found.hashtags),
        cashtags=tuple(Cashtag(t.text, t.indices) for t in found.cashtags),
        urls=tuple(Url(u.url, u.display_url, u.expanded_url, u.indices) for u in found.urls),
    )


def parse_message(message: bytes) -> Entry:
    """The entry in a PUBLISHed ``<id> <n> <k> <a> <json>``, looked into; raises :class:`MalformedEntry`.

    What is taken for the next entry of the log hides the real one, so nothing half right passes here.
    """
    try:
        entry_id, n, kind, audience, body = message.split(b" ", 4)
        entry = make_entry(entry_id, n, kind, audience, body)
    except ValueError as error:
        raise MalformedEntry("not '<id> <n> <kind> <audience> <json>'") from error
    if not EPOCH_MS <= entry.position.ms < EPOCH_MS + (1 << 41) or entry.kind not in (*PUBLIC_KINDS, *INTERNAL_KINDS):
        raise MalformedEntry("of another time, or of no kind that is known")
    _ = entry.event
    return entry


def make_entry(entry_id: bytes, n: bytes, kind: bytes, audience: bytes, body: bytes) -> Entry:
    """The entry with these raw fields; raises ValueError where a number or a name is none."""
    numbers = _NUMBERS.fullmatch(entry_id + b"." + n)
    if numbers is None:
        raise ValueError("an entry is named by '<ms>-<seq>' and counted by a number")
    if not kind.replace(b"_", b"a").isalpha() or b"\n" in body or b"\r" in body:
        raise ValueError("a kind is letters, a body is one line: both are copied into frames")
    return Entry(Position(*map(int, numbers.groups())), kind.decode("ascii"), audience.decode("ascii"), body)
