"""Groups of people who post among themselves."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http.fields import (
    Cursor,
    Description,
    DisplayName,
    Id,
    NonNegativeInt,
    PatchBody,
    Timestamp,
    check_name,
    check_text,
)

GroupKind = Annotated[
    Literal["public", "private", "announcement"],
    Meta(
        description="public: all read and join; private: only members know of it, the owner adds them; announcement: "
        "as public, but only the owner posts"
    ),
]


class NewGroup(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/groups``; a user is in at most 1,000. The kind never changes."""

    name: DisplayName
    kind: GroupKind
    description: Description = ""

    def __post_init__(self) -> None:
        check_name(self.name)
        check_text("description", self.description, allowed_controls="\n")


class GroupChanges(PatchBody):
    """``PATCH /v1/groups/{id}``: what is there is changed."""

    name: DisplayName | UnsetType = UNSET
    description: Description | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.name is not UNSET:
            check_name(self.name)
        if self.description is not UNSET:
            check_text("description", self.description, allowed_controls="\n")


class Group(msgspec.Struct):
    """A group, its owner among its members, who are at most 5,000."""

    id: Id
    uid: Annotated[Id, Meta(description="its owner")]
    name: str
    kind: GroupKind
    description: str
    members: NonNegativeInt
    created: Timestamp


class GroupPage(msgspec.Struct):
    """A piece of one's groups; ``next`` is for ``before``, ``prev`` for ``after``, null at the end."""

    groups: list[Group]
    next: Cursor | None
    prev: Cursor | None
