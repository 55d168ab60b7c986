"""Who follows whom."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from stream_server.web.http.fields import Id

MAX_FOLLOW_BATCH = 200


class FollowQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A list of one's own for which the same is done as for the home timeline."""

    list: Annotated[Id, Meta(description="a list of one's own")] | None = None


class FollowBatch(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/users/me/following``: at most 200 ids in both lists together."""

    follow: list[Id] = []
    unfollow: list[Id] = []


class FollowState(msgspec.Struct):
    """How it stands now; ``requested`` is for a protected user who has not answered yet."""

    following: bool
    requested: bool


class FollowResult(msgspec.Struct):
    """What became of one id of a batch."""

    id: Id
    outcome: Literal["followed", "requested", "unfollowed", "not_found", "oneself", "blocked", "unavailable"]


class FollowResults(msgspec.Struct):
    """Each id of both lists, in the order of the asking."""

    results: list[FollowResult]
