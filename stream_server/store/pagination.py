"""Pages of lists: one page of a sorted set, selected by an opaque cursor.

A cursor names a position between two members, and it is valid for its own list only.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from operator import gt, lt
from typing import Any, NamedTuple

from stream_server.errors import InvalidCursor
from stream_server.store.reads.sight import Gate
from stream_server.store.reads.statuses import expand
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.derived import DerivedRedis
from stream_server.store.redis.lanes import Command

_CURSOR = re.compile(r"([0-9]{1,16})-([a-z0-9:]{1,64})-([0-9a-f]{8})")

MAX_SHOWN = 256
"""Most members that are shown together. It bounds the memory of a page, and a page of 200 fits in it."""


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
        body: The items as JSON, separated by commas, as one text and not as a list. Rows of statuses are expanded in
            the whole text (`statuses.expand`); to cut the text into items cost more than to expand it.
        next: Cursor of the next page, to be sent as ``before``. None at the end of the list.
        prev: Cursor of the previous page, to be sent as ``after``. None at the start of the list.
    """

    body: bytes
    next: str | None
    prev: str | None


class ListPosition(NamedTuple):
    """The position of an item in a sorted set: its score, then its member. A page cursor contains both."""

    score: int
    member: str

    def cursor(self, list_name: str) -> str:
        """Return this position as an opaque text for clients. The text is valid only for the list ``list_name``."""
        return f"{self.score}-{self.member}-{_list_digest(list_name)}"

    def behind(self, members: "Iterable[Member]", *, down: bool) -> "list[Member]":
        """Return those members of a sorted set that stand behind this position: for ``down`` below it, else above."""
        is_behind, place = lt if down else gt, (self.score, self.member.encode())
        return [pair for pair in members if is_behind((int(pair[1]), pair[0]), place)]


def _position_of(member: "Member") -> ListPosition:
    return ListPosition(int(member[1]), member[0].decode())


Member = tuple[bytes, bytes]
"""A member of a sorted set, and its score, as Redis sent them."""

PlacedItem = tuple[Member, bytes]
"""An item of a page: its place, and its JSON."""


class Members(NamedTuple):
    """Members of a sorted set in its order or in the opposite one, and whether more follow.

    If more follow, there is at least one member.
    """

    pairs: Sequence[Member]
    has_more: bool


ReadMembers = Callable[[ListPosition | None, int, bool], Awaitable[Members]]
"""Reads about so many members behind a position. The last argument says whether from the highest to the lowest."""

Show = Callable[[Sequence[Member]], Awaitable[Sequence[bytes | None]]]
"""Returns members as JSON in their order, None in the place of those that the viewer may not see.

Statuses in the JSON may be rows, see `statuses.expand`. Of members that a page skips any bytes will do.
"""

Admit = Callable[[], Awaitable[object]]
"""Raises NotFound if the viewer may not see a list."""


async def read_page(
    redis: RedisClient,
    key: str,
    page_request: PageRequest,
    show: Show,
    *,
    oldest_first: bool = False,
    gate: Gate | None = None,
    admit: Admit | None = None,
    own_scores: bool = False,
    judge: Show | None = None,
) -> Page:
    """Read one page of the Redis sorted set ``key``, whose cursors are valid for no other key. See :func:`fill_page`.

    Raises NotFound if the viewer may not see the set's owner. ``gate`` finds this out, without a further round trip.
    ``own_scores`` is that of :func:`read_members`, and ``judge`` that of :func:`fill_page`.
    """

    async def read(after: ListPosition | None, most: int, down: bool) -> Members:  # noqa: FBT001 - `ReadMembers`
        nonlocal gate
        commands = gate.commands if gate else ()
        members, replies = await read_members(
            redis, key, after, most, down=down, own_scores=own_scores, before=commands
        )
        if gate is not None:
            gate.check(replies)
            gate = None
        return members

    return await fill_page(page_request, key, read, show, oldest_first=oldest_first, admit=admit, judge=judge)


async def fill_page(
    page_request: PageRequest,
    list_name: str,
    read: ReadMembers,
    show: Show,
    *,
    oldest_first: bool = False,
    max_examined: int = 4096,
    admit: Admit | None = None,
    judge: Show | None = None,
) -> Page:
    """Make one page of the members that ``read`` returns, without those that ``show`` hides.

    First as many members are shown as the page needs, because most are visible, and then more until it is full.
    After ``max_examined`` members behind the skipped ones the page may have fewer items than requested, and its cursor
    continues, because Redis sends up to 14 KB for each member. The cursors are valid for the same ``list_name`` only.
    ``admit`` is called first, to refuse a viewer who may not see the list. ``judge`` is asked instead of ``show`` about
    members that the page skips. Raises `InvalidCursor`, and what the functions raise.
    """
    start, backwards = parse_page_start(page_request, list_name)
    if admit is not None:
        await admit()
    wanted, skip, found = page_request.count + 1, page_request.skip, list[PlacedItem]()
    # A page skips at most 12,288 members because of its number: a timeline that Redis caps has at most 10,000.
    max_examined += min(skip, 12_288)
    # Sixteen are read beyond the page, so that a few hidden ones do not cost another round trip.
    after, most, examined, least_batch = start, wanted + skip + 16, 0, 0
    while True:
        most = min(most, 1024, max_examined - examined)  # one command returns at most 1,024 members
        members, has_more = await read(after, most, backwards == oldest_first)
        at = 0
        while at < len(members) and len(found) < wanted:
            batch = members[at : at + min(skip or max(wanted - len(found), least_batch), MAX_SHOWN)]
            at, least_batch = at + len(batch), 2 * len(batch)
            render = judge if skip and judge else show
            shown = [(each, json) for each, json in zip(batch, await render(batch), strict=True) if json is not None]
            found += shown[skip : skip + wanted - len(found)]
            skip -= min(skip, len(shown))
        examined += len(members)
        if len(found) >= wanted or not has_more or examined >= max_examined:
            break
        after, most = _position_of(members[-1]), 2 * most
    page = make_page(found, page_request, list_name, backwards=backwards, started_at_cursor=start is not None)
    if len(found) >= wanted or not has_more:
        return page
    cursor = _position_of(members[-1]).cursor(list_name)
    return page._replace(prev=cursor) if backwards else page._replace(next=cursor)


async def read_members(
    redis: DerivedRedis, key: str, after: ListPosition | None, most: int, *,
    down: bool, own_scores: bool = False, before: Sequence[Command] = (),
) -> tuple[Members, list[Any]]:  # fmt: skip
    """Return at most ``most`` members of a sorted set behind a position, in the order of score and member.

    ``down`` means from the highest to the lowest. ``own_scores`` says that each member is its own score, as in sets of
    ids: then Redis need not print the scores. Also returns the replies to the commands ``before``, which Redis answers
    first.
    """
    order: Command = ("REV",) if down else ()
    scores: Command = () if own_scores else ("WITHSCORES",)
    if after is None:
        *replies, found = await redis.execute(*before, ("ZRANGE", key, 0, most - 1, *order, *scores))
        pairs = pairs_of(found, own_scores=own_scores)
        return Members(pairs, has_more=len(pairs) >= most), replies
    lowest = f"({after.score}" if own_scores else str(after.score)  # others may have the score of the position
    while True:
        bounds = (lowest, "-inf" if down else "+inf", "BYSCORE", *order, "LIMIT", 0, most + 1)
        *replies, found = await redis.execute(*before, ("ZRANGE", key, *bounds, *scores))
        pairs = pairs_of(found, own_scores=own_scores)
        behind, has_more = after.behind(pairs, down=down), len(pairs) > most
        if behind or not has_more:
            return Members(behind[:most], has_more=has_more or len(behind) > most), replies
        most *= 2  # so many others have this score


def pairs_of(found: Sequence[bytes], *, own_scores: bool = False) -> list[Member]:
    """Return pairs of a member and its score from the reply to a read of a sorted set.

    The reply has members and scores in turn (WITHSCORES). With ``own_scores`` it has members only, each of which is its
    own score.
    """
    return [*zip(found, found, strict=True)] if own_scores else [*zip(found[::2], found[1::2], strict=True)]


def parse_page_start(page_request: PageRequest, list_name: str) -> tuple[ListPosition | None, bool]:
    """Return the position of the request's cursor (None without a cursor), and whether it was sent as ``after``.

    Raises `InvalidCursor`, which names this parameter, if the cursor is malformed or belongs to another list.
    """
    backwards = page_request.after is not None
    cursor = page_request.after if backwards else page_request.before
    if cursor is None:
        return None, False
    match = _CURSOR.fullmatch(cursor)
    if match is None or match[3] != _list_digest(list_name):
        param = "after" if backwards else "before"
        raise InvalidCursor("this cursor does not belong to this list", param=param)
    return ListPosition(int(match[1]), match[2]), backwards


def make_page(
    found: list[PlacedItem], page_request: PageRequest, list_name: str, *, backwards: bool, started_at_cursor: bool
) -> Page:
    """Make a page from ``found``. It may have one item more than asked for: then the list goes on after the page."""
    has_more = len(found) > page_request.count
    shown = found[: page_request.count]
    if backwards:
        shown.reverse()
    starts_later = has_more if backwards else started_at_cursor or (page_request.page or 1) > 1
    return Page(
        expand(b",".join([json for _, json in shown])),
        _position_of(shown[-1][0]).cursor(list_name) if shown and (backwards or has_more) else None,
        _position_of(shown[0][0]).cursor(list_name) if shown and starts_later else None,
    )


@lru_cache(4096)
def _list_digest(list_name: str) -> str:
    return blake2b(list_name.encode(), digest_size=4).hexdigest()
