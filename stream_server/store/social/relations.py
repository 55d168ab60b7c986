"""How two users stand to each other, and whom they have in common."""

from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts


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
    def is_mutual(self) -> bool:
        """Whether each follows the other."""
        return self.following and self.followed_by


class Relations:
    """What can be asked about two users of one store."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def get_relationship(self, viewer: str, uid: str, other: str) -> Relationship:
        """How ``uid`` stands to ``other``; raises NotFound for either, and BadRequest for the same user twice."""
        found = [bool(one) for one in await self._scripts.call("relationship", keys.META, viewer, uid, other)]
        return Relationship(*found, *[None] * (6 - len(found)))

    async def list_common_following(self, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        """Whom both follow, as JSON with ``since`` when ``uid`` does, newest first.

        Where one of the sets has 4,096 members or fewer it is one round trip, and costs Redis one intersection (a few
        milliseconds at most). Else each round trip looks at 4,096 of the first set, up to sixteen times: a piece may be
        short then, or empty, its cursor goes on. Raises NotFound for either, InvalidCursor, and BadRequest for the
        same user twice.
        """
        return await self._list_common("following", viewer, uid, other, page_request)

    async def list_common_followers(self, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        """Who follows both, as :meth:`list_common_following`; ``since`` is when they began to follow ``uid``."""
        return await self._list_common("followers", viewer, uid, other, page_request)

    async def _list_common(self, relation: str, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        key, second = keys.key_for(relation, uid), keys.key_for(relation, other)
        name = f"common-{relation}:{uid}:{other}"
        return await read_page(
            self._scripts, "common_users_page", key, page_request, viewer, uid, other, second, list_name=name
        )
