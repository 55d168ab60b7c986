"""Likes."""

import msgspec

from stream_server.web.schema import Number


class Liked(msgspec.Struct):
    """How it stands now: whether the caller likes the status, and how many do."""

    liked: bool
    likes: Number


class Likes(msgspec.Struct):
    """Whether the caller likes the status."""

    liked: bool
