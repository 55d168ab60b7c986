# mypy: disable-error-code="empty-body"
"""The calls of both clients about lists and groups of users, declared as in ``calls``."""

from typing import Unpack

from stream_server.client.call import Page, PageOptions, WriteOptions, call
from stream_server.wire.objects import Group, GroupKind, List, ListedUser, Status


class CircleCalls:
    """The calls about lists and groups."""

    @call("POST", "lists")
    def create_list(
        self, name: str, *, description: str = "", private: bool = False, **options: Unpack[WriteOptions]
    ) -> List:
        """Create an empty list."""

    @call("DELETE", "lists/{list_id}")
    def delete_list(self, list_id: str, **options: Unpack[WriteOptions]) -> None:
        """Delete a list of the caller, and its timeline."""

    @call("PUT", "lists/{list_id}/members/{user_id}")
    def add_to_list(self, list_id: str, user_id: str, **options: Unpack[WriteOptions]) -> List:
        """Add a user to a list of the caller. Repeating has no effect."""

    @call("DELETE", "lists/{list_id}/members/{user_id}")
    def remove_from_list(self, list_id: str, user_id: str, **options: Unpack[WriteOptions]) -> List:
        """Remove a user from a list of the caller. Repeating has no effect."""

    @call("GET", "users/{user_id}/lists", "lists")
    def lists(self, user_id: str, **options: Unpack[PageOptions]) -> Page[List]:
        """Read the lists of a user; only their owner sees private ones."""

    @call("GET", "lists/{list_id}/members", "users")
    def list_members(self, list_id: str, **options: Unpack[PageOptions]) -> Page[ListedUser]:
        """Read the members of a list, the last added first."""

    @call("GET", "lists/{list_id}/statuses", "statuses")
    def list_posts(self, list_id: str, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the statuses of the members of a list."""

    @call("POST", "groups")
    def create_group(
        self, name: str, kind: GroupKind, *, description: str = "", **options: Unpack[WriteOptions]
    ) -> Group:
        """Create a group; the caller owns it and is its first member."""

    @call("DELETE", "groups/{group_id}")
    def delete_group(self, group_id: str, **options: Unpack[WriteOptions]) -> None:
        """Delete a group of the caller, with all memberships."""

    @call("PUT", "groups/{group_id}/members/me")
    def join_group(self, group_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Join a group."""

    @call("DELETE", "groups/{group_id}/members/me")
    def leave_group(self, group_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Leave a group."""

    @call("PUT", "groups/{group_id}/members/{user_id}")
    def add_to_group(self, group_id: str, user_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Add a user to a private group of the caller, or invite a user who does not follow the caller."""

    @call("DELETE", "groups/{group_id}/members/{user_id}")
    def remove_from_group(self, group_id: str, user_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Remove a user from a group of the caller."""

    @call("GET", "users/me/groups", "groups")
    def groups(self, **options: Unpack[PageOptions]) -> Page[Group]:
        """Read the groups of which the caller is a member."""

    @call("GET", "groups/{group_id}/members", "users")
    def group_members(self, group_id: str, **options: Unpack[PageOptions]) -> Page[ListedUser]:
        """Read the members of a group."""

    @call("GET", "groups/{group_id}/statuses", "statuses")
    def group_posts(self, group_id: str, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the statuses posted in a group."""
