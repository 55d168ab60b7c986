"""Groups of users who post among themselves."""

from typing import Literal, Unpack

from stream_server.client.calls.call_group import CallGroup, Page, PageOptions, WriteOptions, path_of
from stream_server.wire.objects import Group, ListedUser, Status

GroupKind = Literal["public", "private", "announcement"]


class GroupCalls(CallGroup):
    """The calls about groups. ``post(…, group=…)`` posts in a group."""

    async def create_group(
        self, name: str, kind: GroupKind, *, description: str = "", **options: Unpack[WriteOptions]
    ) -> Group:
        """Create a group; the caller owns it and is its first member."""
        body = {"name": name, "kind": kind, "description": description}
        return await self._transport.call(Group, "POST", "/v1/groups", body=body, **options)

    async def delete_group(self, group_id: str, **options: Unpack[WriteOptions]) -> None:
        """Delete a group of the caller, with all memberships."""
        await self._transport.request("DELETE", path_of("groups/{}", group_id), **options)

    async def join_group(self, group_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Join a group."""
        return await self.add_to_group(group_id, "me", **options)

    async def leave_group(self, group_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Leave a group."""
        return await self.remove_from_group(group_id, "me", **options)

    async def add_to_group(self, group_id: str, user_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Add a user to a private group of the caller, or invite a user who does not follow the caller."""
        return await self._transport.call(Group, "PUT", path_of("groups/{}/members/{}", group_id, user_id), **options)

    async def remove_from_group(self, group_id: str, user_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Remove a user from a group of the caller."""
        path = path_of("groups/{}/members/{}", group_id, user_id)
        return await self._transport.call(Group, "DELETE", path, **options)

    async def groups(self, **options: Unpack[PageOptions]) -> Page[Group]:
        """Read the groups of which the caller is a member."""
        return await self._page(Group, "groups", "/v1/users/me/groups", options)

    async def group_members(self, group_id: str, **options: Unpack[PageOptions]) -> Page[ListedUser]:
        """Read the members of a group."""
        return await self._page(ListedUser, "users", path_of("groups/{}/members", group_id), options)

    async def group_posts(self, group_id: str, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the statuses posted in a group."""
        return await self._page(Status, "statuses", path_of("groups/{}/statuses", group_id), options)
