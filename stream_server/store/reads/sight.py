"""What one viewer may see: the facts about the viewer and others, read from Redis together and kept for one read."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from stream_server.errors import NotFound
from stream_server.events.visibility import Visibility, VisibilityFact, visibility_table
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.protocol import KeyRead, pack_set_read, pack_words

_TABLE = tuple(map(Visibility, map(int, visibility_table())))
"""The answers of `decide_visibility`, by the bits of the facts."""

# The bits of the facts, in the order in which `VisibilityFact` lists them.
_OWN, _FOLLOWER, _BLOCKED, _MUTED, _SUSPENDED, _PROTECTED, _PRIVATE_GROUP, _MEMBER, _DIRECT, _PARTY = map(
    int, VisibilityFact
)

_USER, _GROUP, _JOINED = (keys.key_for(name).encode() for name in ("user", "group", "joined"))
_PROTECTED_KEY, _SUSPENDED_KEY = (keys.key_for(name).encode() for name in ("protected", "suspended"))
_AUTHOR_READ = KeyRead(b"HMGET", _USER, b"protected", b"suspended")
_RELATIONS = tuple(keys.key_for(name).encode() for name in ("following", "blocks", "blockers", "mutes"))
_BLOCKS, _BLOCKERS = _RELATIONS[1:3]
_RELATION_BITS = (_FOLLOWER, _BLOCKED, _BLOCKED, _MUTED)


class Gate(NamedTuple):
    """Commands that show whether the viewer may see the user who owns a list. They go with the first read of a page.

    ``noun`` is what the error calls the user, see :func:`not_found`.
    """

    commands: Sequence[Command]
    noun: str

    def check(self, replies: Sequence[Any]) -> None:
        """Raise NotFound if the replies to ``commands`` hide the user."""
        if not _is_seen(*replies):
            raise not_found(self.noun)


def _is_seen(row: Sequence[bytes | None], blocker: bytes | None) -> bool:
    """Return whether the replies to the commands of a `Gate` show the user."""
    return row[0] is not None and row[1] != b"1" and blocker is None


def not_found(noun: str) -> NotFound:
    """Return the NotFound error for a text ``<noun> [<parameter>]``, as scripts refuse (`refusals.py`)."""
    name, _, param = noun.partition(" ")
    return NotFound(f"unknown {name}", param=param or None)


class Sight:
    """Tells what one viewer may see. Call :meth:`learn` for all texts of a read before asking about them.

    Attributes:
        redis: The primary, which has all facts.
        viewer: Id of the viewer.
        gone: Keys of the texts of the last call of :meth:`learn` that did not exist any more.
    """

    def __init__(self, redis: RedisClient, viewer: str) -> None:
        self.redis = redis
        self.viewer = viewer.encode()
        self.gone: Collection[bytes] = ()
        self._relations: dict[bytes, int] = {}
        self._groups: dict[bytes, int] = {b"": 0}

    async def learn(
        self, authors: Collection[bytes], grouped: Iterable[tuple[bytes, bytes]] = (), texts: Collection[bytes] = ()
    ) -> None:
        """Read the facts that decide about texts, all of one moment: their authors, and author and group in groups.

        Call it after the texts were read: facts of an earlier call are replaced, because a text may be newer than they
        are. A reaction to a status counts as a text in the status's group. ``texts`` are the different Redis keys of
        what was read and may be deleted since. A text that is there together with the facts was there at their moment.
        """
        pairs = [*grouped]
        uids = [*dict.fromkeys((*authors, *(author for author, _ in pairs)))]
        if not uids:
            return
        groups = [*dict.fromkeys(group for _, group in pairs if group)]
        commands: list[Command] = [*self._author_commands(uids)]
        for group in groups:
            commands += (("HGET", _GROUP + group, "kind"), ("ZSCORE", _JOINED + group, self.viewer))
        at = len(commands) - 2 * len(groups)
        if texts:
            first, *others = texts
            commands.append(pack_set_read(b"EXISTS", first, pack_words(others), len(others)))
        replies = await self.redis.execute_at_once(*commands)
        self.gone = await self._find_gone(texts) if texts and replies.pop() < len(texts) else ()
        self._keep_relations(uids, replies)
        for group, kind, member in zip(groups, replies[at::2], replies[at + 1 :: 2], strict=True):
            is_closed = kind is None or kind == b"private"  # a deleted group is closed to all
            self._groups[group] = is_closed * _PRIVATE_GROUP + (member is not None) * _MEMBER

    async def _find_gone(self, texts: Collection[bytes]) -> set[bytes]:
        """Return the keys that do not exist. Redis counted the existing ones; nearly always they are all there."""
        replies = await self.redis.execute(*(("EXISTS", key) for key in texts))
        return {key for key, exists in zip(texts, replies, strict=True) if not exists}

    def _author_commands(self, authors: Sequence[bytes]) -> Iterable[Command]:
        members, count = pack_words(authors), len(authors)
        if count == 1:
            yield _AUTHOR_READ.command(authors[0])
        else:
            yield pack_set_read(b"SMISMEMBER", _PROTECTED_KEY, members, count)
            yield pack_set_read(b"ZMSCORE", _SUSPENDED_KEY, members, count)
        for key in _RELATIONS:
            yield pack_set_read(b"ZMSCORE", key + self.viewer, members, count)

    def _keep_relations(self, authors: Sequence[bytes], replies: Sequence[Sequence[bytes | int | None]]) -> None:
        if len(authors) == 1:
            protected, suspended = ([value == b"1"] for value in replies[0])
            facts = [protected, suspended, *replies[1:5]]
        else:
            facts = [*replies[:6]]
        known = dict.fromkeys(authors, 0)
        for bit, found in zip((_PROTECTED, _SUSPENDED, *_RELATION_BITS), facts, strict=True):
            if any(found):  # nearly always nothing, so this is short
                for author, fact in zip(authors, found, strict=True):
                    if fact:
                        known[author] |= bit
        if self.viewer in known:
            known[self.viewer] |= _OWN
        self._relations |= known

    def of(self, author: bytes, group: bytes = b"") -> Visibility:
        """Return whether the viewer may see a text by ``author``, and how.

        ``group`` is the group that it was posted to, if any.
        """
        return _TABLE[self._relations[author] | self._groups[group]]

    def authors_seen(self, least: Visibility) -> Collection[bytes | None]:
        """Return the known authors of whom the viewer sees texts outside groups, at least as far as ``least``."""
        return {author for author, facts in self._relations.items() if _TABLE[facts] >= least}

    def of_message(self, author: bytes) -> Visibility:
        """Return how far the viewer sees a message of a talk in which both take part."""
        return _TABLE[self._relations[author] | _DIRECT | _PARTY]

    def wants_notifications_from(self, source: bytes) -> bool:
        """Return whether the viewer gets notifications of what a user does: not blocked, muted or suspended."""
        return _TABLE[self._relations[source] & ~_PROTECTED] is Visibility.VISIBLE

    def gate(self, uid: str | bytes, noun: str = "user") -> Gate:
        """Return the `Gate` of a list that belongs to a user. The error calls the user ``noun``."""
        user = uid.encode() if isinstance(uid, str) else uid
        commands = (("HMGET", _USER + user, "id", "suspended"), ("ZSCORE", _BLOCKERS + self.viewer, user))
        return Gate(commands, noun)

    async def sees(self, *users: str | bytes) -> list[bool]:
        """Return for each user whether the viewer may see the user's card: unless unknown, suspended, or a blocker."""
        commands = [command for user in users for command in self.gate(user).commands]
        return [*map(_is_seen, *_halves(await self.redis.execute_at_once(*commands)))]

    async def can_contact(self, users: Sequence[bytes]) -> dict[bytes, bool]:
        """Return for each user whether the viewer sees the user and does not block the user."""
        if not users:
            return {}
        commands = [command for user in users for command in self.gate(user).commands]
        blocks, *replies = await self.redis.execute_at_once(("ZMSCORE", _BLOCKS + self.viewer, *users), *commands)
        seen = map(_is_seen, *_halves(replies))
        return {user: block is None and is_seen for user, block, is_seen in zip(users, blocks, seen, strict=True)}


def _halves(replies: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the replies with even indexes, and those with odd indexes."""
    return replies[::2], replies[1::2]
