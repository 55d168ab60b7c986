"""An entry of the log: its position, kind, audience and bytes, and the cached results of decoding and framing it.

On the log an entry has the fields ``n`` (contiguous number), ``k`` (kind), ``a`` (audience) and ``e`` (JSON). Redis
also publishes it on ``events:<kind>`` as ``<id> <n> <k> <a> <json>``. The JSON is ``{"wire": {…}, "facts": {…}?}``. The
server copies ``wire`` to clients byte for byte, with the line ends of Unicode escaped. ``facts`` is only for matching.
For example, a ``delete`` gives clients only ids, and its facts let it match the same filters as its post.

The kinds of entries, the channels on which Redis publishes them, and the audiences stand here too.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from filters.event import Event
from filters.narrowing import KINDS, PERSONAL_KINDS
from stream_server.events.content import NO_FACTS, EntryFacts, MalformedEntry, ShownIds, WireFields, make_content
from stream_server.events.internal import LostRange, Revocation, SavedRulesChange, StreamCommand
from stream_server.events.one_line import keep_on_one_line
from stream_server.events.position import EPOCH_MS, POSITION_PATTERN, Position, format_iso_time
from stream_server.events.versions import json_with_versions, left_ids_json

PUBLIC_AUDIENCE = "public"
"""Audience of an entry that everyone may see. Entries that only control the server have the audience ``-``."""

FOLLOWERS_PREFIX, GROUP_PREFIX, USERS_PREFIX = "followers:", "group:", "users:"
"""Prefixes of the other audiences: the followers of a user, the members of a group, and only the named users."""

INTERNAL_KINDS = ("revoke", "suspend", "reinstate", "rules", "rollback", "stream")
"""Kinds that control the server and are not delivered. For a ``rollback`` of the log, streams get a ``gap``."""

RIGHTS_KINDS = frozenset({"revoke", "suspend", "reinstate", "rollback"})
"""Kinds of entries after which the rights of the user whom they name may be others; a ``rollback`` concerns all."""

REMOVAL_KINDS = frozenset({"delete", "uncomment"})
"""The kinds that delete a status or comment, for every client that received it."""

PROTECTION_KINDS = frozenset({"protect", "unprotect", "user_delete"})
"""Kinds that say that a user's protection begins or ends, or that the account is deleted. Everybody may see what they
show: the user's card, or ids."""

CARD_KINDS = frozenset({"request", "unrequest", "block", "unblock", "mute", "unmute", "list_add", "list_remove"})
"""Kinds that show the card of a user who has not acted. Only named users get them."""

ALL_KINDS = (*KINDS, *PERSONAL_KINDS, *INTERNAL_KINDS)
"""Every kind that the log may hold."""

CHANNELS = tuple(f"events:{kind}" for kind in ALL_KINDS)
"""One Redis channel per kind, so a plain Redis listener can SUBSCRIBE to a single kind."""

KNOWN_KINDS = frozenset(ALL_KINDS)
""":data:`ALL_KINDS` as a set."""


_Internal = TypeVar("_Internal", Revocation, SavedRulesChange, LostRange, StreamCommand)


class _EntryBody(msgspec.Struct):
    wire: msgspec.Raw
    facts: EntryFacts = NO_FACTS


_decode_body = msgspec.json.Decoder(_EntryBody).decode
_decode_wire = msgspec.json.Decoder(WireFields).decode

_DECODED = ("actors", "event", "facts", "quoted_author", "shown_ids", "subject_id", "wire")
"""The attributes of an entry that come from its JSON. They are unset until `Entry.decode` sets them all."""

EncodeEntry: TypeAlias = Callable[["Entry", bytes | None], bytes]
"""A function that encodes an entry for one framing.

It must be pure, because all clients of the framing share the result. The second argument is the JSON of the matched
filters, or None if the client did not ask for it. Empty bytes mean that this framing has no form for the entry.
"""


class Entry:
    """One entry of the log, shared by all clients that receive it.

    Attributes:
        kind: Kind of the event, such as ``post``. :data:`ALL_KINDS` has all kinds.
        audience: Users to whom the entry is addressed, such as ``public`` or ``followers:<id>``.
        body: The JSON as Redis sent it.
        size: Estimated memory of the entry in bytes. Buffers with a size limit add these up.
        is_removal: Whether the entry takes a status or comment back from clients that have it. It goes to all whom that
            could reach, also if it is hidden from them now. `versions` says when an `edit` does so.
        is_deleted: Whether the shown status or comment was deleted since, as a reader of the log found. Live: False.
        original_is_deleted: The same for the reposted or quoted status.
        later_edits: For each shown status, by id, the last `edit`, as a reader of the log found. Live: empty.
        event: The decoded event, which filters match.
        actors: Ids of users whose words or actions the entry shows. Viewers who block or mute one do not get it.
        quoted_author: Id of the quoted status's author, or None. Viewers who may not see that status get the quote
            without it.
        subject_id: Id of the status or comment that the entry creates or deletes. None if the entry does neither.
        shown_ids: Ids of the statuses and comments whose text the entry shows. Readers of the log look up the deleted
            ones.
        wire: The JSON object with the event's data. A message has its members after ``kind``, ``cursor`` and ``at``.
        facts: The part of the entry that only filters and the dialects (Twitter's formats) use. Clients do not get it.

    ``event`` and all after it come from the JSON. The first look at one of them decodes it, see `decode`.
    """

    __slots__ = (
        *_DECODED, "_change", "_edited", "_frames", "_is_decoded", "_message_json", "_reduced", "_versions",
        "audience", "body", "is_deleted", "is_removal", "kind", "later_edits", "original_is_deleted", "position",
        "size",
    )  # fmt: skip

    event: Event
    actors: frozenset[str]
    quoted_author: str | None
    subject_id: str | None
    shown_ids: ShownIds
    wire: bytes
    facts: EntryFacts

    def __init__(self, position: Position, kind: str, audience: str, body: bytes) -> None:
        self.position = position
        self.kind = kind
        self.audience = audience
        self.body = body
        self.size = len(body) + 512  # an estimate of what an undecoded entry takes besides its body
        self.is_removal = kind in REMOVAL_KINDS
        self.is_deleted = False
        self.original_is_deleted = False
        self.later_edits = NO_EDITS
        self._is_decoded = False
        self._reduced: Entry | None = None
        self._versions: tuple[Entry, ...] = ()
        self._edited: Entry | None = None
        self._change: SavedRulesChange | None = None
        self._message_json: bytes | None = None
        self._frames: dict[EncodeEntry, bytes] | None = None

    if not TYPE_CHECKING:  # or every misspelt attribute would pass the type check

        def __getattr__(self, name: str) -> Any:
            """Decode the JSON, because an attribute that comes from it is not set yet. May raise `MalformedEntry`."""
            if name not in _DECODED:
                raise AttributeError(name)
            self.decode()
            return getattr(self, name)

    @property
    def audience_owner(self) -> str | None:
        """Id of the user to whose followers the entry is addressed; None for any other audience."""
        return self._audience_after(FOLLOWERS_PREFIX)

    @property
    def audience_group(self) -> str | None:
        """Id of the group to whose members the entry is addressed; None for any other audience."""
        return self._audience_after(GROUP_PREFIX)

    @property
    def audience_users(self) -> list[str]:
        """Ids of the users if the entry is addressed to named users only; empty for any other audience."""
        users = self._audience_after(USERS_PREFIX)
        return [] if users is None else users.split(",")

    @property
    def protected_users(self) -> list[str]:
        """Ids of the users because of whose protection the entry was not addressed to everybody; empty if it was.

        These are the user to whose followers it is addressed, or the two users of a reaction to a status that only they
        got, because both were protected.
        """
        owner = self.audience_owner
        if owner is not None:
            return [owner]
        return self.audience_users if self.kind in {"like", "unlike", "comment", "uncomment"} else []

    def _audience_after(self, prefix: str) -> str | None:
        return self.audience[len(prefix) :] if self.audience.startswith(prefix) else None

    def revocation(self) -> Revocation:
        """Return the user id and token id in a ``revoke``, ``suspend`` or ``reinstate``. Raises `MalformedEntry`."""
        return self._decode_internal(Revocation)

    def stream_command(self) -> StreamCommand:
        """Return the command in a ``stream`` entry. Raises `MalformedEntry` if its JSON is invalid."""
        return self._decode_internal(StreamCommand)

    def rules_change(self) -> SavedRulesChange:
        """Return the change of saved rules in a ``rules`` entry. Raises `MalformedEntry` if its JSON is invalid."""
        if self._change is None:
            self._change = self._decode_internal(SavedRulesChange)
        return self._change

    def lost_range(self) -> tuple[Position, Position]:
        """Return the range of entries that a ``rollback`` reports as lost: after the first position, up to the second.

        Raises `MalformedEntry` if the entry does not have two valid cursors.
        """
        lost = self._decode_internal(LostRange)
        start, to = (POSITION_PATTERN.fullmatch(cursor.encode()) for cursor in (lost.start, lost.to))
        if start is None or to is None:
            raise MalformedEntry("a rollback needs two valid cursors")
        return Position(*map(int, start.groups())), Position(*map(int, to.groups()))

    def _decode_internal(self, struct_type: type[_Internal]) -> _Internal:
        try:
            return msgspec.json.decode(self.wire, type=struct_type)
        except msgspec.MsgspecError as error:
            raise MalformedEntry(str(error)) from error

    def message_json(self, matched: bytes | None = None) -> bytes:
        """Return the message for clients as JSON: ``{"kind", "cursor", "at", …}``. ``matched``, if any, comes last."""
        if self._message_json is None:
            position = self.position
            head = f'{{"kind":"{self.kind}","cursor":"{position.cursor}","at":"{format_iso_time(position.ms)}",'
            self._message_json = head.encode() + self.wire[1:]
        return self._message_json if matched is None else b'%b,"matched":%b}' % (self._message_json[:-1], matched)

    def frame(self, encode: EncodeEntry, matched: bytes | None = None) -> bytes:
        """Return the entry as ``encode`` formats it; cached if ``matched`` (JSON of the matched filters) is None."""
        if matched is not None:
            return encode(self, matched)
        frames = self._frames
        if frames is None:
            frames = self._frames = {}
        elif encode in frames:  # almost always: all groups share the frame
            return frames[encode]
        framed = frames[encode] = encode(self, None)
        return framed

    def drop_caches(self) -> None:
        """Delete the cached results of decoding and encoding. They take ten times the memory of the entry's JSON."""
        self._reduced = self._change = self._message_json = self._frames = self._edited = None
        self._versions = ()
        if self._is_decoded:
            self._is_decoded = False
            for name in _DECODED:
                delattr(self, name)

    def decode(self) -> None:
        """Decode the JSON and keep its content until `drop_caches`. Raises `MalformedEntry` if the JSON is invalid."""
        is_ascii = self.body.isascii()
        try:
            _ = is_ascii or self.body.decode()  # clients receive the bytes unchanged, so they must be UTF-8
            body = _decode_body(self.body)
            fields = _decode_wire(body.wire)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedEntry(str(error)) from error
        wire = bytes(body.wire)
        if wire == b"{}":
            raise MalformedEntry("the entry has no members for clients")
        content = make_content(self.kind, body.facts, fields)
        self.event, self.actors, self.quoted_author = content.event, content.actors, content.quoted_author
        self.subject_id, self.shown_ids, self.facts = content.subject_id, content.shown_ids, body.facts
        self.wire = wire if is_ascii else keep_on_one_line(wire)
        self._is_decoded = True

    def without_original(self) -> "Entry":
        """Return a copy without the reposted or quoted status. Filters cannot find the copy by that status's text."""
        if self._reduced is None:
            wire = msgspec.json.decode(self.wire)
            status = wire.get("notification", wire).get("status", {})
            if "original" in status:
                status["original"] = None
            self._reduced = self._with_wire(wire)
        return self._reduced

    def without_status(self) -> "Entry":
        """Return a copy of an ``uncomment`` with only the ids of its status, for users who may not read the status."""
        if self._reduced is None:
            wire = msgspec.json.decode(self.wire)
            wire["status"] = {"id": wire["status"]["id"], "uid": wire["status"]["uid"], "deleted": True}
            self._reduced = self._with_wire(wire)
        return self._reduced

    def _with_wire(self, wire: object) -> "Entry":
        """Return a copy with ``wire`` as its JSON for clients. No filter finds it by a reposted or quoted status."""
        status = self.facts.status
        reduced_status = None if status is None else msgspec.structs.replace(status, original=None)
        return self._with(wire, msgspec.structs.replace(self.facts, status=reduced_status, original_author=None))

    def _with(self, wire: object, facts: EntryFacts) -> "Entry":
        made = Entry(self.position, self.kind, self.audience, msgspec.json.encode({"wire": wire, "facts": facts}))
        made.is_removal = self.is_removal
        return made

    def versions(self) -> tuple["Entry", ...]:
        """Return the entry once for each version of its status in ``facts.before``, and first for the one that is not.

        A client gets the first one that its filters match and that it may see. Of an `edit` the first has the new
        status. The other is for clients that the replaced version could reach, and has only ids, as ``left``: the
        status has left their filters, or is hidden from them now. All of a `delete` look the same.
        """
        if not self._versions:
            wire, facts = msgspec.Raw(self.wire), msgspec.structs.replace(self.facts, before=())
            newest = self._with(wire, facts)
            gone = wire if self.is_removal else msgspec.Raw(left_ids_json(self.wire))
            earlier = [self._with(gone, msgspec.structs.replace(facts, status=each)) for each in self.facts.before]
            for each in earlier:
                each.is_removal = True
            self._versions = (newest, *earlier)
        return self._versions

    def as_edited(self, edits: Mapping[str, "Entry"]) -> "Entry":
        """Return the entry with the last versions of the statuses that it shows, or itself if it shows these.

        ``edits`` has `edit` entries by status id, as `later_edits` does. Those up to this entry do not count: it shows
        what they changed.
        """
        later: dict[str, Entry] = {}
        for source in (edits, self.later_edits):
            for status_id in (self.shown_ids.status, self.shown_ids.original):
                edit = source.get(status_id or "")
                if edit is not None and edit.position > later.get(edit.subject_id or "", self).position:
                    later[edit.subject_id or ""] = edit
        if not later:
            return self
        if self._edited is None or self._edited.later_edits != later:
            wire = json_with_versions(self.wire, [edit.wire for edit in later.values()])
            self._edited = self._with(wire, self.facts)
            self._edited.later_edits = later
        return self._edited


NO_EDITS: Mapping[str, Entry] = MappingProxyType({})
"""The value for entries that show no status which was edited later. All share it, because a ring has many entries."""


def parse_published(message: bytes) -> Entry:
    """Make an entry from a published ``<id> <number> <kind> <audience> <json>``. Raises `MalformedEntry` if invalid.

    The JSON of an entry for named users stays undecoded, as that of an entry that was read from the log: most processes
    have a stream of none of them. A reader that decodes it must expect `MalformedEntry` then.
    """
    try:
        entry_id, n, kind, audience, body = message.split(b" ", 4)
        entry = make_entry(entry_id, n, kind, audience, body)
    except ValueError as error:
        raise MalformedEntry("not '<id> <n> <kind> <audience> <json>'") from error
    if not EPOCH_MS <= entry.position.ms < EPOCH_MS + (1 << 41) or entry.kind not in KNOWN_KINDS:
        raise MalformedEntry("the time is out of range or the kind is unknown")
    if not entry.audience.startswith(USERS_PREFIX):
        entry.decode()
    return entry


def make_entry(entry_id: bytes, n: bytes, kind: bytes, audience: bytes, body: bytes) -> Entry:
    """Make an entry from its fields in Redis. Raises `ValueError` for invalid fields. The JSON is decoded later."""
    numbers = POSITION_PATTERN.fullmatch(entry_id + b"." + n)
    if numbers is None:
        raise ValueError("the id must be '<ms>-<seq>' and n a number")
    if not kind.replace(b"_", b"a").isalpha() or b"\n" in body or b"\r" in body:
        raise ValueError("a kind must be letters and a body one line, because both are copied into frames")
    return Entry(Position(*map(int, numbers.groups())), kind.decode("ascii"), audience.decode("ascii"), body)
