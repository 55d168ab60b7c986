"""What streams keep of the graph in memory, each read in one step with the head of the log at that moment."""

from collections.abc import Sequence
from typing import NamedTuple

from stream_server.events import Position
from stream_server.store import keys
from stream_server.store.position import at
from stream_server.store.scripts import Scripts


class Viewer(NamedTuple):
    """The graph around a user, ids with when each relation began (ms since 1970), true at ``head``."""

    following: dict[str, int]
    blocks: dict[str, int]
    blockers: dict[str, int]
    mutes: dict[str, int]
    groups: dict[str, int]
    head: Position


class Outcasts(NamedTuple):
    """Who is protected and who is suspended at ``head``."""

    protected: frozenset[str]
    suspended: frozenset[str]
    head: Position


class Viewers:
    """Reads viewers of one store."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def read(self, uid: str) -> Viewer:
        """The graph around a user, empty for one who does not exist; raises Unavailable.

        One step as long as these sets: a millisecond or two a thousand people. Nothing bounds whom somebody follows, or
        who blocks them.
        """
        *relations, entry_id, n = await self._scripts.read("viewer", keys.META, uid)
        following, blocks, blockers, mutes, groups = map(_since, relations)
        return Viewer(following, blocks, blockers, mutes, groups, at(entry_id, n))

    async def outcasts(self) -> Outcasts:
        """Everybody who is protected or suspended; raises Unavailable.

        One step as long as these sets, read when a worker starts and when it may have missed something.
        """
        protected, suspended, entry_id, n = await self._scripts.read("standing", keys.META)
        return Outcasts(_ids(protected), _ids(suspended), at(entry_id, n))


def _since(pairs: Sequence[bytes]) -> dict[str, int]:
    return {member.decode(): int(score) for member, score in zip(pairs[::2], pairs[1::2], strict=True)}


def _ids(members: Sequence[bytes]) -> frozenset[str]:
    return frozenset(member.decode() for member in members)
