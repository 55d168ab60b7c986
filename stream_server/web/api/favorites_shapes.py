"""Favorites."""

import msgspec


class FavoriteState(msgspec.Struct):
    """Whether the caller keeps the status."""

    favorite: bool
