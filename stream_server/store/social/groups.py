"""Groups: users who post among themselves. A group is public, private, or for announcements of its owner."""

from collections.abc import Mapping

import msgspec

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts
from stream_server.store.social.stored_json import hash_fields_with_json, json_of_reply

_encode = msgspec.json.encode


class Groups:
    """Changes and reads groups. A group has at most 5,000 members, and a user is in at most 1,000 groups.

    Methods that name a group raise NotFound if the user may not see it. Members see their groups. Other users see a
    group unless it is private, or its owner blocks them or is suspended. Methods reserved for the owner raise Forbidden
    ``not_yours`` for other users.
    """

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def create(self, uid: str, name: str, kind: str, description: str, idempotency_key: IdempotencyKey) -> bytes:
        """Create a group with its owner as first member. Returns it as JSON.

        ``kind`` is ``public``, ``private`` or ``announcement``. Raises TooLarge ``too_many`` if the owner is in too
        many groups.
        """
        reply = await self._scripts.write(
            "group_create", idempotency_key, uid, kind, name, description, _encode(name), _encode(description)
        )
        return json_of_reply(reply)

    async def update(self, uid: str, group: str, changes: Mapping[str, str], idempotency_key: IdempotencyKey) -> bytes:
        """Change ``name`` or ``description``. Returns the group as JSON. Values that do not change make no log entry.

        A group's kind never changes, because a change could publish what its members wrote in private.
        """
        fields = hash_fields_with_json(**changes)
        return json_of_reply(await self._scripts.write("group_update", idempotency_key, uid, group, *fields))

    async def delete(self, uid: str, group: str, idempotency_key: IdempotencyKey) -> None:
        """Delete a group for all members. Only their authors can still see the statuses that were posted in it."""
        await self._scripts.write("group_delete", idempotency_key, uid, group)

    async def get(self, viewer: str, group: str) -> bytes:
        """Return a group as JSON."""
        found: bytes = await self._scripts.call("group_get", keys.META, viewer, group)
        return found

    async def list_joined(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the groups of which a user is a member and that the viewer may see, last joined first.

        Raises NotFound and InvalidCursor.
        """
        return await read_page(self._scripts, "groups_page", keys.key_for("groups", uid), page_request, viewer, uid)

    async def join(self, uid: str, group: str, idempotency_key: IdempotencyKey) -> bytes:
        """Join a group that is not private. Returns it as JSON. Raises TooLarge ``too_many``."""
        return await self.add_member(uid, group, uid, idempotency_key)

    async def leave(self, uid: str, group: str, idempotency_key: IdempotencyKey) -> bytes:
        """Leave a group. Returns it as JSON. Raises BadRequest for the owner."""
        return await self.remove_member(uid, group, uid, idempotency_key)

    async def add_member(self, uid: str, group: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Add a user to a private group, as its owner. Returns the group as JSON.

        Raises NotFound ``uid`` if the member is unknown or suspended, or if one of the two blocks the other. Raises
        BadRequest for a group that is not private, because users join it themselves. Raises TooLarge ``too_many``.
        """
        return json_of_reply(await self._scripts.write("group_join", idempotency_key, uid, group, member))

    async def remove_member(self, uid: str, group: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Remove a user from a group, as its owner. Returns the group as JSON.

        Raises NotFound ``uid``, and BadRequest if the member is the owner.
        """
        return json_of_reply(await self._scripts.write("group_leave", idempotency_key, uid, group, member))

    async def list_members(self, viewer: str, group: str, page_request: PageRequest) -> Page:
        """Return the members of a group, as JSON with ``since``, last joined first. Raises InvalidCursor."""
        key = keys.key_for("joined", group)
        return await read_page(self._scripts, "users_page", key, page_request, viewer, "group", group)
