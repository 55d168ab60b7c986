"""Circles of users: lists and groups.

A list has users whose statuses the list's owner reads together. It is private or public. The users of a group post
among themselves. A group is public, private, or for announcements of its owner.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Member, Page, PageRequest
from stream_server.store.reads import circles
from stream_server.store.reads.users import show_users
from stream_server.store.redis.scripts import WriteReply, position_of
from stream_server.store.social.noun import Noun, encode_json
from stream_server.store.timelines.syndication import TimelineChange


class Circles(Noun):
    """The base of lists and groups: both are named sets of members that one user owns.

    Methods that take an id raise NotFound if the user may not see the list or group. Methods reserved for the owner
    raise Forbidden ``not_yours`` for other users.

    Attributes:
        noun: ``list`` or ``group``, as the scripts and the log's entries say it.
        of_user: The set of a user's circles, as `store/keys.py` names it: the lists that the user owns, or the groups
            in which the user is.
        members: The set of a circle's members.
    """

    noun: ClassVar[str]
    of_user: ClassVar[str]
    members: ClassVar[str]

    async def update(
        self, uid: str, circle: str, changes: Mapping[str, str | bool], idempotency_key: IdempotencyKey
    ) -> bytes:
        """Change a name, a description, or whether a list is ``private``. Returns the list or group as JSON.

        Adds no log entry if nothing changes. The kind of a group cannot change, because a change could publish what its
        members wrote in private.
        """
        fields: list[str | bytes | int] = []
        for name, value in changes.items():
            fields += (name, int(value)) if isinstance(value, bool) else (f"{name}_json", encode_json(value))
        reply = await self._scripts.write(
            "circle_update", idempotency_key, uid=uid, id=circle, noun=self.noun, rest=fields
        )
        return await self._written_circle(reply, uid, circle)

    async def get(self, viewer: str, circle: str) -> bytes:
        """Return a list or a group of users as JSON. Raises NotFound if the viewer may not see it."""
        return (await circles.require(self._sight(viewer), self.noun, circle)).json()

    async def list_members(self, viewer: str, circle: str, page_request: PageRequest) -> Page:
        """Return the members as JSON, the last added first. Each has ``since``, the time when the user was added."""
        sight = self._sight(viewer)
        admit = partial(circles.require, sight, self.noun, circle)
        return await self._page(self.members, circle, page_request, show_users(sight), admit=admit)

    async def _list_of_user(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        sight = self._sight(viewer)
        show = circles.show_circles(sight, self.noun)
        return await self._page(self.of_user, uid, page_request, show, gate=sight.gate(uid, "user id"))

    async def _create(
        self, script: str, uid: str, name: str, description: str, idempotency_key: IdempotencyKey, **trait: str
    ) -> bytes:
        """Create a list or a group. ``trait`` is the ``kind`` of a group, or whether a list is ``private``."""
        reply = await self._scripts.write(
            script, idempotency_key, uid=uid, name_json=encode_json(name), description_json=encode_json(description),
            **trait,
        )  # fmt: skip
        return await self._written_circle(reply, uid, str(position_of(reply).status_number))

    async def _written_circle(self, reply: WriteReply, uid: str, circle: str) -> bytes:
        return await self._written(reply, self.noun, partial(self.get, uid, circle))


class Lists(Circles):
    """Changes and reads lists. A user has at most 100 lists, and a list at most 5,000 members.

    A user may not see another user's private list, and no list of an owner who blocks the user or is suspended.
    """

    noun, of_user, members = "list", "lists", "members"

    async def create(
        self,
        uid: str,
        name: str,
        description: str,
        private: bool,  # noqa: FBT001 - a member of the request body
        idempotency_key: IdempotencyKey,
    ) -> bytes:
        """Create a list. Returns the list as JSON. Raises TooLarge ``too_many`` if the user has 100 lists."""
        trait = "1" if private else "0"
        return await self._create("list_create", uid, name, description, idempotency_key, private=trait)

    async def delete(self, uid: str, list_id: str, idempotency_key: IdempotencyKey) -> None:
        """Delete a list. The list disappears at once. A background job deletes its timeline and its members later."""
        await self._scripts.write("list_delete", idempotency_key, uid=uid, id=list_id)

    async def list_owned(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the lists that a user owns as JSON, newest first. Private lists are included only for their owner."""
        return await self._list_of_user(viewer, uid, page_request)

    async def list_containing(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the lists that have ``uid`` as member and that the viewer may see, latest addition first.

        Lists of users whom the viewer blocks are left out.
        """
        sight = self._sight(viewer)

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            found = await circles.find_visible(sight, "list", [member for member, _ in members])
            others = [*{each.owner for each in found if each} - {uid.encode()}]
            contacts = {uid.encode(): True} | await sight.can_contact(others)
            return [each.json() if each and contacts[each.owner] else None for each in found]

        return await self._page("listed", uid, page_request, show, gate=sight.gate(uid, "user id"))

    async def add_member(self, uid: str, list_id: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Add the user ``member`` to a list, and the user's statuses to the list's timeline. Returns the list as JSON.

        Raises NotFound (its ``param`` is ``uid``) if the member is unknown or suspended, or if the owner or the member
        blocks the other. Raises TooLarge ``too_many`` if the list has 5,000 members.
        """
        return await self._change_member("list_add", "merge", uid, list_id, member, idempotency_key)

    async def remove_member(self, uid: str, list_id: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Remove the user ``member`` from a list, and the user's statuses from its timeline. Returns the list as JSON.

        Raises NotFound (its ``param`` is ``uid``) if the member is unknown or suspended, or blocks the list's owner.
        """
        return await self._change_member("list_remove", "remove", uid, list_id, member, idempotency_key)

    async def _change_member(
        self, kind: str, mode: str, uid: str, list_id: str, member: str, idempotency_key: IdempotencyKey
    ) -> bytes:
        reply = await self._scripts.write(
            "list_change_member", idempotency_key, owner=uid, id=list_id, uid=member, kind=kind
        )
        if not reply.is_repeat:  # the first write has enqueued the job of the timeline
            fence, newest = reply.first_time["fence"], reply.first_time["newest"]
            await self._syndication.apply_changes(TimelineChange("list", list_id, member, mode, fence, newest))
        return await self._written_circle(reply, uid, list_id)


class Groups(Circles):
    """Changes and reads groups. A group has at most 5,000 members, and a user is in at most 1,000 groups.

    Members see their groups. Other users see a group unless it is private, or its owner blocks them or is suspended.
    """

    noun, of_user, members = "group", "groups", "joined"

    async def create(self, uid: str, name: str, kind: str, description: str, idempotency_key: IdempotencyKey) -> bytes:
        """Create a ``public``, ``private`` or ``announcement`` group with its owner ``uid`` as first member.

        Returns the group as JSON. Raises TooLarge ``too_many`` if the owner is in 1,000 groups already.
        """
        return await self._create("group_create", uid, name, description, idempotency_key, kind=kind)

    async def delete(self, uid: str, group: str, idempotency_key: IdempotencyKey) -> None:
        """Delete a group. The statuses posted in it remain, but only their authors can still see them."""
        await self._scripts.write("group_delete", idempotency_key, uid=uid, id=group)

    async def list_invitations(self, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the groups to which a user is invited, last invited first."""
        sight = self._sight(uid)

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            found = await circles.read_circles(self._redis, "group", [member for member, _ in members])
            contacts = await sight.can_contact([*{group.owner for group in found if group}])
            return [group.json() if group and contacts[group.owner] else None for group in found]

        return await self._page("invitations", uid, page_request, show)

    async def list_joined(self, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the groups in which a user is, last joined first."""
        return await self._list_of_user(uid, uid, page_request)

    async def join(self, uid: str, group: str, idempotency_key: IdempotencyKey) -> bytes:
        """Join a public group; return its JSON. Raises TooLarge above 5,000 members, or 1,000 groups of the user."""
        return (await self.add_member(uid, group, uid, idempotency_key))[0]

    async def leave(self, uid: str, group: str, idempotency_key: IdempotencyKey) -> bytes:
        """Leave a group. Returns the group as JSON. Raises BadRequest for the owner, who can only delete the group."""
        return await self.remove_member(uid, group, uid, idempotency_key)

    async def add_member(
        self, uid: str, group: str, member: str, idempotency_key: IdempotencyKey
    ) -> tuple[bytes, bool]:
        """Add the user ``member`` to a private group on behalf of its owner ``uid``.

        Returns the group as JSON, and whether the user was only invited. Users who follow the owner are members at
        once. Others are invited, and join the group themselves.

        Raises NotFound (its ``param`` is ``uid``) if the member is unknown or suspended, or if the owner or the member
        blocks the other. Raises BadRequest for a group that is not private, because users join it themselves. Raises
        TooLarge ``too_many`` if the group has 5,000 members or the member is in 1,000 groups. Raises Forbidden
        ``unanswered`` if three invitations of ``uid`` wait for the member's answer.
        """
        reply = await self._scripts.write("group_join", idempotency_key, uid=uid, id=group, other=member)
        return await self._written_circle(reply, uid, group), reply.value.endswith(b"invited")

    async def remove_member(self, uid: str, group: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Remove ``member`` from a group of ``uid``; return the group's JSON. Raises BadRequest for the owner."""
        reply = await self._scripts.write("group_leave", idempotency_key, uid=uid, id=group, other=member)
        return await self._written_circle(reply, uid, group)
