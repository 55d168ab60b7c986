"""Users as reads show them: the rows of their hashes, and their JSON."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from stream_server.errors import NotFound
from stream_server.events.position import format_iso_time
from stream_server.store import keys
from stream_server.store.pagination import Member, Show
from stream_server.store.reads.sight import Sight
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.protocol import KeyRead

USER_FIELDS = ("id", "login", "card", "followers", "following", "posts", "signup", "email")
"""Fields of a user's hash that make a :class:`UserRow`, in its order."""

_BLOCKERS = keys.key_for("blockers").encode()
_ROW_READ = KeyRead(b"HMGET", keys.key_for("user").encode(), *map(str.encode, USER_FIELDS), b"suspended")
"""Reads what makes a :class:`UserRow`, and behind it whether the user is suspended."""


class UserRow(NamedTuple):
    """The fields of a user's hash in Redis. :meth:`public_json` makes the same JSON as ``lua/user.lua``."""

    id: bytes
    login: bytes
    card: bytes
    followers: bytes
    following: bytes
    posts: bytes
    signup: bytes
    email: bytes | None

    def public_json(self, since_ms: bytes | None = None) -> bytes:
        """Return the user as JSON for other users: without the e-mail address.

        ``since_ms`` is the time in ms since 1970 at which the user entered a set, for the member ``since``.
        """
        since = b"" if since_ms is None else b',"since":"%b"' % time_text(since_ms)
        return (
            b'{"id":"%b","login":"%b",%b,"followers":%b,"following":%b,"posts":%b,"signup":"%b"%b}'
            % (self.id, self.login, self.card, self.followers, self.following, self.posts, self.signup, since)
        )  # fmt: skip

    def own_json(self, public_json: bytes | None = None) -> bytes:
        """Return the user as JSON, with ``email`` (may be null). Send the result only to this user.

        ``public_json`` is the public part as it was at an earlier time; None takes the present one.
        """
        email = None if self.email is None else self.email.decode()
        return (public_json or self.public_json())[:-1] + b',"email":' + msgspec.json.encode(email) + b"}"


def time_text(ms: bytes | int) -> bytes:
    """Return a time in ms since 1970, as Redis keeps it, in the format of all times of the native API."""
    return format_iso_time(int(ms)).encode()


async def read_rows(sight: Sight, uids: Sequence[bytes], *, all_users: bool = False) -> list[UserRow | None]:
    """Return the rows of users in the order of ``uids``, None for a user whose card the viewer may not see.

    With ``all_users``, the viewer sees all users who exist, as an administrator does.
    """
    if not uids:
        return []
    *rows, blockers = await sight.redis.execute_at_once(
        *map(_ROW_READ.command, uids), ("ZMSCORE", _BLOCKERS + sight.viewer, *uids)
    )
    return [
        UserRow(*row) if row[0] is not None and (all_users or (suspended != b"1" and blocker is None)) else None
        for (*row, suspended), blocker in zip(rows, blockers, strict=True)
    ]


async def read_own(redis: RedisClient, uid: str, public_json: bytes | None = None) -> bytes:
    """Return a user as JSON with the e-mail address. Raises NotFound for an unknown user.

    ``public_json`` is the public part as it was at an earlier time; None takes the present one.
    """
    (row,) = await redis.execute(("HMGET", keys.key_for("user", uid), *USER_FIELDS))
    if row[0] is None:
        raise NotFound("unknown user")
    return UserRow(*row).own_json(public_json)


def show_users(sight: Sight, *, all_users: bool = False) -> Show:
    """Return a function that renders the users of a page as JSON. ``since`` is when a user entered the set."""

    async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
        rows = await read_rows(sight, [member for member, _ in members], all_users=all_users)
        return [row and row.public_json(since) for row, (_, since) in zip(rows, members, strict=True)]

    return show
