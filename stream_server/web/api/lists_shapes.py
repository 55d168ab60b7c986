"""Lists of people."""

import unicodedata
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http.fields import PatchBody
from stream_server.web.http.validation import Cursor, DisplayName, Id, NonNegativeInt, Timestamp, check_name

Description = Annotated[str, Meta(max_length=200, description="up to 200 code points; lines, no other controls")]


def check_description_text(description: str) -> None:
    """Raises ValueError for one that has control characters other than line feeds."""
    if any(unicodedata.category(c) == "Cc" and c != "\n" for c in description):
        raise ValueError("`description`: no control characters but line feed")


class NewList(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/lists``: at most 1,000 a user."""

    name: DisplayName
    description: Description = ""
    private: Annotated[bool, Meta(description="nobody else sees it")] = False

    def __post_init__(self) -> None:
        check_name(self.name)
        check_description_text(self.description)


class ListChanges(PatchBody):
    """``PATCH /v1/lists/{id}``: what is there is changed."""

    name: DisplayName | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    private: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.name is not UNSET:
            check_name(self.name)
        if self.description is not UNSET:
            check_description_text(self.description)


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
