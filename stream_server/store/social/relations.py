"""The relationship of two users, and the users that they have in common."""

from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.social.noun import Noun


class Relationship(NamedTuple):
    """The relations of a first user to a second. The last four attributes are None for a viewer who is neither user.

    Attributes:
        following: Whether the first user follows the second.
        followed_by: Whether the second user follows the first.
        requested: Whether the first user requests to follow the second.
        requested_by: Whether the second user requests to follow the first.
        blocking: Whether the viewer, one of the two, blocks the other. It is never shown who blocks the viewer.
        muting: Whether the viewer, one of the two, mutes the other. It is never shown who mutes the viewer.
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


class Relations(Noun):
    """Reads how two users relate, which users both follow, and which users follow both."""

    async def get_relationship(self, viewer: str, uid: str, other: str) -> Relationship:
        """Return how the user ``uid`` relates to the user ``other``.

        Raises NotFound if one of them is unknown or hidden from the viewer, and BadRequest if both are the same user.
        """
        flags = [bool(flag) for flag in await self._scripts.call("relationship", keys.META, viewer, uid, other)]
        return Relationship(*flags, *[None] * (6 - len(flags)))

    async def list_common_following(self, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users whom both ``uid`` and ``other`` follow, newest follow by ``uid`` first.

        Each has ``since``, the time of that follow. If ``uid`` or ``other`` follows at most 4,096 users, the call takes
        one round trip and a few milliseconds. Otherwise it takes up to sixteen round trips, and each examines 4,096
        users whom ``uid`` follows. The page may then be short or even empty, and its cursor continues the search.
        Raises NotFound if one of the two users is unknown or hidden, and BadRequest if the two are the same.
        """
        return await self._list_common("following", viewer, uid, other, page_request)

    async def list_common_followers(self, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users who follow both ``uid`` and ``other``: first who followed ``uid`` last.

        ``since`` is the time at which a user followed ``uid``. Cost and errors are those of
        :meth:`list_common_following`.
        """
        return await self._list_common("followers", viewer, uid, other, page_request)

    async def _list_common(self, relation: str, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        key, second_key = keys.key_for(relation, uid), keys.key_for(relation, other)
        name = f"common-{relation}:{uid}:{other}"
        arguments = (viewer, uid, other, second_key)
        page, _ = await read_page(self._scripts, "common_users_page", key, page_request, *arguments, list_name=name)
        return page
