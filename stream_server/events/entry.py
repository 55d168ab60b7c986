"""An entry of the log: where it stands, what kind it is, its bytes and the filters' view of it.

On the log an entry has the fields ``n`` (contiguous number), ``k`` (kind), ``a`` (audience)
and ``e`` (JSON). The same travels on ``PUBLISH events:<kind>`` as ``<id> <n> <k> <a> <json>``.
The JSON is ``{"wire": {…}, "facts": {…}?}``: ``wire`` is copied to clients byte for byte, ``facts``
is for matching only (what takes a post or a comment back says ids only, and is matched as that was).

An entry is decoded at most once a process, and framed at most once a framing: what is
computed is kept on the entry, which all its receivers share.
"""

from typing import Protocol, TypeVar

import msgspec

from filters.event import Event
from stream_server.events.entry_fields import NO_FACTS, EntryFacts, MalformedEntry, WireFields
from stream_server.events.kinds import FOLLOWERS_PREFIX, GROUP_PREFIX, KNOWN_KINDS, USERS_PREFIX
from stream_server.events.position import EPOCH_MS, POSITION_PATTERN, Position, format_iso_time
from stream_server.events.view import EntryView, ShownIds, make_view


class Revocation(msgspec.Struct):
    """Whose streams end: those of one token (``jti``), or all of a user's."""

    uid: str
    jti: str | None = None


class SavedRule(msgspec.Struct, frozen=True):
    """A rule that a user has saved: ``rule`` is its text, ``tag`` the user's own word for it, empty for none."""

    id: str
    rule: str
    tag: str = ""


class SavedRulesChange(msgspec.Struct):
    """Whose saved rules change, and how; ``removed`` are ids."""

    uid: str
    added: list[SavedRule] = []
    removed: list[str] = []


class _LostRange(msgspec.Struct):
    """What the log lost: the cursors of the newest entry that is left, and of the newest that is not."""

    start: str = msgspec.field(name="from")
    to: str


_Internal = TypeVar("_Internal", Revocation, SavedRulesChange, _LostRange)


class _EntryBody(msgspec.Struct):
    wire: msgspec.Raw
    facts: EntryFacts = NO_FACTS


_decode_body = msgspec.json.Decoder(_EntryBody).decode
_decode_wire = msgspec.json.Decoder(WireFields).decode


ENTRY_OVERHEAD_BYTES = 512
"""What an entry weighs beside its body while nothing of it is decoded."""


class EncodeEntry(Protocol):
    """How an entry becomes bytes; pure, so that the result is shared by all who frame alike.

    ``matched`` is the JSON of what matched, None where nobody asks. No bytes at all mean: not in this protocol.
    """

    def __call__(self, entry: "Entry", matched: bytes | None, /) -> bytes: ...


class Entry:
    """One entry of the log, shared by everyone who receives it.

    ``size`` is its weight in bytes for bounded buffers. ``is_deleted`` says that the status or the comment which it shows was
    found deleted when its page was read, so that a replay leaves it out; ``original_is_deleted`` says the same of what the
    status reposts or quotes.
    """

    __slots__ = (
        "_change", "_facts", "_frames", "_message_json", "_reduced", "_view", "_wire",
        "audience", "body", "is_deleted", "kind", "original_is_deleted", "position", "size",
    )  # fmt: skip

    def __init__(self, position: Position, kind: str, audience: str, body: bytes) -> None:
        self.position = position
        self.kind = kind
        self.audience = audience
        self.body = body
        self.size = len(body) + ENTRY_OVERHEAD_BYTES
        self.is_deleted = False
        self.original_is_deleted = False
        self._view: EntryView | None = None
        self._reduced: Entry | None = None
        self._wire: bytes | None = None
        self._change: SavedRulesChange | None = None
        self._facts: EntryFacts | None = None
        self._message_json: bytes | None = None
        self._frames: dict[EncodeEntry, bytes] | None = None

    @property
    def event(self) -> Event:
        """The filters' view; raises :class:`MalformedEntry` if the JSON is not ours."""
        return (self._view or self._decode()).event

    @property
    def actors(self) -> frozenset[str]:
        """The users whose words or deeds it shows: blocks, mutes, protection and suspension are asked about these."""
        return (self._view or self._decode()).actors

    @property
    def quoted_author(self) -> str | None:
        """The author of what a quote shows beside its own words: shown without, it can still be told."""
        return (self._view or self._decode()).quoted_author

    @property
    def subject_id(self) -> str | None:
        """The id of the status or of the comment that it brings or takes back; None for all other kinds."""
        return (self._view or self._decode()).subject_id

    @property
    def shown_ids(self) -> ShownIds:
        """The ids of those whose words stand in it: when they are gone, a replay does not show them."""
        return (self._view or self._decode()).shown_ids

    @property
    def audience_owner(self) -> str | None:
        """Whose followers it is for; None where the audience is another."""
        return self._audience_after(FOLLOWERS_PREFIX)

    @property
    def audience_group(self) -> str | None:
        """The group whose members it is for; None where the audience is another."""
        return self._audience_after(GROUP_PREFIX)

    @property
    def audience_users(self) -> list[str]:
        """The users whom it is for and nobody else; none where the audience is another."""
        named = self._audience_after(USERS_PREFIX)
        return [] if named is None else named.split(",")

    def _audience_after(self, prefix: str) -> str | None:
        return self.audience[len(prefix) :] if self.audience.startswith(prefix) else None

    @property
    def wire(self) -> bytes:
        """The members that follow ``kind``, ``cursor`` and ``at`` on the wire, as one JSON object."""
        if self._wire is None:
            _ = self._decode()
        assert self._wire is not None
        return self._wire

    def revocation(self) -> Revocation:
        """Whom a ``revoke``, a ``suspend`` or a ``reinstate`` is about; raises :class:`MalformedEntry`."""
        return self._decode_internal(Revocation)

    def rules_change(self) -> SavedRulesChange:
        """What a ``rules`` entry changes; raises :class:`MalformedEntry`."""
        if self._change is None:
            self._change = self._decode_internal(SavedRulesChange)
        return self._change

    def lost_range(self) -> tuple[Position, Position]:
        """What a ``rollback`` says is gone: all after the first place up to the second; raises MalformedEntry."""
        told = self._decode_internal(_LostRange)
        start, to = (POSITION_PATTERN.fullmatch(cursor.encode()) for cursor in (told.start, told.to))
        if start is None or to is None:
            raise MalformedEntry("what is lost lies between two places")
        return Position(*map(int, start.groups())), Position(*map(int, to.groups()))

    def _decode_internal(self, struct_type: type[_Internal]) -> _Internal:
        try:
            return msgspec.json.decode(self.wire, type=struct_type)
        except msgspec.MsgspecError as error:
            raise MalformedEntry(str(error)) from error

    @property
    def facts(self) -> EntryFacts:
        """What is known of it beside what clients get."""
        if self._facts is None:
            _ = self._decode()
        assert self._facts is not None
        return self._facts

    def message_json(self, matched: bytes | None = None) -> bytes:
        """The whole message as one JSON object: ``{"kind", "cursor", "at", …}``; ``matched`` is its last member."""
        if self._message_json is None:
            position = self.position
            head = f'{{"kind":"{self.kind}","cursor":"{position.cursor}","at":"{format_iso_time(position.ms)}",'
            self._message_json = head.encode() + self.wire[1:]
        return self._message_json if matched is None else b'%b,"matched":%b}' % (self._message_json[:-1], matched)

    def frame(self, encode: "EncodeEntry", matched: bytes | None = None) -> bytes:
        """The message as ``encode`` frames it; each framing is made once, but for what names its own ``matched``."""
        if matched is not None:
            return encode(self, matched)
        frames = self._frames
        if frames is None:
            frames = self._frames = {}
        made = frames.get(encode)
        if made is None:
            made = frames[encode] = encode(self, None)
        return made

    def drop_caches(self) -> None:
        """Let go of all that can be computed again: decoded and framed, an entry weighs ten times its bytes."""
        self._view = self._reduced = self._wire = self._change = self._facts = self._message_json = self._frames = None

    def _decode(self) -> EntryView:
        try:
            _ = self.body.isascii() or self.body.decode()  # clients get the bytes as they are, looked into or not
            body = _decode_body(self.body)
            wire = _decode_wire(body.wire)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedEntry(str(error)) from error
        if bytes(body.wire) == b"{}":
            raise MalformedEntry("nothing happened")
        self._wire = bytes(body.wire)
        self._facts = body.facts
        made = self._view = make_view(self.kind, body.facts, wire)
        return made

    def without_original(self) -> "Entry":
        """The same entry for who may not see what its status reposts or quotes: that is gone from it.

        Also from what is known of a deleted status, of which no message says more than its ids.
        """
        if self._reduced is None:
            wire = msgspec.json.decode(self.wire)
            status = wire.get("notification", wire)["status"]
            if "original" in status:
                status["original"] = None
            self._reduced = self._with_wire(wire)
        return self._reduced

    def without_status(self) -> "Entry":
        """The same ``uncomment`` for who may not read the status under which the comment stood: that is its ids."""
        if self._reduced is None:
            wire = msgspec.json.decode(self.wire)
            wire["status"] = {"id": wire["status"]["id"], "uid": wire["status"]["uid"], "deleted": True}
            self._reduced = self._with_wire(wire)
        return self._reduced

    def _with_wire(self, wire: object) -> "Entry":
        """With other words, and all that is known but of what was taken away."""
        status = self.facts.status
        bare = None if status is None else msgspec.structs.replace(status, original=None)
        facts = msgspec.structs.replace(self.facts, status=bare, original_author=None)
        return Entry(self.position, self.kind, self.audience, msgspec.json.encode({"wire": wire, "facts": facts}))


def parse_published(message: bytes) -> Entry:
    """The entry in a PUBLISHed ``<id> <n> <k> <a> <json>``, looked into; raises :class:`MalformedEntry`.

    What is taken for the next entry of the log hides the real one, so nothing half right passes here.
    """
    try:
        entry_id, n, kind, audience, body = message.split(b" ", 4)
        entry = make_entry(entry_id, n, kind, audience, body)
    except ValueError as error:
        raise MalformedEntry("not '<id> <n> <kind> <audience> <json>'") from error
    if not EPOCH_MS <= entry.position.ms < EPOCH_MS + (1 << 41) or entry.kind not in KNOWN_KINDS:
        raise MalformedEntry("of another time, or of no kind that is known")
    _ = entry.event
    return entry


def make_entry(entry_id: bytes, n: bytes, kind: bytes, audience: bytes, body: bytes) -> Entry:
    """The entry with these raw fields; raises ValueError where a number or a name is none."""
    numbers = POSITION_PATTERN.fullmatch(entry_id + b"." + n)
    if numbers is None:
        raise ValueError("an entry is named by '<ms>-<seq>' and counted by a number")
    if not kind.replace(b"_", b"a").isalpha() or b"\n" in body or b"\r" in body:
        raise ValueError("a kind is letters, a body is one line: both are copied into frames")
    return Entry(Position(*map(int, numbers.groups())), kind.decode("ascii"), audience.decode("ascii"), body)
