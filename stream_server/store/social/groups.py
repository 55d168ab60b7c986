"""Groups: people who post among themselves; open to all, closed, or for announcements of the owner."""

from collections.abc import Mapping

import msgspec

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts
from stream_server.store.social import text_fields

_encode = msgspec.json.encode


class Groups:
    """The groups of one store: at most 5,000 members each, a user in at most 1,000.

    All that name a group raise NotFound for one that the user may not see: a private one of which they are no
    member, or one of somebody who blocks them or is suspended, unless they are a member. What is the owner's to do
    raises Forbidden ``not_yours`` for others.
    """

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def create(self, uid: str, name: str, kind: str, description: str, idempotency_key: IdempotencyKey) -> bytes:
        """A new group, ``public``, ``private`` or ``announcement``, with its owner in it, as JSON.

        Raises TooLarge ``too_many`` for who is in too many.
        """
        answer = await self._scripts.write(
            "group_create", idempotency_key, uid, kind, name, description, _encode(name), _encode(description)
        )
        return text_fields.json_of_reply(answer)

    async def update(self, uid: str, group: str, changes: Mapping[str, str], idempotency_key: IdempotencyKey) -> bytes:
        """Change ``name`` or ``description``, as JSON; what is so already is no event.

        A kind never changes: what was written among few would be open to all.
        """
        answer = await self._scripts.write(
            "group_update", idempotency_key, uid, group, *text_fields.hash_fields_with_json(**changes)
        )
        return text_fields.json_of_reply(answer)

    async def delete(self, uid: str, group: str, idempotency_key: IdempotencyKey) -> None:
        """It is gone for all members; its statuses are left to their authors alone."""
        await self._scripts.write("group_delete", idempotency_key, uid, group)

    async def get(self, viewer: str, group: str) -> bytes:
        """A group as JSON."""
        found: bytes = await self._scripts.call("group_get", keys.META, viewer, group)
        return found

    async def list_joined(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """The groups that a user is in, the latest first, as far as the viewer sees them.

        Raises NotFound, InvalidCursor.
        """
        return await read_page(self._scripts, "groups_page", keys.key_for("groups", uid), page_request, viewer, uid)

    async def join(self, uid: str, group: str, idempotency_key: IdempotencyKey) -> bytes:
        """Come into a group that is not private; gives it as JSON. Raises TooLarge ``too_many``."""
        return await self.add_member(uid, group, uid, idempotency_key)

    async def leave(self, uid: str, group: str, idempotency_key: IdempotencyKey) -> bytes:
        """Go out of a group; gives it as JSON. Raises BadRequest for its owner."""
        return await self.remove_member(uid, group, uid, idempotency_key)

    async def add_member(self, uid: str, group: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Put a user into one's private group; gives it as JSON.

        Raises NotFound ``uid`` for whom one may not know of or blocks, BadRequest where people come by themselves,
        TooLarge ``too_many``.
        """
        return text_fields.json_of_reply(await self._scripts.write("group_join", idempotency_key, uid, group, member))

    async def remove_member(self, uid: str, group: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Take a user out of one's group; gives it as JSON. Raises NotFound ``uid``, BadRequest for the owner."""
        return text_fields.json_of_reply(await self._scripts.write("group_leave", idempotency_key, uid, group, member))

    async def list_members(self, viewer: str, group: str, page_request: PageRequest) -> Page:
        """Who is in a group, as JSON with ``since``, the latest first; raises InvalidCursor."""
        return await read_page(
            self._scripts, "users_page", keys.key_for("joined", group), page_request, viewer, "group", group
        )
