"""Users: sign up, look up, change, and lists of them."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http.fields import (
    Cursor,
    DisplayName,
    Email,
    HttpUrl,
    Id,
    Language,
    Login,
    NonNegativeInt,
    Password,
    PatchBody,
    Timestamp,
    check_name,
    check_text,
)

Bio = Annotated[str, Meta(min_length=1, max_length=500, description="1 to 500 code points; lines, no other controls")]
PlaceText = Annotated[str, Meta(min_length=1, max_length=100, description="1 to 100 code points")]


class NewUser(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/users``."""

    login: Login
    name: DisplayName
    email: Email
    password: Password

    def __post_init__(self) -> None:
        check_name(self.name)


class AvailabilityQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``GET /v1/users/available``: a login, an e-mail, or both."""

    login: Login | None = None
    email: Email | None = None


class Availability(msgspec.Struct):
    """Whether each that was asked for could be signed up with."""

    login: bool | UnsetType = UNSET
    email: bool | UnsetType = UNSET


class UserChanges(PatchBody):
    """``PATCH /v1/users/me``: what is there is changed; null takes a member away that may be null."""

    name: DisplayName | UnsetType = UNSET
    bio: Bio | UnsetType | None = UNSET
    url: HttpUrl | UnsetType | None = UNSET
    place: PlaceText | UnsetType | None = UNSET
    lang: Language | UnsetType | None = UNSET
    protected: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.name is not UNSET:
            check_name(self.name)
        if isinstance(self.bio, str):
            check_text("bio", self.bio, allowed_controls="\n", may_be_blank=False)
        if isinstance(self.place, str):
            check_text("place", self.place, may_be_blank=False)


class User(msgspec.Struct):
    """A user as everyone sees it."""

    id: Id
    login: Login
    name: str
    bio: str | None
    url: str | None
    place: str | None
    lang: str | None
    protected: bool
    followers: NonNegativeInt
    following: NonNegativeInt
    posts: NonNegativeInt
    signup: Timestamp


class OwnUser(User, kw_only=True):
    """A user as only the user sees it: with the e-mail, null for who was made without one."""

    email: str | None


class ListedUser(User, kw_only=True):
    """A user on a list; ``since`` is when that began for which the list is kept."""

    since: Annotated[Timestamp, Meta(description="there where the list knows it")] | UnsetType = UNSET


class UsersById(msgspec.Struct):
    """Those of the asked for who exist, in the order of the asking."""

    users: list[User]


class UserPage(msgspec.Struct):
    """A piece of a list of users; ``next`` is for ``before``, ``prev`` for ``after``, null at the end."""

    users: list[ListedUser]
    next: Cursor | None
    prev: Cursor | None
