"""How two users stand to each other."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

Party = Annotated[bool, Meta(description="told to the two themselves only")]


class Relationship(msgspec.Struct):
    """How ``{id}`` stands to ``{other}``; ``blocking`` and ``muting`` is what the asker does to the other person."""

    following: bool
    followed_by: bool
    mutual: bool
    requested: Party | UnsetType = UNSET
    requested_by: Party | UnsetType = UNSET
    blocking: Party | UnsetType = UNSET
    muting: Party | UnsetType = UNSET


class Answered(msgspec.Struct):
    """How the one who asked to follow stands to oneself now."""

    followed_by: bool
    requested_by: bool


class Blocking(msgspec.Struct):
    """Whether one blocks them now."""

    blocking: bool


class Muting(msgspec.Struct):
    """Whether one mutes them now."""

    muting: bool
