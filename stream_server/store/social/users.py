"""Users: sign up, look up, change. Logins and e-mails are unique without regard to case; a login never changes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from stream_server.errors import NotFound
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts
from stream_server.store.social.user_json import USER_FIELDS, ProfileCard, UserRow

USERS_PER_CALL = 200
"""Users made by one call of a script: a few milliseconds, in which Redis does nothing else."""


class CreatedUser(NamedTuple):
    """One user of a batch; ``is_new`` is False for a login that was there before."""

    id: str
    login: str
    is_new: bool


class Credentials(NamedTuple):
    """Who a login or e-mail is, the argon2 hash of the password, and whether the user is suspended."""

    id: str
    password_hash: str
    suspended: bool


class Users:
    """The users of one store."""

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts

    async def create(
        self, login: str, name: str, email: str, password_hash: str, idempotency_key: IdempotencyKey
    ) -> bytes:
        """A new user, as JSON for oneself; raises Conflict ``login_taken`` or ``email_taken``."""
        card = ProfileCard(name).json_members()
        more = ("name", name, "email", email, "password", password_hash)
        answer = await self._scripts.write(
            "user_create", idempotency_key, login, login.lower(), email.lower(), card, *more
        )  # fmt: skip
        if answer.is_repeat:
            return await self.get_own(answer.value.decode())
        signup: bytes = answer.first_time_extra[0]
        return UserRow(answer.value, login.encode(), card, b"0", b"0", b"0", signup, email.encode()).own_json()

    async def create_many(self, users: Sequence[tuple[str, str]], idempotency_key: IdempotencyKey) -> list[CreatedUser]:
        """Users without password or e-mail for (login, name) pairs; a login that exists gives its user.

        Each chunk is one step; a lost answer is asked for again by the same request.
        """
        made: list[CreatedUser] = []
        for start in range(0, len(users), USERS_PER_CALL):
            made += await self._create_chunk(users[start : start + USERS_PER_CALL], idempotency_key.for_part(start))
        return made

    async def get(self, viewer: str, uid: str) -> bytes:
        """A user as JSON; raises NotFound where there is none, or none whom the viewer may know of."""
        return await self._get_one(viewer, uid)

    async def get_own(self, uid: str) -> bytes:
        """A user as JSON for oneself, with the e-mail; raises NotFound."""
        row: list[Any]
        (row,) = await self._redis.execute(("HMGET", keys.key_for("user", uid), *USER_FIELDS))
        if row[0] is None:
            raise NotFound("there is no such user")
        return UserRow(*row).own_json()

    async def update(
        self, uid: str, changes: Mapping[str, str | bool | None], idempotency_key: IdempotencyKey
    ) -> bytes:
        """Change what users say about themselves, and give the user as :meth:`get_own` does.

        ``changes`` holds any members of :class:`ProfileCard`; None takes one away. Protection that begins or ends is an
        event of its own, before that of the rest; a change to what is so already is none.
        """
        said = [
            msgspec.json.encode(changes[name]) if name in changes else b"" for name in ProfileCard.__struct_fields__
        ]
        fields = [part for name, value in changes.items() for part in (name, _to_hash_value(value))]
        answer = await self._scripts.write("user_update", idempotency_key, uid, *said, *fields)
        return await self.get_own(uid) if answer.is_repeat else UserRow(*answer.first_time_extra[0]).own_json()

    async def get_by_login(self, viewer: str, login: str) -> bytes:
        """A user as JSON, looked up by login; raises NotFound as :meth:`get` does."""
        return await self._get_one(viewer, f"@{login.lower()}")

    async def get_many(self, viewer: str, ids: Sequence[str]) -> list[bytes]:
        """Those of these users whom the viewer may know of, as JSON, in this order, in one round trip."""
        found: list[bytes] = await self._scripts.call("users_get", keys.META, viewer, *ids)
        return found

    async def check_available(self, login: str | None = None, email: str | None = None) -> dict[str, bool]:
        """Whether each that is asked for could be signed up with now."""
        wanted = {"login": (keys.LOGINS, login), "email": (keys.EMAILS, email)}
        asked = [(name, key, value.lower()) for name, (key, value) in wanted.items() if value is not None]
        if not asked:
            return {}
        taken = await self._redis.execute(*(("HEXISTS", key, value) for _, key, value in asked))
        return {name: not found for (name, _, _), found in zip(asked, taken, strict=True)}

    async def find_credentials(self, login_or_email: str) -> Credentials | None:
        """What a password is verified against; None where there is no such user, or none with a password.

        One round trip either way: no second one tells who exists.
        """
        by = "email" if "@" in login_or_email else "login"
        found = await self._scripts.call("user_credentials", keys.META, by, login_or_email.lower())
        if found is None or not found[1]:
            return None
        return Credentials(found[0].decode(), found[1].decode(), bool(found[2]))

    async def resolve_logins(self, logins: Iterable[str]) -> dict[str, str]:
        """Lower-cased login to user id, for those that exist."""
        wanted = list(dict.fromkeys(login.lower() for login in logins))
        if not wanted:
            return {}
        (found,) = await self._redis.execute(("HMGET", keys.LOGINS, *wanted))
        return {login: uid.decode() for login, uid in zip(wanted, found, strict=True) if uid is not None}

    async def _create_chunk(
        self, users: Sequence[tuple[str, str]], idempotency_key: IdempotencyKey
    ) -> list[CreatedUser]:
        fields: list[str | bytes] = []
        for login, name in users:
            fields += (login, login.lower(), name, ProfileCard(name).json_members())
        answer = await self._scripts.write("users_create", idempotency_key, *fields)
        outcomes = answer.value.decode().split(" ")
        return [CreatedUser(o[:-1], login, o[-1] == "+") for o, (login, _) in zip(outcomes, users, strict=True)]

    async def _get_one(self, viewer: str, id_or_login: str) -> bytes:
        found = await self.get_many(viewer, [id_or_login])
        if not found:
            raise NotFound("there is no such user")
        return found[0]


def _to_hash_value(value: str | bool | None) -> str:  # noqa: FBT001 - a value, not a switch
    """A member of the card as the hash has it beside the JSON; '' for one that is taken away."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return value or ""
