"""Circles of users: lists and groups.

A list has users whose statuses the list's owner reads together. It is private or public. The users of a group post
among themselves. A group is public, private, or for announcements of its owner.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Member, Page, PageRequest
from stream_server.store.reads import circles
from stream_server.store.reads.users import show_users
from stream_server.store.redis.scripts import WriteReply, position_of
from stream_server.store.social.noun import Noun, encode_json, flag_text, hash_fields_with_json
from stream_server.store.timelines.syndication import TimelineChange


class Lists(Noun):
    """Changes and reads lists. A user has at most 100 lists, and a list at most 5,000 members.

    Methods that take a list's id raise NotFound if the user may not see the list: if it is another user's private list,
    or its owner blocks the user or is suspended. Methods that change a list raise Forbidden ``not_yours`` if it belongs
    to another user.
    """

    async def create(
        self,
        uid: str,
        name: str,
        description: str,
        private: bool,  # noqa: FBT001 - a member of the request body
        idempotency_key: IdempotencyKey,
    ) -> bytes:
        """Create a list. Returns the list as JSON. Raises TooLarge ``too_many`` if the user has 100 lists."""
        texts = (name, description, encode_json(name), encode_json(description))
        reply = await self._scripts.write("list_create", idempotency_key, uid, flag_text(private), *texts)
        return await self._written_list(reply, uid, str(position_of(reply).status_number))

    async def update(
        self, uid: str, list_id: str, changes: Mapping[str, str | bool], idempotency_key: IdempotencyKey
    ) -> bytes:
        """Change a list's name, description or ``private``. Returns its JSON. Adds no log entry if nothing changes."""
        fields = hash_fields_with_json(**{name: text for name, text in changes.items() if isinstance(text, str)})
        for name, flag in changes.items():
            if isinstance(flag, bool):
                fields += (name, flag_text(flag))
        reply = await self._scripts.write("circle_update", idempotency_key, uid, list_id, "list", *fields)
        return await self._written_list(reply, uid, list_id)

    async def delete(self, uid: str, list_id: str, idempotency_key: IdempotencyKey) -> None:
        """Delete a list. The list disappears at once. A background job deletes its timeline and its members later."""
        await self._scripts.write("list_delete", idempotency_key, uid, list_id)

    async def get(self, viewer: str, list_id: str) -> bytes:
        """Return a list of users as JSON. Raises NotFound if the viewer may not see the list."""
        return (await circles.require(self._sight(viewer), "list", list_id)).json()

    async def list_owned(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the lists that a user owns as JSON, newest first. Private lists are included only for their owner."""
        sight = self._sight(viewer)
        return await self._page(
            "lists", uid, page_request, circles.show_circles(sight, "list"), gate=sight.gate(uid, "user id")
        )

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

    async def list_members(self, viewer: str, list_id: str, page_request: PageRequest) -> Page:
        """Return the members of a list as JSON, latest addition first. Each has ``since``, the time of the addition."""
        sight = self._sight(viewer)
        admit = partial(circles.require, sight, "list", list_id)
        return await self._page("members", list_id, page_request, show_users(sight), admit=admit)

    async def _change_member(
        self, kind: str, mode: str, uid: str, list_id: str, member: str, idempotency_key: IdempotencyKey
    ) -> bytes:
        reply = await self._scripts.write("list_change_member", idempotency_key, uid, list_id, member, kind)
        if not reply.is_repeat:  # the first write has enqueued the job of the timeline
            _, fence, newest_ids = reply.first_time_extra
            await self._syndication.apply_changes(TimelineChange("list", list_id, member, mode, fence, newest_ids))
        return await self._written_list(reply, uid, list_id)

    async def _written_list(self, reply: WriteReply, uid: str, list_id: str) -> bytes:
        return await self._written(reply, "list", partial(self.get, uid, list_id))


class Groups(Noun):
    """Changes and reads groups. A group has at most 5,000 members, and a user is in at most 1,000 groups.

    Methods that take a group's id raise NotFound if the user may not see the group. Members see their groups. Other
    users see a group unless it is private, or its owner blocks them or is suspended. Methods reserved for the owner
    raise Forbidden ``not_yours`` for other users.
    """

    async def create(self, uid: str, name: str, kind: str, description: str, idempotency_key: IdempotencyKey) -> bytes:
        """Create a ``public``, ``private`` or ``announcement`` group with its owner ``uid`` as first member.

        Returns the group as JSON. Raises TooLarge ``too_many`` if the owner is in 1,000 groups already.
        """
        texts = (name, description, encode_json(name), encode_json(description))
        reply = await self._scripts.write("group_create", idempotency_key, uid, kind, *texts)
        return await self._written_group(reply, uid, str(position_of(reply).status_number))

    async def update(self, uid: str, group: str, changes: Mapping[str, str], idempotency_key: IdempotencyKey) -> bytes:
        """Change a group's ``name`` or ``description``. Returns its JSON. Adds no log entry if nothing changes.

        The kind of a group cannot change, because a change could publish what its members wrote in private.
        """
        fields = hash_fields_with_json(**changes)
        reply = await self._scripts.write("circle_update", idempotency_key, uid, group, "group", *fields)
        return await self._written_group(reply, uid, group)

    async def delete(self, uid: str, group: str, idempotency_key: IdempotencyKey) -> None:
        """Delete a group. The statuses posted in it remain, but only their authors can still see them."""
        await self._scripts.write("group_delete", idempotency_key, uid, group)

    async def get(self, viewer: str, group: str) -> bytes:
        """Return a group of users as JSON. Raises NotFound if the viewer may not see the group."""
        return (await circles.require(self._sight(viewer), "group", group)).json()

    async def list_joined(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the groups that have ``uid`` as member and that the viewer may see, last joined first."""
        sight = self._sight(viewer)
        return await self._page(
            "groups", uid, page_request, circles.show_circles(sight, "group"), gate=sight.gate(uid, "user id")
        )

    async def list_invitations(self, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the groups to which a user is invited, last invited first."""
        sight = self._sight(uid)

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            found = await circles.read_circles(self._redis, "group", [member for member, _ in members])
            contacts = await sight.can_contact([*{group.owner for group in found if group}])
            return [group.json() if group and contacts[group.owner] else None for group in found]

        return await self._page("invitations", uid, page_request, show)

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
        reply = await self._scripts.write("group_join", idempotency_key, uid, group, member)
        return await self._written_group(reply, uid, group), reply.value.endswith(b"invited")

    async def remove_member(self, uid: str, group: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Remove ``member`` from a group of ``uid``; return the group's JSON. Raises BadRequest for the owner."""
        reply = await self._scripts.write("group_leave", idempotency_key, uid, group, member)
        return await self._written_group(reply, uid, group)

    async def list_members(self, viewer: str, group: str, page_request: PageRequest) -> Page:
        """Return the members of a group as JSON, last joined first. Each has ``since``, the time of joining."""
        sight = self._sight(viewer)
        admit = partial(circles.require, sight, "group", group)
        return await self._page("joined", group, page_request, show_users(sight), admit=admit)

    async def _written_group(self, reply: WriteReply, uid: str, group: str) -> bytes:
        return await self._written(reply, "group", partial(self.get, uid, group))
