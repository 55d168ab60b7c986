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
    """A client's request for a page of ``count`` items of a list, by a cursor or by a page number from 1.

    A cursor names an item. ``before`` requests the items below it in the list, ``after`` the items above it.
    """

    count: int = 30
    before: str | None = None
    after: str | None = None
    page: int | None = None

    @property
    def skip(self) -> int:
        """Number of items before the page with the requested number. 0 if the request has no number."""
        return 0 if self.page is None else (self.page - 1) * self.count


class Page(NamedTuple):
    """One page of a list, and the cursors of its neighbours.

    Attributes:
        items: The items as JSON.
        next: Cursor of the next page, to be sent as ``before``. None at the end of the list.
        prev: Cursor of the previous page, to be sent as ``after``. None at the start of the list.
    """

    items: list[bytes]
    next: str | None
    prev: str | None


class ListPosition(NamedTuple):
    """The position of an item in a sorted set: its score, then its member. A page cursor contains both."""

    score: int
    member: str

    def cursor(self, list_name: str) -> str:
        """Return this position as an opaque text for clients. The text is valid only for the list ``list_name``."""
        return f"{self.score}-{self.member}-{_list_digest(list_name)}"


PositionedItem = tuple[bytes, bytes, bytes]
"""Score and member of an item, as Redis sent them, and its JSON. Only the ends of a page become a `ListPosition`."""


def _cursor_of(item: PositionedItem, list_name: str) -> str:
    return ListPosition(int(item[0]), item[1].decode()).cursor(list_name)


def parse_cursor(cursor: str, list_name: str, param: str) -> ListPosition:
    """Return the position in a page cursor. Raises `InvalidCursor` (for ``param``) for a malformed or foreign one."""
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
) -> tuple[Page, list[Any]]:
    """Read one page of the Redis sorted set ``key`` with the script ``script_name``.

    Returns the page, and further values of the script's reply, such as a count. One script call examines at most 1,024
    members and leaves out those that the reader may not see. After 16 calls the page may have fewer items than
    requested, and its cursor continues. A cursor is valid only for the same ``list_name``, by default ``key``. Raises
    `InvalidCursor` and the script's errors.
    """
    cursor_name = list_name or key
    start, backwards = parse_page_start(page_request, cursor_name)
    direction, end = ("before", "+inf") if backwards == oldest_first else ("after", "-inf")
    score, member = (end, "") if start is None else (str(start.score), start.member)
    skip, found, stopped_at, extra = page_request.skip, list[PositionedItem](), None, list[Any]()
    for _ in range(MAX_SCRIPT_CALLS):
        max_items = page_request.count + 1 - len(found)
        flat, stopped_at, *extra = await scripts.call(
            script_name, key, key, direction, score, member, max_items, skip, *arguments
        )
        found += zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        if not stopped_at or len(found) > page_request.count:
            stopped_at = None
            break
        score, member, skip = stopped_at[0].decode(), stopped_at[1].decode(), int(stopped_at[2])
    page = make_page(found, page_request, cursor_name, backwards=backwards, started_at_cursor=start is not None)
    if stopped_at:
        cursor = ListPosition(int(score), member).cursor(cursor_name)
        page = page._replace(prev=cursor) if backwards else page._replace(next=cursor)
    return page, extra


def parse_page_start(page_request: PageRequest, list_name: str) -> tuple[ListPosition | None, bool]:
    """Return the position of the request's cursor (None without a cursor), and whether it was sent as ``after``."""
    if page_request.after is not None:
        return parse_cursor(page_request.after, list_name, "after"), True
    return None if page_request.before is None else parse_cursor(page_request.before, list_name, "before"), False


def make_page(
    found: list[PositionedItem], page_request: PageRequest, list_name: str, *, backwards: bool, started_at_cursor: bool
) -> Page:
    """Make a page from ``found``. It may have one item more than asked for: then the list goes on after the page."""
    has_more = len(found) > page_request.count
    shown = found[: page_request.count]
    if backwards:
        shown.reverse()
    starts_later = has_more if backwards else started_at_cursor or (page_request.page or 1) > 1
    return Page(
        [item for _, _, item in shown],
        _cursor_of(shown[-1], list_name) if shown and (backwards or has_more) else None,
        _cursor_of(shown[0], list_name) if shown and starts_later else None,
    )


def _list_digest(list_name: str) -> str:
    return blake2b(list_name.encode(), digest_size=4).hexdigest()
