"""Likes."""

import msgspec

from stream_server.web.http.fields import NonNegativeInt


class LikeCount(msgspec.Struct):
    """How it stands now: whether the caller likes the status, and how many do."""

    liked: bool
    likes: NonNegativeInt


class LikeState(msgspec.Struct):
    """Whether the caller likes the status."""

    liked: bool
