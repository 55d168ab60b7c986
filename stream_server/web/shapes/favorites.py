"""Favorites."""

import msgspec


class Favorite(msgspec.Struct):
    """Whether the caller keeps the status."""

    favorite: bool
