"""Lists: users whose statuses the list's owner reads together. A list is private or public."""

from collections.abc import Mapping

import msgspec

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts, WriteReply
from stream_server.store.social.stored_json import hash_fields_with_json, json_of_reply
from stream_server.store.timelines.syndication import Syndication, TimelineChange

_encode = msgspec.json.encode


class Lists:
    """Changes and reads lists. A user has at most 1,000 lists, and a list at most 5,000 members.

    Methods that name a list raise NotFound if the user may not see it: another user's private list, or a list whose
    owner blocks the user or is suspended. Methods that change a list raise Forbidden ``not_yours`` if it belongs to
    another user.
    """

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def create(
        self,
        uid: str,
        name: str,
        description: str,
        private: bool,  # noqa: FBT001 - a member of the request body
        idempotency_key: IdempotencyKey,
    ) -> bytes:
        """Create a list. Returns it as JSON. Raises TooLarge ``too_many``."""
        texts = (name, description, _encode(name), _encode(description))
        return json_of_reply(
            await self._scripts.write("list_create", idempotency_key, uid, _flag_text(private), *texts)
        )

    async def update(
        self, uid: str, list_id: str, changes: Mapping[str, str | bool], idempotency_key: IdempotencyKey
    ) -> bytes:
        """Change ``name``, ``description`` or ``private``. Returns the list as JSON.

        Values that do not change make no log entry.
        """
        fields = hash_fields_with_json(**{name: text for name, text in changes.items() if isinstance(text, str)})
        for name, flag in changes.items():
            if isinstance(flag, bool):
                fields += (name, _flag_text(flag))
        return json_of_reply(await self._scripts.write("list_update", idempotency_key, uid, list_id, *fields))

    async def delete(self, uid: str, list_id: str, idempotency_key: IdempotencyKey) -> None:
        """Delete a list at once. A job deletes its timeline and its memberships later."""
        await self._scripts.write("list_delete", idempotency_key, uid, list_id)

    async def get(self, viewer: str, list_id: str) -> bytes:
        """Return a list as JSON."""
        found: bytes = await self._scripts.call("list_get", keys.META, viewer, list_id)
        return found

    async def list_owned(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the lists of a user, newest first. Private lists are included only for their owner.

        Raises NotFound and InvalidCursor.
        """
        return await read_page(self._scripts, "lists_page", keys.key_for("lists", uid), page_request, viewer, uid)

    async def list_containing(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the lists that contain a user and that the viewer may see, latest addition first.

        Raises NotFound and InvalidCursor.
        """
        return await read_page(self._scripts, "lists_page", keys.key_for("listed", uid), page_request, viewer, uid)

    async def add_member(self, uid: str, list_id: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Add a user to a list, and the user's statuses to its timeline. Returns the list as JSON.

        Raises NotFound ``uid`` if the member is unknown or suspended, or if one of the two blocks the other. Raises
        TooLarge ``too_many``.
        """
        reply = await self._scripts.write("list_add", idempotency_key, uid, list_id, member)
        await self._update_timeline("merge", list_id, member, reply)
        return json_of_reply(reply)

    async def remove_member(self, uid: str, list_id: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Remove a user from a list, and the user's statuses from its timeline. Returns the list as JSON.

        Raises NotFound ``uid`` if the member is unknown or suspended, or blocks this user.
        """
        reply = await self._scripts.write("list_remove", idempotency_key, uid, list_id, member)
        await self._update_timeline("remove", list_id, member, reply)
        return json_of_reply(reply)

    async def list_members(self, viewer: str, list_id: str, page_request: PageRequest) -> Page:
        """Return the members of a list, as JSON with ``since``, latest addition first. Raises InvalidCursor."""
        key = keys.key_for("members", list_id)
        return await read_page(self._scripts, "users_page", key, page_request, viewer, "list", list_id)

    async def _update_timeline(self, mode: str, list_id: str, member: str, reply: WriteReply) -> None:
        """Run the first pass over the list's timeline. A repeated write skips it: the first one enqueued the job."""
        if not reply.is_repeat:
            fence, newest_ids = reply.first_time_extra
            await self._syndication.apply_changes(TimelineChange("list", list_id, member, mode, fence, newest_ids))


def _flag_text(value: bool) -> str:  # noqa: FBT001 - the only parameter
    """Return a flag as hashes hold it: "1" or "0"."""
    return "1" if value else "0"
