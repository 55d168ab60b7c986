"""A piece of a list of users, newest first, by opaque cursors that stand between members, not on scores."""

import re
from typing import NamedTuple

from stream_server.errors import InvalidCursor
from stream_server.store.scripts import Scripts

_CURSOR = re.compile(r"([0-9]{1,16})-([0-9]{1,20})")


class Member(NamedTuple):
    """Who is on the list since when (ms since 1970); the order of the list is the order of these pairs."""

    since_ms: int
    uid: str

    @property
    def cursor(self) -> str:
        """The place of this member on the list."""
        return f"{self.since_ms}-{self.uid}"


class Page(NamedTuple):
    """Some members, newest first; ``next`` goes to older ones (``before``), ``prev`` to newer (``after``)."""

    members: list[Member]
    next: str | None
    prev: str | None


async def read_page(scripts: Scripts, key: str, uid: str, count: int, before: str | None, after: str | None) -> Page:
    """Up to ``count`` members of the list ``key`` of a user, older than one cursor or newer than the other.

    Raises InvalidCursor, and NotFound where there is no such user.
    """
    if after is not None:
        return await _newer(scripts, key, uid, count, _member(after, "after"))
    start = None if before is None else _member(before, "before")
    found = await _read(scripts, key, uid, "before", start, count)
    older = [member for member in found if start is None or member < start]
    shown = older[:count]
    more = len(older) > count
    return Page(shown, shown[-1].cursor if more else None, shown[0].cursor if shown and start else None)


async def _newer(scripts: Scripts, key: str, uid: str, count: int, start: Member) -> Page:
    """The nearest above ``start``, turned to newest first."""
    found = await _read(scripts, key, uid, "after", start, count)
    newer = [member for member in found if member > start]
    shown = newer[:count][::-1]
    more = len(newer) > count
    return Page(shown, shown[-1].cursor if shown else None, shown[0].cursor if more else None)


async def _read(scripts: Scripts, key: str, uid: str, direction: str, start: Member | None, count: int) -> list[Member]:
    score = "+inf" if start is None else str(start.since_ms)
    flat = await scripts.read("page", key, key, uid, direction, score, count + 1)
    return [Member(int(flat[i + 1]), flat[i].decode()) for i in range(0, len(flat), 2)]


def _member(cursor: str, param: str) -> Member:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidCursor("this is no cursor of this list", param=param)
    return Member(int(match[1]), match[2])
