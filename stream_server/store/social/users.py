"""Users: sign-up, profiles, look-up and credentials.

Logins and e-mail addresses are unique without regard to case. A login never changes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from filters.tokens import fold_name
from stream_server.errors import NotFound
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.names import MAX_BEGINNING_CHARS, beginnings_of
from stream_server.store.reads.users import UserRow, read_own, read_rows
from stream_server.store.social.noun import Noun, encode_json

USERS_PER_CALL = 200
"""Users that one script call creates. The call takes a few milliseconds, in which Redis does nothing else."""


MAX_FOUND = 100
"""Most beginnings of names that one search looks at."""


class ProfileCard(msgspec.Struct, frozen=True):
    """The part of a profile that its user edits. Redis keeps it as JSON, which Lua scripts insert unchanged."""

    name: str
    bio: str | None = None
    url: str | None = None
    place: str | None = None
    lang: str | None = None
    protected: bool = False

    def json_members(self) -> bytes:
        """Return the profile card as JSON members, without the braces around them."""
        return encode_json(self)[1:-1]


class CreatedUser(NamedTuple):
    """The result of :meth:`Users.create_many` for one login. ``is_new`` is False if the user existed before."""

    id: str
    login: str
    is_new: bool


class Credentials(NamedTuple):
    """A user's id, the argon2 hash of the password, and whether the user is suspended."""

    id: str
    password_hash: str
    suspended: bool


class Users(Noun):
    """Creates, reads and changes users."""

    async def create(
        self, login: str, name: str, email: str, password_hash: str, idempotency_key: IdempotencyKey
    ) -> bytes:
        """Create a user. Returns the user as JSON with e-mail. Raises Conflict ``login_taken`` or ``email_taken``."""
        card = ProfileCard(name).json_members()
        reply = await self._scripts.write(
            "user_create", idempotency_key, login=login, lower=login.lower(), email=email.lower(), card=card,
            names=beginnings_of(name), rest=("email", email, "password", password_hash),
        )  # fmt: skip
        if reply.is_repeat:
            return await self.get_own(reply.value.decode())
        signup: bytes = reply.first_time["signup"]
        return UserRow(reply.value, login.encode(), card, b"0", b"0", b"0", signup, email.encode()).own_json()

    async def create_many(
        self, users: Sequence[tuple[str, str]], idempotency_key: IdempotencyKey, admin: str = ""
    ) -> list[CreatedUser]:
        """Create users from (login, name) pairs, 200 at once. The result for a login that exists is its user.

        ``admin`` is the id of the administrator for the audit log, empty for the command line.
        """
        created: list[CreatedUser] = []
        for start in range(0, len(users), USERS_PER_CALL):
            some = users[start : start + USERS_PER_CALL]
            fields: list[str | bytes] = []
            for login, name in some:
                fields += (login, login.lower(), ProfileCard(name).json_members(), beginnings_of(name))
            key = idempotency_key.for_part(start)
            reply = await self._scripts.write("users_create", key, admin=admin, rest=fields)
            outcomes = reply.value.decode().split(" ")
            created += [CreatedUser(o[:-1], login, o[-1] == "+") for o, (login, _) in zip(outcomes, some, strict=True)]
        return created

    async def get(self, viewer: str, uid: str) -> bytes:
        """Return a user as JSON. Raises NotFound if the user is unknown, suspended, or blocks the viewer."""
        found = await self.get_many(viewer, [uid])
        if not found:
            raise NotFound("unknown user")
        return found[0]

    async def get_own(self, uid: str) -> bytes:
        """Return a user as JSON with e-mail address, for this user only. Raises NotFound for an unknown user."""
        return await read_own(self._redis, uid)

    async def update(
        self, uid: str, changes: Mapping[str, str | bool | None], idempotency_key: IdempotencyKey
    ) -> bytes:
        """Change a user's profile. Returns the user as JSON, with the e-mail address.

        ``changes`` maps names of :class:`ProfileCard` members to new values; None removes a value. If ``protected``
        changes, the log gets a ``protect`` or ``unprotect`` entry first. All other changes make one ``user_update``
        entry. Values that do not change make no entry.
        """
        reply = await self._scripts.write("user_update", idempotency_key, uid=uid, rest=profile_arguments(changes))
        return await self._own_user(reply, uid)

    async def get_by_login(self, viewer: str, login: str) -> bytes:
        """Return a user as JSON, by login. Raises NotFound if the user is unknown, suspended, or blocks the viewer."""
        return await self.get(viewer, f"@{login.lower()}")

    async def get_many(self, viewer: str, ids: Sequence[str]) -> list[bytes]:
        """Return the users with these ids as JSON, in this order. Hidden users are left out.

        In place of an id, ``@`` and a login in lower case names a user.
        """
        logins = [each[1:] for each in ids if each.startswith("@")]
        by_login = await self.resolve_logins(logins)
        known = [by_login.get(each[1:]) if each.startswith("@") else each for each in ids]
        rows = await read_rows(self._sight(viewer), [uid.encode() for uid in known if uid is not None])
        return [row.public_json() for row in rows if row is not None]

    async def search(self, viewer: str, text: str, count: int) -> list[bytes]:
        """Return at most ``count`` users as JSON whose login or name, or the name from a word on, begins with a text.

        Who has just this login comes first, then who has most followers. Of more than `MAX_FOUND` users only the first
        in the alphabet are looked at. Users whose profile the viewer may not see are left out.
        """
        folded = fold_name(text)[:MAX_BEGINNING_CHARS].encode()
        if not folded:
            return []
        span = b"[" + folded, b"[" + folded + b"\xff"
        own, found = await self._redis.execute(
            ("HGET", keys.LOGINS, folded), ("ZRANGE", keys.NAMES, *span, "BYLEX", "LIMIT", 0, MAX_FOUND)
        )
        uids = [*dict.fromkeys([*([own] if own else []), *(member.rpartition(b"\t")[2] for member in found)])]
        rows = [row for row in await read_rows(self._sight(viewer), uids) if row is not None]
        rows.sort(key=lambda row: (row.login.lower() != folded, -int(row.followers), row.login))
        return [row.public_json() for row in rows[:count]]

    async def check_available(self, login: str | None = None, email: str | None = None) -> dict[str, bool]:
        """Return for each of ``login`` and ``email``, unless it is None, whether it is free (no user has it)."""
        wanted = {"login": (keys.LOGINS, login), "email": (keys.EMAILS, email)}
        given = [(name, key, value.lower()) for name, (key, value) in wanted.items() if value is not None]
        if not given:
            return {}
        taken = await self._redis.execute(*(("HEXISTS", key, value) for _, key, value in given))
        return {name: not is_taken for (name, _, _), is_taken in zip(given, taken, strict=True)}

    async def find_credentials(self, login_or_email: str) -> Credentials | None:
        """Find a user by login or e-mail: id, password hash and suspension. None if unknown or without password.

        Each case takes two round trips, so the response time does not reveal which users exist.
        """
        names = keys.EMAILS if "@" in login_or_email else keys.LOGINS
        (uid,) = await self._redis.execute(("HGET", names, login_or_email.lower()))
        key = keys.key_for("user", (uid or b"").decode())
        ((password, suspended),) = await self._redis.execute(("HMGET", key, "password", "suspended"))
        return Credentials(uid.decode(), password.decode(), suspended == b"1") if uid and password else None

    async def user_of_subject(self, subject: str, logins: Sequence[str], name: str, email: str) -> str:
        """Return the id of the user whom another issuer calls ``subject``. Create the user at first sight.

        The user gets the first free one of ``logins``, and the e-mail address unless another user has it.
        """
        card = ProfileCard(name).json_members()
        uid = await self._scripts.call(
            "subject_user", keys.META, subject=subject, email=email, lower_email=email.lower(), card=card,
            names=beginnings_of(name), rest=logins,
        )  # fmt: skip
        return str(uid.decode())

    async def grant_scopes(self, admin: str, uid: str, scopes: str, idempotency_key: IdempotencyKey) -> None:
        """Give a user scopes (blank-separated) beyond those of the user's log-ins; empty takes them away.

        ``admin`` is who does this, empty for the command line. Raises NotFound for an unknown user.
        """
        await self._scripts.write("scopes_grant", idempotency_key, admin=admin, uid=uid, scopes=scopes)

    async def get_password_hash(self, uid: str) -> str | None:
        """Return the hash of a user's password. None for an unknown user, and for one without a password."""
        (found,) = await self._redis.execute(("HGET", keys.key_for("user", uid), "password"))
        return found.decode() if found else None

    async def resolve_logins(self, logins: Iterable[str]) -> dict[str, str]:
        """Return a map from login (in lower case) to user id. Unknown logins are left out."""
        wanted = list(dict.fromkeys(login.lower() for login in logins))
        if not wanted:
            return {}
        (found,) = await self._redis.execute(("HMGET", keys.LOGINS, *wanted))
        return _known(zip(wanted, found, strict=True))

    async def get_logins(self, ids: Iterable[str]) -> dict[str, str]:
        """Return a map from user id to login, for administrators. Deleted and unknown users are left out."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        found = await self._redis.execute(*(("HGET", keys.key_for("user", uid), "login") for uid in wanted))
        return {uid: login.decode() for uid, login in zip(wanted, found, strict=True) if login is not None}

    async def resolve_names(
        self, logins: Sequence[str], foreign_ids: Sequence[str]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return maps from login (in lower case) and from the id of another site to user id, in one round trip.

        Unknown names are left out.
        """
        lowered = list(dict.fromkeys(login.lower() for login in logins))
        hashes = ((keys.LOGINS, lowered), (self._scripts.rules.foreign_users_key, foreign_ids))
        asked = [("HMGET", key, *names) for key, names in hashes if names]
        replies = iter(await self._redis.execute(*asked))
        by_login = zip(lowered, next(replies) if lowered else (), strict=True)
        by_foreign_id = zip(foreign_ids, next(replies) if foreign_ids else (), strict=True)
        return _known(by_login), _known(by_foreign_id)


def _known(ids: Iterable[tuple[str, bytes | None]]) -> dict[str, str]:
    """Return the ids of the names that have a user. The name of a deleted account has none."""
    return {name: uid.decode() for name, uid in ids if uid is not None and uid != keys.NO_USER}


def profile_arguments(changes: Mapping[str, str | bool | None], new_name: str = "") -> list[bytes]:
    """Return the arguments of a script that changes a profile (``fill_card`` of ``lua/user.lua``).

    ``changes`` maps names of :class:`ProfileCard` members to new values; None removes a value. ``new_name`` is the name
    that a new user gets without one.
    """
    values = [encode_json(changes[name]) if name in changes else b"" for name in ProfileCard.__struct_fields__]
    return [*values, beginnings_of(str(changes.get("name") or new_name)).encode()]
