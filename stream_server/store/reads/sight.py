"""What one viewer may see: the facts about the viewer and others, read from Redis together and kept for one read."""

from collections.abc import Collection, Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple

from stream_server.errors import NotFound
from stream_server.events.visibility import Visibility, VisibilityFact, visibility_table
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.protocol import KeyRead, pack_set_read, pack_words

_TABLE = tuple(map(Visibility, map(int, visibility_table())))
"""The answers of `decide_visibility`, by the sum of the `VisibilityFact` bits."""

_USER, _GROUP, _JOINED = (keys.key_for(name).encode() for name in ("user", "group", "joined"))
_AUTHOR_READ = KeyRead(b"HMGET", _USER, b"protected", b"suspended")
_PROTECTED, _SUSPENDED = keys.key_for("protected").encode(), keys.key_for("suspended").encode()
_FOLLOWING, _BLOCKS = keys.key_for("following").encode(), keys.key_for("blocks").encode()
_BLOCKERS, _MUTES = keys.key_for("blockers").encode(), keys.key_for("mutes").encode()
_FACTS_OF_AUTHORS = (
    VisibilityFact.PROTECTED,
    VisibilityFact.SUSPENDED,
    VisibilityFact.FOLLOWER,
    VisibilityFact.BLOCKED,
    VisibilityFact.BLOCKED,
    VisibilityFact.MUTED,
)
"""What :meth:`Sight.learn` reads of each author, in the order of its commands. A block in either direction counts."""


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
        # The commands about the authors come first, then those about the groups, and one about the texts.
        members, count = pack_words(uids), len(uids)
        commands: list[Command]
        if count == 1:
            commands = [_AUTHOR_READ.command(uids[0])]
        else:
            protected = pack_set_read(b"SMISMEMBER", _PROTECTED, members, count)
            commands = [protected, pack_set_read(b"ZMSCORE", _SUSPENDED, members, count)]
        relations = (_FOLLOWING, _BLOCKS, _BLOCKERS, _MUTES)
        commands += [pack_set_read(b"ZMSCORE", key + self.viewer, members, count) for key in relations]
        of_groups = len(commands)
        groups = [*dict.fromkeys(group for _, group in pairs if group)]
        for group in groups:
            commands += (("HGET", _GROUP + group, "kind"), ("ZSCORE", _JOINED + group, self.viewer))
        if texts:
            first, *others = texts
            commands.append(pack_set_read(b"EXISTS", first, pack_words(others), len(others)))
        replies = await self.redis.execute_at_once(*commands)

        gone: Collection[bytes] = ()
        if texts and replies.pop() < len(texts):  # Redis counts the existing ones; nearly always they are all there
            there = await self.redis.execute(*(("EXISTS", key) for key in texts))
            gone = {key for key, exists in zip(texts, there, strict=True) if not exists}
        self.gone = gone

        found = replies[:of_groups]
        if count == 1:
            found[:1] = ([value == b"1"] for value in found[0])
        known = dict.fromkeys(uids, 0)
        for fact, of_authors in zip(_FACTS_OF_AUTHORS, found, strict=True):
            for author in compress(uids, of_authors):  # nearly always none
                known[author] |= fact
        if self.viewer in known:
            known[self.viewer] |= VisibilityFact.AUTHOR
        self._relations |= known

        for group, kind, member in zip(groups, replies[of_groups::2], replies[of_groups + 1 :: 2], strict=True):
            is_closed = kind is None or kind == b"private"  # a deleted group is closed to all
            self._groups[group] = (VisibilityFact.PRIVATE_GROUP if is_closed else 0) | (
                0 if member is None else VisibilityFact.GROUP_MEMBER
            )

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
        return _TABLE[self._relations[author] | VisibilityFact.DIRECT_MESSAGE | VisibilityFact.PARTICIPANT]

    def wants_notifications_from(self, source: bytes) -> bool:
        """Return whether the viewer gets notifications of what a user does: not blocked, muted or suspended."""
        return _TABLE[self._relations[source] & ~VisibilityFact.PROTECTED] is Visibility.VISIBLE

    def gate(self, uid: str | bytes, noun: str = "user") -> Gate:
        """Return the `Gate` of a list that belongs to a user. The error calls the user ``noun``."""
        user = uid.encode() if isinstance(uid, str) else uid
        commands = (("HMGET", _USER + user, "id", "suspended"), ("ZSCORE", _BLOCKERS + self.viewer, user))
        return Gate(commands, noun)

    async def sees(self, *users: str | bytes) -> list[bool]:
        """Return for each user whether the viewer may see the user's card: unless unknown, suspended, or a blocker."""
        commands = [command for user in users for command in self.gate(user).commands]
        replies = await self.redis.execute_at_once(*commands)
        return [*map(_is_seen, replies[::2], replies[1::2])]

    async def can_contact(self, users: Sequence[bytes]) -> dict[bytes, bool]:
        """Return for each user whether the viewer sees the user and does not block the user."""
        if not users:
            return {}
        commands = [command for user in users for command in self.gate(user).commands]
        blocks, *replies = await self.redis.execute_at_once(("ZMSCORE", _BLOCKS + self.viewer, *users), *commands)
        seen = map(_is_seen, replies[::2], replies[1::2])
        return {user: block is None and is_seen for user, block, is_seen in zip(users, blocks, seen, strict=True)}
