"""Pages of all timelines, without statuses that the viewer may not see.

Home and list timelines are derived data. The store first reads ids, then one script returns the statuses that the
viewer may see. The store reads on until the page is full, because some ids belong to deleted or hidden statuses. All
other timelines are core data and take one round trip.
"""

from collections import Counter
from collections.abc import Sequence

from filters.entities import extract_entities
from filters.tokens import fold
from stream_server.errors import BadRequest, InvalidCursor
from stream_server.events.visibility import Visibility
from stream_server.store import keys, pagination
from stream_server.store.pagination import ListPosition, Page, PageRequest, make_page, parse_page_start, read_page
from stream_server.store.redis.derived import DerivedRedis
from stream_server.store.redis.scripts import ScriptArgument, Scripts
from stream_server.store.timelines.home_visits import HomeVisits
from stream_server.store.timelines.importance import RankingInputs, rank

STATUSES_PER_RANKING_CALL = 200
"""Statuses that one script call ranks, in a few milliseconds. A home timeline takes several calls in one round trip."""

SPARE_IDS = 16
"""Ids read beyond the page size, so a few hidden statuses do not cost another round trip."""


class Timelines:
    """Reads timelines. Each method returns a page of statuses as JSON, newest first unless its docstring differs.

    The page omits statuses that the viewer may not see. All methods raise InvalidCursor for another timeline's cursor.
    They raise NotFound if the timeline's owner (user, list, group or status) is unknown or hidden from the viewer.
    """

    def __init__(self, derived: DerivedRedis, scripts: Scripts, visits: HomeVisits) -> None:
        self._derived = derived
        self._scripts = scripts
        self._visits = visits

    async def read_home(self, viewer: str, page_request: PageRequest) -> Page:
        """Return the viewer's home timeline: statuses by the viewer and by the users whom the viewer follows.

        If the viewer has not come for a time, the timeline is made again first. Raises `Unavailable` if this takes
        longer than the request may.
        """
        await self._visits.arrive(viewer)
        return await self._read_derived_timeline(viewer, "", keys.home_timeline(viewer), page_request)

    async def read_list(self, viewer: str, list_id: str, page_request: PageRequest) -> Page:
        """Return the timeline of a list (of users): the statuses by its members."""
        return await self._read_derived_timeline(viewer, list_id, keys.list_timeline(list_id), page_request)

    async def read_home_by_importance(self, viewer: str, page_request: PageRequest) -> Page:
        """Return the home timeline, most important status first, by the formula in ``timelines/importance.py``."""
        name = "importance:" + viewer
        start, backwards = parse_page_start(page_request, name)
        await self._visits.arrive(viewer)
        # A client can forge a cursor, because its digest is not a signature.
        if start is not None and not start.member.isdecimal():
            raise InvalidCursor("this cursor does not belong to this list", param="after" if backwards else "before")
        newest = -self._scripts.size_limits.timeline_max  # the timeline may be longer until it is trimmed
        (ids,) = await self._derived.execute(("ZRANGE", keys.home_timeline(viewer), newest, -1))
        ranked = await self._rank(viewer, ids)
        if start is not None:
            at = _ranking_key(start)
            ranked = [each for each in ranked if (_ranking_key(each) > at) == backwards and each != start]
        if backwards:
            ranked.reverse()
        wanted = ranked[page_request.skip : page_request.skip + page_request.count + 1]
        shown, _ = await self._show(viewer, "", len(wanted), 0, [each.member for each in wanted]) if wanted else ([], 0)
        bodies = {status_id.decode(): body for status_id, _, body in shown}
        found = [
            (str(each.score).encode(), each.member.encode(), bodies[each.member])
            for each in wanted
            if each.member in bodies
        ]
        return make_page(found, page_request, name, backwards=backwards, started_at_cursor=start is not None)

    async def read_profile(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the statuses that a user posted outside groups, even if the viewer mutes this user."""
        return await self._read_core_timeline(viewer, "profile", uid, page_request, "user", Visibility.ON_REQUEST)

    async def read_group(self, viewer: str, group_id: str, page_request: PageRequest) -> Page:
        """Return the statuses that were posted in a group of users."""
        return await self._read_core_timeline(viewer, "grouped", group_id, page_request, "group")

    async def read_tag(self, viewer: str, tag: str, page_request: PageRequest) -> Page:
        """Return the statuses with a hashtag, given with or without ``#``. Raises BadRequest for an invalid hashtag."""
        return await self._read_core_timeline(viewer, "tag", fold_tag(tag), page_request)

    async def read_mentions(self, viewer: str, page_request: PageRequest) -> Page:
        """Return the statuses that mention the viewer."""
        return await self._read_core_timeline(viewer, "mentions", viewer, page_request)

    async def read_reposts(self, viewer: str, status_id: str, page_request: PageRequest) -> Page:
        """Return the reposts and quotes of a status."""
        return await self._read_core_timeline(viewer, "reposts", status_id, page_request, "status")

    async def read_replies(self, viewer: str, status_id: str, page_request: PageRequest) -> Page:
        """Return the direct replies to a status."""
        return await self._read_core_timeline(viewer, "replies", status_id, page_request, "status")

    async def read_conversation(self, viewer: str, status_id: str, page_request: PageRequest) -> Page:
        """Return the whole thread of a status, oldest first. Cursors are valid only with the same ``status_id``."""
        # The script replaces the key by the thread of the root status.
        return await self._read_core_timeline(viewer, "thread", status_id, page_request, "thread", oldest_first=True)

    async def read_liked(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the statuses that a user likes, newest like first.

        The page is empty if the viewer blocks the user, or if the user is protected and not followed by the viewer.
        """
        return await self._read_core_timeline(viewer, "liked", uid, page_request, "person", Visibility.ON_REQUEST)

    async def read_favorites(self, viewer: str, page_request: PageRequest) -> Page:
        """Return the viewer's favorites, last added first."""
        return await self._read_core_timeline(viewer, "favorites", viewer, page_request, "", Visibility.ON_REQUEST)

    async def _read_core_timeline(
        self,
        viewer: str,
        key_name: str,
        owner: str,
        page_request: PageRequest,
        owner_kind: str = "",
        min_visibility: Visibility = Visibility.VISIBLE,
        *,
        oldest_first: bool = False,
    ) -> Page:
        """Return a page of any timeline except home and list timelines, in one round trip.

        ``owner_kind`` tells the script how to check that the viewer may see the timeline of ``owner``: ``user``,
        ``person`` (likes of a user), ``status``, ``thread`` (thread of a status), ``group``, or empty (no check).
        """
        key, arguments = keys.key_for(key_name, owner), (viewer, int(min_visibility), owner_kind, owner)
        page, _ = await read_page(
            self._scripts, "statuses_page", key, page_request, *arguments, oldest_first=oldest_first
        )
        return page

    async def _read_derived_timeline(self, viewer: str, list_id: str, key: str, page_request: PageRequest) -> Page:
        """Return a page of a home or list timeline. Leave out hidden statuses, and read on until it is full."""
        start, backwards = parse_page_start(page_request, key)
        max_items = page_request.count + 1
        found: list[pagination.PositionedItem] = []
        skip, after, batch = page_request.skip, start, max_items + page_request.skip + SPARE_IDS
        while True:
            ids = await self._read_ids(key, after, batch, backwards=backwards)
            shown, skipped = await self._show(viewer, list_id, max_items - len(found), skip, ids)
            found += shown
            if len(found) >= max_items or len(ids) < batch:
                return make_page(found, page_request, key, backwards=backwards, started_at_cursor=start is not None)
            after = ListPosition(int(ids[-1]), ids[-1].decode())
            skip, batch = skip - skipped, 2 * batch

    async def _read_ids(
        self, key: str, after: ListPosition | None, max_ids: int, *, backwards: bool
    ) -> Sequence[bytes]:
        """Return at most ``max_ids`` ids: below ``after``, highest first, or (``backwards``) above it, lowest first.

        Leaves out ids beyond the maximum length of a timeline: it may be longer until it is trimmed.
        """
        longest = self._scripts.size_limits.timeline_max
        ids: Sequence[bytes]
        if after is None:
            (ids,) = await self._derived.execute(("ZRANGE", key, 0, min(max_ids, longest) - 1, "REV"))
            return ids
        order = ("+inf", "BYSCORE") if backwards else ("-inf", "BYSCORE", "REV")  # each id is its own, unique score
        command = ("ZRANGE", key, f"({after.score}", *order, "LIMIT", 0, max_ids)
        ids, lowest = await self._derived.execute(command, ("ZRANGE", key, -longest, -longest))
        if not lowest or (int(lowest[0]) <= after.score and backwards):
            return ids
        if backwards:
            (ids,) = await self._derived.execute(("ZRANGE", key, lowest[0], *order, "LIMIT", 0, max_ids))
        return [each for each in ids if int(each) >= int(lowest[0])]

    async def _rank(self, viewer: str, ids: Sequence[bytes]) -> list[ListPosition]:
        """Return a `ListPosition` (rank and id) for those of ``ids`` that the viewer may see, most important first."""
        if not ids:
            return []
        chunks = [
            ids[start : start + STATUSES_PER_RANKING_CALL] for start in range(0, len(ids), STATUSES_PER_RANKING_CALL)
        ]
        # Only the first call returns the authors whom the viewer likes.
        calls: list[tuple[ScriptArgument, ...]] = [(viewer, int(i == 0), *chunk) for i, chunk in enumerate(chunks)]
        replies = await self._scripts.call_each("statuses_ranking_inputs", keys.META, calls)
        likes_by_author = Counter(author.decode() for _, liked_authors in replies for author in liked_authors)
        ranked = [
            ListPosition(
                rank(_make_ranking_inputs(numbers, likes_by_author[uid.decode()], is_own=uid.decode() == viewer)),
                status_id.decode(),
            )
            for rows, _ in replies
            for status_id, uid, *numbers in rows
        ]
        return sorted(ranked, key=_ranking_key, reverse=True)

    async def _show(
        self, viewer: str, list_id: str, max_items: int, skip: int, ids: Sequence[bytes | str]
    ) -> tuple[list[pagination.PositionedItem], int]:
        """Leave out the first ``skip`` statuses that the viewer may see. Return the next ``max_items``.

        The id of a status is also its score. Also returns how many were left out: fewer than ``skip`` if there are not
        enough.
        """
        limits = (int(Visibility.VISIBLE), list_id, max_items, skip)
        flat, skipped = await self._scripts.call("statuses_show", keys.META, viewer, *limits, *ids)
        shown_ids = flat[::2]
        return list(zip(shown_ids, shown_ids, flat[1::2], strict=True)), skipped


def fold_tag(tag: str) -> str:
    """Return a hashtag without ``#``, normalized as in Redis keys. Raises BadRequest if the text is not a hashtag."""
    text = tag.removeprefix("#").removeprefix("\uff03")
    if [found.text for found in extract_entities("#" + text).hashtags] != [text]:
        raise BadRequest("a hashtag: letters, digits and _, not digits alone", param="tag")
    return fold(text)


def _make_ranking_inputs(numbers: Sequence[bytes], likes_given: int, *, is_own: bool) -> RankingInputs:
    posted_ms, likes, comments, reposts, mutual = map(int, numbers)
    return RankingInputs(posted_ms, likes, comments, reposts, likes_given, bool(mutual), is_own)


def _ranking_key(position: ListPosition) -> tuple[int, int]:
    return position.score, int(position.member)
