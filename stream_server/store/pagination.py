"""A piece of a list, by opaque cursors that stand between members, not on scores, and that know their list."""

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from stream_server.errors import InvalidCursor
from stream_server.store.redis.scripts import Scripts

_CURSOR = re.compile(r"([0-9]{1,16})-([a-z0-9:]{1,64})-([0-9a-f]{8})")

MAX_SCRIPT_CALLS = 16
"""So often a walk goes on that found too little in what it looked at; then the piece is short, its cursor is not."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which piece: ``count`` items, older than ``before``, newer than ``after``, or the ``page``-th from the start.

    "Older" means further down a list: of a list that begins with its oldest item, ``before`` gives what follows.
    """

    count: int = 30
    before: str | None = None
    after: str | None = None
    page: int | None = None


class Page(NamedTuple):
    """The items, as JSON; ``next`` goes on (``before``), ``prev`` goes back (``after``); None at the ends."""

    items: list[bytes]
    next: str | None
    prev: str | None


class ListPosition(NamedTuple):
    """Where something stands on a list: the order of the list is the order of these pairs."""

    score: int
    member: str

    def cursor(self, list_name: str) -> str:
        """The place as clients of the list ``list_name`` hold it."""
        return f"{self.score}-{self.member}-{_list_digest(list_name)}"


PositionedItem = tuple[ListPosition, bytes]
"""An item and its place."""


def parse_cursor(cursor: str, list_name: str, param: str) -> ListPosition:
    """The place that a cursor of the list ``list_name`` says; raises InvalidCursor for any other."""
    match = _CURSOR.fullmatch(cursor)
    if match is None or match[3] != _list_digest(list_name):
        raise InvalidCursor("this is no cursor of this list", param=param)
    return ListPosition(int(match[1]), match[2])


async def read_page(
    scripts: Scripts,
    script_name: str,
    key: str,
    page_request: PageRequest,
    *arguments: str | int,
    oldest_first: bool = False,
    list_name: str | None = None,
) -> Page:
    """A piece of the sorted set ``key``, as the reading script ``script_name`` shows its members, in one round trip.

    Only a piece before which more than a thousand members are not shown takes more. ``list_name`` is what cursors know the
    list by, where it is not the whole set. Raises InvalidCursor, and what the script refuses with.
    """
    return (
        await read_page_with_extra(
            scripts, script_name, key, page_request, *arguments, oldest_first=oldest_first, list_name=list_name
        )
    )[0]


async def read_page_with_extra(
    scripts: Scripts,
    script_name: str,
    key: str,
    page_request: PageRequest,
    *arguments: str | int,
    oldest_first: bool = False,
    list_name: str | None = None,
) -> tuple[Page, list[Any]]:
    """As :func:`read_page`, and what else the script has to say."""
    named = list_name or key
    place, backwards = parse_page_start(page_request, named)
    direction = "before" if backwards == oldest_first else "after"
    skip = 0 if page_request.page is None else (page_request.page - 1) * page_request.count
    found, stopped, more = await _collect(
        scripts, script_name, key, direction, place, page_request.count + 1, skip, arguments
    )
    made = make_page(found, page_request, named, backwards=backwards, started_at_cursor=place is not None)
    if stopped is None:
        return made, more
    further = stopped.cursor(named)
    return made._replace(prev=further) if backwards else made._replace(next=further), more


def parse_page_start(page_request: PageRequest, list_name: str) -> tuple[ListPosition | None, bool]:
    """Where a piece begins (None: at the list's start), and whether it goes backwards from there."""
    if page_request.after is not None:
        return parse_cursor(page_request.after, list_name, "after"), True
    return None if page_request.before is None else parse_cursor(page_request.before, list_name, "before"), False


def make_page(
    found: list[PositionedItem], page_request: PageRequest, list_name: str, *, backwards: bool, started_at_cursor: bool
) -> Page:
    """The page in ``found``, which holds one more than was asked for if there is more."""
    more = len(found) > page_request.count
    shown = found[: page_request.count]
    if backwards:
        shown.reverse()
    items = [item for _, item in shown]
    first, last = (shown[0][0].cursor(list_name), shown[-1][0].cursor(list_name)) if shown else (None, None)
    if backwards:
        return Page(items, last, first if more else None)
    return Page(items, last if more else None, first if started_at_cursor or (page_request.page or 1) > 1 else None)


async def _collect(
    scripts: Scripts,
    script_name: str,
    key: str,
    direction: str,
    position: ListPosition | None,
    max_items: int,
    skip: int,
    arguments: tuple[str | int, ...],
) -> tuple[list[PositionedItem], ListPosition | None, list[Any]]:
    """What was found, where the walk was given up if it was, and what else was said."""
    found: list[PositionedItem] = []
    end = "+inf" if direction == "before" else "-inf"
    score, member = (end, "") if position is None else (str(position.score), position.member)
    for _ in range(MAX_SCRIPT_CALLS):
        flat, stopped, *more = await scripts.call(
            script_name, key, key, direction, score, member, max_items - len(found), skip, *arguments
        )
        found += [(ListPosition(int(flat[i]), flat[i + 1].decode()), flat[i + 2]) for i in range(0, len(flat), 3)]
        if not stopped or len(found) >= max_items:
            return found, None, more
        score, member, skip = stopped[0].decode(), stopped[1].decode(), int(stopped[2])
    return found, ListPosition(int(score), member), more


def _list_digest(list_name: str) -> str:
    return blake2b(list_name.encode(), digest_size=4).hexdigest()
