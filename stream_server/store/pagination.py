"""Pages of lists: one page of a sorted set, selected by an opaque cursor.

A cursor names a position between two members, and it is valid for its own list only.
"""

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from stream_server.errors import InvalidCursor
from stream_server.store.redis.scripts import Scripts

_CURSOR = re.compile(r"([0-9]{1,16})-([a-z0-9:]{1,64})-([0-9a-f]{8})")

MAX_SCRIPT_CALLS = 16
"""Most script calls for one page. After that the page is shorter than requested, and its cursor continues."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page of a list the client wants.

    "Older" means further down the list. For a list that begins with its oldest item, ``before`` returns the next items.

    Attributes:
        count: Number of items.
        before: Cursor. Return items older than this.
        after: Cursor. Return items newer than this.
        page: Number of the page from the start, from 1.
    """

    count: int = 30
    before: str | None = None
    after: str | None = None
    page: int | None = None


class Page(NamedTuple):
    """One page of a list.

    Attributes:
        items: The items as JSON.
        next: Cursor for ``before`` to get the next page, or None at the end.
        prev: Cursor for ``after`` to get the previous page, or None at the start.
    """

    items: list[bytes]
    next: str | None
    prev: str | None


class ListPosition(NamedTuple):
    """The position of an item: its score and its member. Lists are ordered by these pairs."""

    score: int
    member: str

    def cursor(self, list_name: str) -> str:
        """Return the cursor of this position on the list ``list_name``."""
        return f"{self.score}-{self.member}-{_list_digest(list_name)}"


PositionedItem = tuple[ListPosition, bytes]
"""An item and its position."""


def parse_cursor(cursor: str, list_name: str, param: str) -> ListPosition:
    """Return the position of a cursor. Raises `InvalidCursor` unless it belongs to the list ``list_name``."""
    match = _CURSOR.fullmatch(cursor)
    if match is None or match[3] != _list_digest(list_name):
        raise InvalidCursor("this cursor does not belong to this list", param=param)
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
    """Read one page of the sorted set ``key`` with the script ``script_name``, usually in one round trip.

    More round trips are needed only if more than a thousand members before the page are not visible. Raises
    `InvalidCursor` and the errors of the script.

    Args:
        scripts: The scripts of the store.
        script_name: Name of the script that reads the members.
        key: Key of the sorted set.
        page_request: The page to read.
        arguments: Further arguments of the script.
        oldest_first: Whether the list begins with its oldest item.
        list_name: Name of the list in its cursors, if it is not the whole set.
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
    """Read one page like :func:`read_page`. Also return the further values of the script's reply."""
    cursor_name = list_name or key
    start, backwards = parse_page_start(page_request, cursor_name)
    direction = "before" if backwards == oldest_first else "after"
    skip = 0 if page_request.page is None else (page_request.page - 1) * page_request.count
    found, stopped_at, extra = await _collect(
        scripts, script_name, key, direction, start, page_request.count + 1, skip, arguments
    )
    page = make_page(found, page_request, cursor_name, backwards=backwards, started_at_cursor=start is not None)
    if stopped_at is None:
        return page, extra
    cursor = stopped_at.cursor(cursor_name)
    return page._replace(prev=cursor) if backwards else page._replace(next=cursor), extra


def parse_page_start(page_request: PageRequest, list_name: str) -> tuple[ListPosition | None, bool]:
    """Return the position where a page begins, or None for the list's start, and whether the page goes backwards."""
    if page_request.after is not None:
        return parse_cursor(page_request.after, list_name, "after"), True
    return None if page_request.before is None else parse_cursor(page_request.before, list_name, "before"), False


def make_page(
    found: list[PositionedItem], page_request: PageRequest, list_name: str, *, backwards: bool, started_at_cursor: bool
) -> Page:
    """Make a page from ``found``. If the list continues, ``found`` has one item more than the page."""
    has_more = len(found) > page_request.count
    shown = found[: page_request.count]
    if backwards:
        shown.reverse()
    items = [item for _, item in shown]
    first, last = (shown[0][0].cursor(list_name), shown[-1][0].cursor(list_name)) if shown else (None, None)
    if backwards:
        return Page(items, last, first if has_more else None)
    return Page(items, last if has_more else None, first if started_at_cursor or (page_request.page or 1) > 1 else None)


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
    """Call the script until there are enough items.

    Return the items, the position where the search stopped early or None, and the further values of the reply.
    """
    found: list[PositionedItem] = []
    end = "+inf" if direction == "before" else "-inf"
    score, member = (end, "") if position is None else (str(position.score), position.member)
    for _ in range(MAX_SCRIPT_CALLS):
        flat, stopped_at, *extra = await scripts.call(
            script_name, key, key, direction, score, member, max_items - len(found), skip, *arguments
        )
        found += [(ListPosition(int(flat[i]), flat[i + 1].decode()), flat[i + 2]) for i in range(0, len(flat), 3)]
        if not stopped_at or len(found) >= max_items:
            return found, None, extra
        score, member, skip = stopped_at[0].decode(), stopped_at[1].decode(), int(stopped_at[2])
    return found, ListPosition(int(score), member), extra


def _list_digest(list_name: str) -> str:
    """Return the short hash of a list's name that its cursors contain."""
    return blake2b(list_name.encode(), digest_size=4).hexdigest()
