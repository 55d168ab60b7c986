"""Notifications: what other users did that concerns a user, and the mark up to which the user has read them."""

from collections.abc import Sequence

from stream_server.events.position import created_ms
from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Member, Page, PageRequest
from stream_server.store.reads import statuses, users
from stream_server.store.reads.sight import Sight
from stream_server.store.social.noun import Noun

_COMMENT = keys.key_for("comment").encode()


class Notifications(Noun):
    """Reads a user's notifications, and marks them as read. Writes of other users, such as likes, create them."""

    async def list_notifications(self, uid: str, page_request: PageRequest) -> Page:
        """Return a user's notifications as JSON, newest first.

        Each JSON is that of the notification's log entry, but with the present counters of its status and the present
        ``read``. A notification is left out while its status or comment is deleted or hidden, and while the user who
        caused it is blocked, muted or suspended.
        """
        page, _ = await self.list_with_unread_count(uid, page_request)
        return page

    async def list_with_unread_count(self, uid: str, page_request: PageRequest) -> tuple[Page, int]:
        """Return a page of a user's notifications as JSON, and the number of unread ones.

        Only among the newest 100 are hidden ones left out of the number.
        """
        sight = self._sight(uid)
        subjects, mark = _Subjects(sight), 0

        async def read_mark() -> None:
            nonlocal mark
            mark = await self._read_mark(uid)

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            found = await subjects.find([name for name, _ in members])
            visible = [name for (name, _), more in zip(members, found, strict=True) if more is not None]
            sources = [*{name.split(b":")[1] for name in visible}]
            rows = dict(zip(sources, await users.read_rows(sight, sources, all_users=True), strict=True))
            shown = list[bytes | None]()
            for (name, number), more in zip(members, found, strict=True):
                kind, source, _ = name.split(b":", 2)
                if more is None or (row := rows[source]) is None:
                    shown.append(None)
                    continue
                # The same bytes as those of ``lua/notification.lua``.
                shown.append(b'{"id":"%b","kind":"%b","source":%b%b,"posted":"%b","read":%b}' % (
                    number, kind, row.public_json(), more, users.time_text(created_ms(int(number))),
                    b"true" if int(number) <= mark else b"false",
                ))  # fmt: skip
            return shown

        page = await self._page("notices", uid, page_request, show, admit=read_mark)
        return page, await self._count_unread(uid, subjects, mark)

    async def _read_mark(self, uid: str) -> int:
        (read_up_to,) = await self._redis.execute(("HGET", keys.key_for("user", uid), "notices_read"))
        return int(read_up_to or 0)

    async def _count_unread(self, uid: str, subjects: "_Subjects", mark: int) -> int:
        key, above = keys.key_for("notices", uid), f"({mark}"
        # Hidden ones are left out among the newest hundred only. To check all would take milliseconds.
        newest = ("ZRANGE", key, "+inf", above, "BYSCORE", "REV", "LIMIT", 0, 100)
        names, count = await self._redis.execute(newest, ("ZCOUNT", key, above, "+inf"))
        hidden = sum(members is None for members in await subjects.find(names))
        return int(count) - hidden

    async def mark_read(self, uid: str, notification_id: str, idempotency_key: IdempotencyKey) -> int:
        """Mark the notification with this id and all older ones as read. Return how many remain unread.

        An id below that of an earlier call changes nothing. The notification with this id need not exist any more.
        Raises NotFound if the id is higher than all ids that the store has issued.
        """
        await self._scripts.write("notifications_mark_read", idempotency_key, uid=uid, id=notification_id)
        return await self._count_unread(uid, _Subjects(self._sight(uid)), await self._read_mark(uid))


class _Subjects:
    """The subjects of notifications, such as a liked status, as their receiver may see them now.

    The name of a notification is ``<kind>:<source>:<subject>``. The subject is the id of a status, of a comment (with
    ``c`` before it if the comment mentions the receiver), or empty.
    """

    def __init__(self, sight: Sight) -> None:
        self._sight = sight
        self._known: dict[bytes, bytes | None] = {}

    async def find(self, names: Sequence[bytes]) -> list[bytes | None]:
        """Return what the notifications with these ``names`` show of their subjects, in the same order.

        Each is a text of JSON members, ``status`` and ``comment``, with a comma before each member. None stands for a
        notification that the receiver may not see, or whose subject is deleted.
        """
        new = [name for name in names if name not in self._known]
        if not new:
            return [self._known[name] for name in names]
        redis, sight = self._sight.redis, self._sight
        parts = [name.split(b":", 2) for name in new]
        of_comments = {each for kind, _, each in parts if kind == b"comment" or each[:1] == b"c"}
        comment_ids = [*{each.lstrip(b"c") for each in of_comments}]
        commands = [("HMGET", _COMMENT + each, "uid", "status", "json") for each in comment_ids]
        comments = dict(zip(comment_ids, await redis.execute(*commands) if commands else (), strict=True))
        about = {each for _, _, each in parts if each and each not in of_comments}
        status_ids = [*about | {status for author, status, _ in comments.values() if author is not None}]
        rows = await statuses.read_rows(redis, status_ids)
        self._originals = await statuses.read_originals(redis, rows)
        self._rows = dict(zip(status_ids, rows, strict=True))
        self._comments = comments
        authors = {_COMMENT + each: author for each, (author, _, _) in comments.items() if author is not None}
        await statuses.learn(sight, rows, self._originals, authors, {source for _, source, _ in parts})
        self._known |= {name: self._members(*part) for name, part in zip(new, parts, strict=True)}
        return [self._known[name] for name in names]

    def _members(self, kind: bytes, source: bytes, subject: bytes) -> bytes | None:
        sight = self._sight
        if not sight.wants_notifications_from(source):
            return None
        if not subject:
            return b""
        if kind != b"comment" and subject[:1] != b"c":
            status = statuses.shown_json(sight, self._rows[subject], self._originals, Visibility.VISIBLE)
            return status and b',"status":' + status
        comment = subject.lstrip(b"c")
        author, status_id, json = self._comments[comment]
        row = None if author is None or _COMMENT + comment in sight.gone else self._rows[status_id]
        if author is None or row is None or sight.of(author, row.group) < Visibility.VISIBLE:
            return None
        # The status is shown even if the receiver mutes its author.
        status = statuses.shown_json(sight, row, self._originals, Visibility.ON_REQUEST)
        return status and b',"status":%b,"comment":%b' % (status, json)
