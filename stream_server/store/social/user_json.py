"""A user's one form on the wire. Scripts make the same bytes (``lua/prelude.lua``): a test compares them."""

from typing import NamedTuple

import msgspec

from stream_server.events.position import format_iso_time

_encode = msgspec.json.encode

USER_FIELDS = ("id", "login", "card", "followers", "following", "posts", "signup", "email")
"""What is read of a user's hash, in this order."""


class ProfileCard(msgspec.Struct, frozen=True):
    """What users say about themselves, kept encoded in the field ``card`` so that scripts can copy it."""

    name: str
    bio: str | None = None
    url: str | None = None
    place: str | None = None
    lang: str | None = None
    protected: bool = False

    def json_members(self) -> bytes:
        """The members without the braces."""
        return _encode(self)[1:-1]


class UserRow(NamedTuple):
    """A user's hash as Redis has it; ``email`` is None for who was made without one."""

    id: bytes
    login: bytes
    card: bytes
    followers: bytes
    following: bytes
    posts: bytes
    signup: bytes
    email: bytes | None

    def public_json(self) -> bytes:
        """The user as everyone sees it."""
        signup = format_iso_time(int(self.signup)).encode()
        return (
            b'{"id":"%b","login":"%b",%b,"followers":%b,"following":%b,"posts":%b,"signup":"%b"}'
            % (self.id, self.login, self.card, self.followers, self.following, self.posts, signup)
        )  # fmt: skip

    def own_json(self) -> bytes:
        """The user as only the user sees it: with the e-mail, or null."""
        email = None if self.email is None else self.email.decode()
        return self.public_json()[:-1] + b',"email":' + _encode(email) + b"}"
