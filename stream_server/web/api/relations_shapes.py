"""How two users stand to each other."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

PrivateFlag = Annotated[bool, Meta(description="told to the two themselves only")]


class RelationshipState(msgspec.Struct):
    """How ``{id}`` stands to ``{other}``; ``blocking`` and ``muting`` is what the asker does to the other person."""

    following: bool
    followed_by: bool
    mutual: bool
    requested: PrivateFlag | UnsetType = UNSET
    requested_by: PrivateFlag | UnsetType = UNSET
    blocking: PrivateFlag | UnsetType = UNSET
    muting: PrivateFlag | UnsetType = UNSET


class FollowRequestState(msgspec.Struct):
    """How the one who asked to follow stands to oneself now."""

    followed_by: bool
    requested_by: bool


class BlockState(msgspec.Struct):
    """Whether one blocks them now."""

    blocking: bool


class MuteState(msgspec.Struct):
    """Whether one mutes them now."""

    muting: bool
