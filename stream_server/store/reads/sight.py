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

REMOVED_READ = KeyRead(b"HMGET", keys.META.encode(), b"removed", b"removed_ms").command(b"")
"""Reads how many statuses were ever removed (deleted, or left because of their age), and when the last one was, in ms.

Both are None if none ever was.
"""


class StatusesRead(NamedTuple):
    """The answers by which two short questions show later that all statuses which were read are still there.

    Each removal changes the reply to `REMOVED_READ`, and to one that never was before, because the number rises. After
    a failover Redis may be an older copy, with a lower number. If the same number comes again, its time is another one.

    Some of the statuses may never have come to such a copy. It has the beginning of all that was written, so it has all
    of them if it has the newest one.

    Attributes:
        removed: The reply to `REMOVED_READ` from before they were read.
        newest: The Redis key of the newest of them.
    """

    removed: Sequence[bytes | None]
    newest: bytes


def _ask_for(texts: Collection[bytes], statuses_read: StatusesRead | None) -> tuple[Sequence[Command], list[Any]]:
    """Return commands that ask whether all texts of :meth:`Sight.learn` are there, and the replies if they are."""
    if not texts:
        return (), []
    if statuses_read is not None:
        return (REMOVED_READ, pack_set_read(b"EXISTS", statuses_read.newest, b"", 0)), [statuses_read.removed, 1]
    first, *others = texts
    return (pack_set_read(b"EXISTS", first, pack_words(others), len(others)),), [len(texts)]


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
        self, authors: Collection[bytes], grouped: Iterable[tuple[bytes, bytes]] = (), texts: Collection[bytes] = (),
        statuses_read: StatusesRead | None = None,
    ) -> None:  # fmt: skip
        """Read the facts that decide about texts, all of one moment: their authors, and author and group in groups.

        Call it after the texts were read: facts of an earlier call are replaced, because a text may be newer than they
        are. A reaction to a status counts as a text in the status's group. ``texts`` are the different Redis keys of
        what was read and may be deleted since. A text that is there together with the facts was there at their moment.
        If all texts are statuses, ``statuses_read`` may tell of them. Then Redis looks for the newest only, unless any
        status was removed since they were read: to look for the thirty texts of a page takes a tenth of its time.
        """
        pairs = [*grouped]
        uids = [*dict.fromkeys((*authors, *(author for author, _ in pairs)))]
        if not uids:
            return
        members, count = pack_words(uids), len(uids)
        commands: list[Command]  # about the authors, then about the groups
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
        of_texts = len(commands)
        about_texts, if_all_are_there = _ask_for(texts, statuses_read)
        replies = await self.redis.execute_at_once(*commands, *about_texts)

        gone: Collection[bytes] = ()
        if replies[of_texts:] != if_all_are_there:  # this is rare
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

        of_group = replies[of_groups:of_texts]
        for group, kind, member in zip(groups, of_group[::2], of_group[1::2], strict=True):
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
