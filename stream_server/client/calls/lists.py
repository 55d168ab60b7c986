"""Lists of users."""

from typing import Unpack

from stream_server.client.calls.call_group import CallGroup, Page, PageOptions, WriteOptions, path_of
from stream_server.wire.objects import List, ListedUser, Status


class ListCalls(CallGroup):
    """The calls about lists of users."""

    async def create_list(
        self, name: str, *, description: str = "", private: bool = False, **options: Unpack[WriteOptions]
    ) -> List:
        """Create an empty list."""
        body = {"name": name, "description": description, "private": private}
        return await self._transport.call(List, "POST", "/v1/lists", body=body, **options)

    async def delete_list(self, list_id: str, **options: Unpack[WriteOptions]) -> None:
        """Delete a list of the caller, and its timeline."""
        await self._transport.request("DELETE", path_of("lists/{}", list_id), **options)

    async def add_to_list(self, list_id: str, user_id: str, **options: Unpack[WriteOptions]) -> List:
        """Add a user to a list of the caller. Repeating has no effect."""
        return await self._transport.call(List, "PUT", path_of("lists/{}/members/{}", list_id, user_id), **options)

    async def remove_from_list(self, list_id: str, user_id: str, **options: Unpack[WriteOptions]) -> List:
        """Remove a user from a list of the caller. Repeating has no effect."""
        path = path_of("lists/{}/members/{}", list_id, user_id)
        return await self._transport.call(List, "DELETE", path, **options)

    async def lists(self, user_id: str, **options: Unpack[PageOptions]) -> Page[List]:
        """Read the lists of a user; only their owner sees private ones."""
        return await self._page(List, "lists", path_of("users/{}/lists", user_id), options)

    async def list_members(self, list_id: str, **options: Unpack[PageOptions]) -> Page[ListedUser]:
        """Read the members of a list, the last added first."""
        return await self._page(ListedUser, "users", path_of("lists/{}/members", list_id), options)

    async def list_posts(self, list_id: str, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the statuses of the members of a list."""
        return await self._page(Status, "statuses", path_of("lists/{}/statuses", list_id), options)
