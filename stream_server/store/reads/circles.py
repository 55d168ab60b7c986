"""Lists and groups of users as reads show them: their rows, their JSON, and whether the viewer may see them."""

from collections.abc import Sequence
from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.pagination import Member, Show
from stream_server.store.reads.sight import Sight, not_found
from stream_server.store.reads.users import time_text
from stream_server.store.redis.client import RedisClient


class Circle(NamedTuple):
    """The fields of the hash of a list or a group. ``kind`` is the kind of a group, or ``1`` for a private list."""

    id: bytes
    kind: bytes
    owner: bytes
    name_json: bytes
    description_json: bytes
    members: bytes
    created: bytes
    is_group: bool

    @property
    def is_private(self) -> bool:
        """Whether only the owner may see this list, or only the members may see this group."""
        return self.kind == (b"private" if self.is_group else b"1")

    def json(self) -> bytes:
        """Return the list or the group as JSON, with the same bytes as ``lua/circle.lua``."""
        start = b'{"id":"%b","uid":"%b","name":%b,' % (self.id, self.owner, self.name_json)
        end = b'"members":%b,"created":"%b"}' % (self.members, time_text(self.created))
        if self.is_group:
            return b'%b"kind":"%b","description":%b,%b' % (start, self.kind, self.description_json, end)
        private = b"true" if self.is_private else b"false"
        return b'%b"description":%b,"private":%b,%b' % (start, self.description_json, private, end)


async def read_circles(redis: RedisClient, noun: str, ids: Sequence[bytes]) -> list[Circle | None]:
    """Return lists or groups in the order of ``ids``, None for one that does not exist. ``noun``: list or group."""
    is_group, key = noun == "group", keys.key_for(noun).encode()
    # In the order of a `Circle`.
    fields = ("kind" if is_group else "private", "uid", "name_json", "description_json", "members", "created")
    replies = await redis.execute(*(("HMGET", key + each, *fields) for each in ids)) if ids else ()
    return [
        None if row[1] is None else Circle._make((each, *row, is_group)) for each, row in zip(ids, replies, strict=True)
    ]


async def find_visible(sight: Sight, noun: str, ids: Sequence[bytes]) -> list[Circle | None]:
    """Return the lists or groups with these ids, None for one that the viewer may not see.

    Owners see their lists and members their groups, because they must be able to leave them. Others see what is not
    private, unless they may not see its owner.
    """
    circles = await read_circles(sight.redis, noun, ids)
    joined = keys.key_for("joined").encode()
    if noun == "group" and ids:
        scores = await sight.redis.execute(*(("ZSCORE", joined + each, sight.viewer) for each in ids))
        inside = [score is not None for score in scores]
    else:
        inside = [circle is not None and circle.owner == sight.viewer for circle in circles]
    owners = [*{c.owner for c, within in zip(circles, inside, strict=True) if c and not within and not c.is_private}]
    shown = {owner for owner, seen in zip(owners, await sight.sees(*owners), strict=True) if seen} if owners else set()
    return [
        circle if circle and (within or (not circle.is_private and circle.owner in shown)) else None
        for circle, within in zip(circles, inside, strict=True)
    ]


async def require(sight: Sight, noun: str, circle_id: str) -> Circle:
    """Return a list or a group. Raises NotFound (its ``param`` is ``id``) if the viewer may not see it."""
    (circle,) = await find_visible(sight, noun, [circle_id.encode()])
    if circle is None:
        raise not_found(f"{noun} id")
    return circle


def show_circles(sight: Sight, noun: str) -> Show:
    """Return a function that renders lists or groups as JSON; None for those that the viewer may not see."""

    async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
        found = await find_visible(sight, noun, [member for member, _ in members])
        return [circle and circle.json() for circle in found]

    return show
