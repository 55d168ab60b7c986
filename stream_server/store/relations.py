"""How two users stand to each other, and whom they have in common."""

from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.page import Found, Page, Piece, Place, cut, start
from stream_server.store.scripts import Scripts


class Relationship(NamedTuple):
    """How one user stands to another; None is what a third person is not told.

    ``blocking`` and ``muting`` are what the viewer, who is one of the two, does to the other person: of what is done
    to the viewer nobody is told.
    """

    following: bool
    followed_by: bool
    requested: bool | None
    requested_by: bool | None
    blocking: bool | None
    muting: bool | None

    @property
    def mutual(self) -> bool:
        """Whether each follows the other."""
        return self.following and self.followed_by


class Relations:
    """What can be asked about two users of one store."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def relationship(self, viewer: str, uid: str, other: str) -> Relationship:
        """How ``uid`` stands to ``other``; raises NotFound for either, and BadRequest for the same user twice."""
        found = [bool(one) for one in await self._scripts.read("relationship", keys.META, viewer, uid, other)]
        return Relationship(*found, *[None] * (6 - len(found)))

    async def common_following(self, viewer: str, uid: str, other: str, piece: Piece) -> Page:
        """Whom both follow, as JSON with ``since`` when ``uid`` does, newest first.

        Exact. Where one of the sets has 4,096 members or fewer it is one round trip, and costs Redis one intersection
        (a few milliseconds at most); else as many as it takes to find enough, each of about that cost: a million
        followed that have next to nothing in common take 250. Raises NotFound for either, InvalidCursor, and
        BadRequest for the same user twice.
        """
        return await self._common("following", viewer, uid, other, piece)

    async def common_followers(self, viewer: str, uid: str, other: str, piece: Piece) -> Page:
        """Who follows both, as :meth:`common_following`; ``since`` is when they began to follow ``uid``."""
        return await self._common("followers", viewer, uid, other, piece)

    async def _common(self, relation: str, viewer: str, uid: str, other: str, piece: Piece) -> Page:
        name = f"common-{relation}:{uid}:{other}"
        place, backwards = start(piece, name)
        found: list[Found] = []
        key, second = keys.named(relation, uid), keys.named(relation, other)
        direction, end = ("after", "-inf") if backwards else ("before", "+inf")
        score, member = (end, "") if place is None else (str(place.score), place.member)
        while True:
            wanted = piece.count + 1 - len(found)
            flat, stopped = await self._scripts.read(
                "common", key, key, direction, score, member, wanted, 0, viewer, uid, other, second
            )
            found += [(Place(int(flat[i]), flat[i + 1].decode()), flat[i + 2]) for i in range(0, len(flat), 3)]
            if not stopped or len(found) > piece.count:
                return cut(found, piece, name, backwards=backwards, begun=place is not None)
            score, member = stopped[0].decode(), stopped[1].decode()
