"""Lists: people whom a user reads together; their owner's alone, or to be seen by everyone."""

from collections.abc import Mapping

import msgspec

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts, WriteReply
from stream_server.store.social import text_fields
from stream_server.store.timelines.syndication import Syndication, TimelineChange

_encode = msgspec.json.encode


class Lists:
    """The lists of one store: at most 1,000 of a user, with at most 5,000 members each.

    All that name a list raise NotFound for one that the user may not see (another's private one, or one of somebody
    who blocks them or is suspended), and what changes one Forbidden ``not_yours`` where it is another's.
    """

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def create(
        self, uid: str, name: str, description: str, private: bool, idempotency_key: IdempotencyKey
    ) -> bytes:  # noqa: FBT001 - the member of the body
        """A new list, as JSON; raises TooLarge ``too_many``."""
        answer = await self._scripts.write(
            "list_create",
            idempotency_key,
            uid,
            _flag_text(private),
            name,
            description,
            _encode(name),
            _encode(description),
        )
        return text_fields.json_of_reply(answer)

    async def update(
        self, uid: str, list_id: str, changes: Mapping[str, str | bool], idempotency_key: IdempotencyKey
    ) -> bytes:
        """Change ``name``, ``description`` or ``private``, as JSON; what is so already is no event."""
        fields = text_fields.hash_fields_with_json(
            **{name: word for name, word in changes.items() if isinstance(word, str)}
        )
        for name, flag in changes.items():
            if isinstance(flag, bool):
                fields += (name, _flag_text(flag))
        return text_fields.json_of_reply(
            await self._scripts.write("list_update", idempotency_key, uid, list_id, *fields)
        )

    async def delete(self, uid: str, list_id: str, idempotency_key: IdempotencyKey) -> None:
        """Nobody sees it any more; its timeline is cleared away by a job."""
        await self._scripts.write("list_delete", idempotency_key, uid, list_id)

    async def get(self, viewer: str, list_id: str) -> bytes:
        """A list as JSON."""
        found: bytes = await self._scripts.call("list_get", keys.META, viewer, list_id)
        return found

    async def list_owned(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """A user's lists, the newest first: all of one's own, another's public ones; raises NotFound, InvalidCursor."""
        return await read_page(self._scripts, "lists_page", keys.key_for("lists", uid), page_request, viewer, uid)

    async def list_containing(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """The lists that a user is on, the latest first, as far as the viewer may see them; raises as :meth:`list_owned`."""
        return await read_page(self._scripts, "lists_page", keys.key_for("listed", uid), page_request, viewer, uid)

    async def add_member(self, uid: str, list_id: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Put a user on one's list, whose timeline has their posts by then; gives the list as JSON.

        Raises NotFound ``uid`` for whom one may not know of or blocks, TooLarge ``too_many``.
        """
        answer = await self._scripts.write("list_add", idempotency_key, uid, list_id, member)
        await self._update_timeline("merge", list_id, member, answer)
        return text_fields.json_of_reply(answer)

    async def remove_member(self, uid: str, list_id: str, member: str, idempotency_key: IdempotencyKey) -> bytes:
        """Take a user off one's list; gives the list as JSON. Raises NotFound ``uid`` for whom one may not know of."""
        answer = await self._scripts.write("list_remove", idempotency_key, uid, list_id, member)
        await self._update_timeline("remove", list_id, member, answer)
        return text_fields.json_of_reply(answer)

    async def list_members(self, viewer: str, list_id: str, page_request: PageRequest) -> Page:
        """Who is on a list, as JSON with ``since``, the latest first; raises InvalidCursor."""
        return await read_page(
            self._scripts, "users_page", keys.key_for("members", list_id), page_request, viewer, "list", list_id
        )

    async def _update_timeline(self, mode: str, list_id: str, member: str, reply: WriteReply) -> None:
        """The timeline follows in the same call; a repetition was answered before, and its job is under way."""
        if reply.is_repeat:
            return
        fence, recent = reply.first_time_extra
        await self._syndication.apply_changes(TimelineChange("list", list_id, member, mode, fence, recent))


def _flag_text(value: bool) -> str:  # noqa: FBT001 - it is all there is
    return "1" if value else "0"
