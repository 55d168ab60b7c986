"""Users: sign up, look up, change. Logins and e-mails are unique without regard to case; a login never changes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from stream_server.errors import NotFound
from stream_server.store import keys
from stream_server.store.link import Link
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts
from stream_server.store.user_json import FIELDS, Card, Kept

CHUNK = 200
"""Users made by one call of a script: a few milliseconds, in which Redis does nothing else."""


class Made(NamedTuple):
    """One user of a batch; ``created`` is False for a login that was there before."""

    id: str
    login: str
    created: bool


class Credentials(NamedTuple):
    """Who a login or e-mail is, the argon2 hash of the password, and whether the user is suspended."""

    id: str
    password_hash: str
    suspended: bool


class Users:
    """The users of one store."""

    def __init__(self, link: Link, scripts: Scripts) -> None:
        self._link = link
        self._scripts = scripts

    async def create(self, login: str, name: str, email: str, password_hash: str, request: Request) -> bytes:
        """A new user, as JSON for oneself; raises Conflict ``login_taken`` or ``email_taken``."""
        card = Card(name).fragment()
        more = ("name", name, "email", email, "password", password_hash)
        answer = await self._scripts.write(
            "sign_up", request, login, login.lower(), email.lower(), card, *more
        )  # fmt: skip
        if answer.again:
            return await self.me(answer.value.decode())
        signup: bytes = answer.extra[0]
        return Kept(answer.value, login.encode(), card, b"0", b"0", b"0", signup, email.encode()).own()

    async def create_many(self, people: Sequence[tuple[str, str]], request: Request) -> list[Made]:
        """Users without password or e-mail for (login, name) pairs; a login that exists gives its user.

        Each chunk is one step; a lost answer is asked for again by the same request.
        """
        made: list[Made] = []
        for start in range(0, len(people), CHUNK):
            made += await self._create_chunk(people[start : start + CHUNK], request.part(start))
        return made

    async def get(self, viewer: str, uid: str) -> bytes:
        """A user as JSON; raises NotFound where there is none, or none whom the viewer may know of."""
        return await self._one(viewer, uid)

    async def me(self, uid: str) -> bytes:
        """A user as JSON for oneself, with the e-mail; raises NotFound."""
        row: list[Any]
        (row,) = await self._link.ask(("HMGET", keys.named("user", uid), *FIELDS))
        if row[0] is None:
            raise NotFound("there is no such user")
        return Kept(*row).own()

    async def update(self, uid: str, changes: Mapping[str, str | bool | None], request: Request) -> bytes:
        """Change what users say about themselves, and give the user as :meth:`me` does.

        ``changes`` holds any members of :class:`Card`; None takes one away. Protection that begins or ends is an
        event of its own, before that of the rest; a change to what is so already is none.
        """
        said = [msgspec.json.encode(changes[name]) if name in changes else b"" for name in Card.__struct_fields__]
        fields = [part for name, value in changes.items() for part in (name, _as_kept(value))]
        answer = await self._scripts.write("update_user", request, uid, *said, *fields)
        return await self.me(uid) if answer.again else Kept(*answer.extra[0]).own()

    async def by_login(self, viewer: str, login: str) -> bytes:
        """A user as JSON, looked up by login; raises NotFound as :meth:`get` does."""
        return await self._one(viewer, f"@{login.lower()}")

    async def many(self, viewer: str, ids: Sequence[str]) -> list[bytes]:
        """Those of these users whom the viewer may know of, as JSON, in this order, in one round trip."""
        found: list[bytes] = await self._scripts.read("cards", keys.META, viewer, *ids)
        return found

    async def available(self, login: str | None = None, email: str | None = None) -> dict[str, bool]:
        """Whether each that is asked for could be signed up with now."""
        wanted = {"login": (keys.LOGINS, login), "email": (keys.EMAILS, email)}
        asked = [(name, key, value.lower()) for name, (key, value) in wanted.items() if value is not None]
        if not asked:
            return {}
        taken = await self._link.ask(*(("HEXISTS", key, value) for _, key, value in asked))
        return {name: not found for (name, _, _), found in zip(asked, taken, strict=True)}

    async def credentials(self, login_or_email: str) -> Credentials | None:
        """What a password is verified against; None where there is no such user, or none with a password.

        One round trip either way: no second one tells who exists.
        """
        by = "email" if "@" in login_or_email else "login"
        found = await self._scripts.read("credentials", keys.META, by, login_or_email.lower())
        if found is None or not found[1]:
            return None
        return Credentials(found[0].decode(), found[1].decode(), bool(found[2]))

    async def resolve(self, logins: Iterable[str]) -> dict[str, str]:
        """Lower-cased login to user id, for those that exist."""
        wanted = list(dict.fromkeys(login.lower() for login in logins))
        if not wanted:
            return {}
        (found,) = await self._link.ask(("HMGET", keys.LOGINS, *wanted))
        return {login: uid.decode() for login, uid in zip(wanted, found, strict=True) if uid is not None}

    async def _create_chunk(self, people: Sequence[tuple[str, str]], request: Request) -> list[Made]:
        fields: list[str | bytes] = []
        for login, name in people:
            fields += (login, login.lower(), name, Card(name).fragment())
        answer = await self._scripts.write("sign_up_many", request, *fields)
        outcomes = answer.value.decode().split(" ")
        return [Made(o[:-1], login, o[-1] == "+") for o, (login, _) in zip(outcomes, people, strict=True)]

    async def _one(self, viewer: str, name: str) -> bytes:
        found = await self.many(viewer, [name])
        if not found:
            raise NotFound("there is no such user")
        return found[0]


def _as_kept(value: str | bool | None) -> str:  # noqa: FBT001 - a value, not a switch
    """A member of the card as the hash has it beside the JSON; '' for one that is taken away."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return value or ""
