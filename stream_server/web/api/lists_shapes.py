"""Lists of people."""

from typing import Annotated

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


class NewList(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/lists``: at most 1,000 a user."""

    name: DisplayName
    description: Description = ""
    private: Annotated[bool, Meta(description="nobody else sees it")] = False

    def __post_init__(self) -> None:
        check_name(self.name)
        check_text("description", self.description, allowed_controls="\n")


class ListChanges(PatchBody):
    """``PATCH /v1/lists/{id}``: what is there is changed."""

    name: DisplayName | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    private: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.name is not UNSET:
            check_name(self.name)
        if self.description is not UNSET:
            check_text("description", self.description, allowed_controls="\n")


class List(msgspec.Struct):
    """A list of people, at most 5,000."""

    id: Id
    uid: Annotated[Id, Meta(description="whose it is")]
    name: str
    description: str
    private: bool
    members: NonNegativeInt
    created: Timestamp


class ListPage(msgspec.Struct):
    """A piece of somebody's lists; ``next`` is for ``before``, ``prev`` for ``after``, null at the end."""

    lists: list[List]
    next: Cursor | None
    prev: Cursor | None
