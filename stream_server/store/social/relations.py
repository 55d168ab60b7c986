"""How two users relate to each other, and which users they have in common."""

from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts


class Relationship(NamedTuple):
    """How one user relates to another. Private members are None unless the viewer is one of the two.

    Attributes:
        following: Whether the first user follows the second.
        followed_by: Whether the second user follows the first.
        requested: Whether the first user requests to follow the second. Private.
        requested_by: Whether the second user requests to follow the first. Private.
        blocking: Whether the viewer blocks the other user. Private; the blocks of the other user are never shown.
        muting: Whether the viewer mutes the other user. Private; the mutes of the other user are never shown.
    """

    following: bool
    followed_by: bool
    requested: bool | None
    requested_by: bool | None
    blocking: bool | None
    muting: bool | None

    @property
    def is_mutual(self) -> bool:
        """Whether each of the two users follows the other."""
        return self.following and self.followed_by


class Relations:
    """Reads what concerns two users."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def get_relationship(self, viewer: str, uid: str, other: str) -> Relationship:
        """Return how ``uid`` relates to ``other``. Raises NotFound for either, BadRequest if the two are the same."""
        flags = [bool(flag) for flag in await self._scripts.call("relationship", keys.META, viewer, uid, other)]
        return Relationship(*flags, *[None] * (6 - len(flags)))

    async def list_common_following(self, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        """Return the users whom both follow, as JSON, newest first. ``since`` is the time at which ``uid`` followed.

        If one of the two sets has at most 4,096 members, this takes one round trip and one intersection in Redis (a few
        milliseconds at most). Otherwise each round trip examines 4,096 members of the first set, up to sixteen times.
        The page may then be short or even empty; its cursor continues the search.

        Raises NotFound for either user, InvalidCursor, and BadRequest if the two are the same.
        """
        return await self._list_common("following", viewer, uid, other, page_request)

    async def list_common_followers(self, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        """Return the users who follow both, in the form of :meth:`list_common_following`.

        ``since`` is the time at which the follower followed ``uid``.
        """
        return await self._list_common("followers", viewer, uid, other, page_request)

    async def _list_common(self, relation: str, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        """Return a page of the intersection of two sets of users, in the order of the first set."""
        key, second_key = keys.key_for(relation, uid), keys.key_for(relation, other)
        name = f"common-{relation}:{uid}:{other}"
        return await read_page(
            self._scripts, "common_users_page", key, page_request, viewer, uid, other, second_key, list_name=name
        )
