"""Pages of all timelines, without statuses that the viewer may not see.

Home and list timelines are derived data, and all others are core data. Both give ids. The statuses with these ids are
read and judged as `stream_server/store/reads` says, and further ids until the page is full.

A home timeline can be read by importance:

    importance = interest · closeness · 2^(-age / 12 h)

    interest   = 1 + log2(1 + likes + 2·comments + 3·reposts)      counters of the original for a plain repost
    closeness  = 1 + log2(1 + n) + (1 if both follow each other)   n: how many of the viewer's 100 newest likes went to
                                                                   the author; closeness is 1 for own statuses

A status without reactions loses half of its importance every twelve hours. A status with 7 likes is as important as a
status without likes that is two half-lives younger. All statuses age at the same rate, so the order changes only by
what users do, not by waiting. Therefore a page cursor stays valid.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from math import log2
from typing import Literal, NamedTuple

from filters.entities import extract_entities
from filters.tokens import fold
from stream_server.errors import BadRequest, InvalidCursor
from stream_server.events.position import parse_iso_ms
from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.pagination import (
    Admit,
    ListPosition,
    Members,
    Page,
    PageRequest,
    Show,
    fill_page,
    make_page,
    parse_page_start,
    read_members,
    read_page,
)
from stream_server.store.reads import circles, statuses
from stream_server.store.reads.sight import Gate, Sight
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.derived import DerivedRedis
from stream_server.store.timelines.home_visits import HomeVisits

HALF_LIFE_MS = 12 * 3_600_000
"""Age in milliseconds at which a status has lost half of its importance."""

RANK_STEPS_PER_DOUBLING = 1_000_000
"""Steps of :func:`rank` per doubling of importance. A rank is a whole number; equal ranks are ordered by id."""


class RankingInputs(NamedTuple):
    """The facts about a status that decide its importance for a viewer.

    Attributes:
        posted_ms: Time of posting, in milliseconds since 1970.
        likes_given: How many of the viewer's 100 newest likes went to statuses of the author.
        is_mutual: Whether viewer and author follow each other.
        is_own: Whether the viewer is the author.
    """

    posted_ms: int
    likes: int = 0
    comments: int = 0
    reposts: int = 0
    likes_given: int = 0
    is_mutual: bool = False
    is_own: bool = False


def rank(inputs: RankingInputs) -> int:
    """Return the rank of a status: a whole number, higher for a more important status. It does not change with time."""
    interest = 1 + log2(1 + inputs.likes + 2 * inputs.comments + 3 * inputs.reposts)
    closeness = 1.0 if inputs.is_own else 1 + log2(1 + inputs.likes_given) + inputs.is_mutual
    return round(RANK_STEPS_PER_DOUBLING * (log2(interest * closeness) + inputs.posted_ms / HALF_LIFE_MS))


class Timelines:
    """Reads timelines. Each method returns a page of statuses as JSON, newest first unless its docstring differs.

    The page omits statuses that the viewer may not see. All methods raise InvalidCursor for another timeline's cursor.
    They raise NotFound if the timeline's owner (user, list, group or status) is unknown or hidden from the viewer.
    """

    def __init__(self, core: RedisClient, derived: DerivedRedis, timeline_max: int, visits: HomeVisits) -> None:
        self._core = core
        self._derived = derived
        self._timeline_max = timeline_max  # a timeline may be longer until it is trimmed
        self._visits = visits

    async def read_home(
        self, viewer: str, page_request: PageRequest, order: Literal["time", "importance"] = "time"
    ) -> Page:
        """Return the viewer's home timeline: statuses by the viewer and by the users whom the viewer follows.

        If the viewer has not come for a time, the timeline is made again first. Raises `Unavailable` if this takes
        longer than the request may.
        """
        if order == "importance":
            return await self.read_home_by_importance(viewer, page_request)
        await self._visits.arrive(viewer)
        return await self._read_derived_timeline(Sight(self._core, viewer), keys.home_timeline(viewer), page_request)

    async def read_list(self, viewer: str, list_id: str, page_request: PageRequest) -> Page:
        """Return the timeline of a list (of users): the statuses by its members."""
        sight = Sight(self._core, viewer)
        admit = partial(circles.require, sight, "list", list_id)
        return await self._read_derived_timeline(sight, keys.list_timeline(list_id), page_request, admit)

    async def read_home_by_importance(self, viewer: str, page_request: PageRequest) -> Page:
        """Return the home timeline, most important status first, by :func:`rank`."""
        name = "importance:" + viewer
        start, backwards = parse_page_start(page_request, name)
        await self._visits.arrive(viewer)
        # A client can forge a cursor, because its digest is not a signature.
        if start is not None and not start.member.isdecimal():
            raise InvalidCursor("this cursor does not belong to this list", param="after" if backwards else "before")
        (ids,) = await self._derived.execute(("ZRANGE", keys.home_timeline(viewer), -self._timeline_max, -1))
        sight = Sight(self._core, viewer)
        ranked = await self._rank(sight, ids)
        if start is not None:
            at = _ranking_key(start)
            ranked = [each for each in ranked if (_ranking_key(each[0]) > at) == backwards and each[0] != start]
        if backwards:
            ranked.reverse()
        found = [
            ((place.member.encode(), str(place.score).encode()), json)
            for place, json in ranked[page_request.skip : page_request.skip + page_request.count + 1]
        ]
        return make_page(found, page_request, name, backwards=backwards, started_at_cursor=start is not None)

    async def read_profile(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the statuses that a user posted outside groups, even if the viewer mutes this user."""
        sight = Sight(self._core, viewer)
        key, gate = keys.key_for("profile", uid), sight.gate(uid)
        return await self._read_ids(sight, key, page_request, gate=gate, least=Visibility.ON_REQUEST)

    async def read_group(self, viewer: str, group_id: str, page_request: PageRequest) -> Page:
        """Return the statuses that were posted in a group of users."""
        sight = Sight(self._core, viewer)
        admit = partial(circles.require, sight, "group", group_id)
        return await self._read_ids(sight, keys.key_for("grouped", group_id), page_request, admit=admit)

    async def read_tag(self, viewer: str, tag: str, page_request: PageRequest) -> Page:
        """Return the statuses with a hashtag, given with or without ``#``. Raises BadRequest for an invalid hashtag."""
        text = tag.removeprefix("#").removeprefix("\uff03")
        if [found.text for found in extract_entities("#" + text).hashtags] != [text]:
            raise BadRequest("a hashtag: letters, digits and _, not digits alone", param="tag")
        return await self._read_ids(Sight(self._core, viewer), keys.key_for("tag", fold(text)), page_request)

    async def read_mentions(self, viewer: str, page_request: PageRequest) -> Page:
        """Return the statuses that mention the viewer."""
        return await self._read_ids(Sight(self._core, viewer), keys.key_for("mentions", viewer), page_request)

    async def read_reposts(self, viewer: str, status_id: str, page_request: PageRequest) -> Page:
        """Return the reposts and quotes of a status."""
        return await self._read_of_status("reposts", viewer, status_id, page_request)

    async def read_replies(self, viewer: str, status_id: str, page_request: PageRequest) -> Page:
        """Return the direct replies to a status."""
        return await self._read_of_status("replies", viewer, status_id, page_request)

    async def read_conversation(self, viewer: str, status_id: str, page_request: PageRequest) -> Page:
        """Return the whole thread of a status, oldest first. Cursors are valid only with the same ``status_id``.

        A conversation has a set from its first answer on. Before that its root stands below all others in the page.
        """
        sight, root = Sight(self._core, viewer), status_id.encode()

        async def admit() -> None:
            nonlocal root
            root = (await statuses.require(sight, status_id)).conversation

        async def read(after: ListPosition | None, most: int, down: bool) -> Members:  # noqa: FBT001 - `ReadMembers`
            key = keys.key_for("thread", root.decode())
            (pairs, has_more), (in_set,) = await read_members(
                self._core, key, after, most, down=down, own_scores=True, before=(("ZSCORE", key, root),)
            )
            if in_set is None and down and not has_more and (after is None or after.score > int(root)):
                pairs = [*pairs, (root, root)]
            elif in_set is None and not down and (after is None or after.score < int(root)):
                pairs = [(root, root), *pairs]
            return Members(pairs, has_more)

        list_name = keys.key_for("thread", status_id)
        show, judge = _views(sight)
        return await fill_page(page_request, list_name, read, show, oldest_first=True, admit=admit, judge=judge)

    async def read_liked(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the statuses that a user likes, newest like first.

        The page is empty if the viewer blocks the user, or if the user is protected and not followed by the viewer.
        """
        sight, key, liker = Sight(self._core, viewer), keys.key_for("liked", uid), uid.encode()

        async def read(after: ListPosition | None, most: int, down: bool) -> Members:  # noqa: FBT001 - `ReadMembers`
            gate = sight.gate(uid)
            members, replies = await read_members(self._core, key, after, most, down=down, before=gate.commands)
            gate.check(replies)
            await sight.learn([liker])
            return members if sight.of(liker) else Members((), has_more=False)

        show, judge = _views(sight, Visibility.ON_REQUEST)
        return await fill_page(page_request, key, read, show, judge=judge)

    async def read_favorites(self, viewer: str, page_request: PageRequest) -> Page:
        """Return the viewer's favorites, last added first."""
        show, judge = _views(Sight(self._core, viewer), Visibility.ON_REQUEST)
        return await read_page(self._core, keys.key_for("favorites", viewer), page_request, show, judge=judge)

    async def _read_of_status(self, row: str, viewer: str, status_id: str, page_request: PageRequest) -> Page:
        sight = Sight(self._core, viewer)
        admit = partial(statuses.require, sight, status_id)
        return await self._read_ids(sight, keys.key_for(row, status_id), page_request, admit=admit)

    async def _read_ids(
        self, sight: Sight, key: str, page_request: PageRequest, *,
        least: Visibility = Visibility.VISIBLE, gate: Gate | None = None, admit: Admit | None = None,
    ) -> Page:  # fmt: skip
        """Return a page of statuses. The members of the sorted set ``key`` are their ids, and so are the scores."""
        show, judge = _views(sight, least)
        return await read_page(
            self._core, key, page_request, show, gate=gate, admit=admit, own_scores=True, judge=judge
        )

    async def _read_derived_timeline(
        self, sight: Sight, key: str, page_request: PageRequest, admit: Admit | None = None
    ) -> Page:
        """Return a page of a home or list timeline, without ids beyond the maximum length of a timeline."""
        longest = self._timeline_max

        async def read(after: ListPosition | None, most: int, down: bool) -> Members:  # noqa: FBT001 - `ReadMembers`
            if after is None:
                (newest, more), _ = await read_members(
                    self._derived, key, None, min(most, longest), down=down, own_scores=True
                )
                return Members(newest, more and len(newest) < longest)
            floor_command = ("ZRANGE", key, -longest, -longest)
            found, (lowest,) = await read_members(
                self._derived, key, after, most, down=down, own_scores=True, before=(floor_command,)
            )
            floor = int(lowest[0]) if lowest else 0
            if not down and after.score < floor:
                below_all = ListPosition(floor - 1, str(floor - 1))
                found, _ = await read_members(self._derived, key, below_all, most, down=False, own_scores=True)
            kept = [pair for pair in found.pairs if int(pair[0]) >= floor]
            return Members(kept, found.has_more and len(kept) == len(found.pairs))

        show, judge = _views(sight)
        return await fill_page(page_request, key, read, show, admit=admit, judge=judge)

    async def _rank(self, sight: Sight, ids: Sequence[bytes]) -> list[tuple[ListPosition, bytes]]:
        """Return those of the statuses that the viewer may see, most important first.

        Each is a `ListPosition` (rank and id) and its JSON.
        """
        rows = await statuses.read_rows(self._core, ids)
        originals = await statuses.read_originals(self._core, rows)
        await statuses.learn(sight, rows, originals)
        shown = [statuses.shown_json(sight, row, originals, Visibility.VISIBLE) for row in rows]
        seen = [(each, row, json) for each, row, json in zip(ids, rows, shown, strict=True) if row and json]
        if not seen:
            return []
        authors = [*{row.author for _, row, _ in seen}]
        following, followers, liked = (
            keys.key_for(name).encode() + sight.viewer for name in ("following", "followers", "liked")
        )
        follows, followed, likes = await self._core.execute(
            ("ZMSCORE", following, *authors), ("ZMSCORE", followers, *authors), ("ZRANGE", liked, 0, 99, "REV")
        )
        mutual = {a for a, one, other in zip(authors, follows, followed, strict=True) if one and other}
        status = keys.key_for("status").encode()
        given = Counter(await self._core.execute(*(("HGET", status + each, "uid") for each in likes)) if likes else ())
        ranked = []
        for status_id, row, json in seen:
            counted = row
            if row.is_plain_repost:  # the counters of the original, if it is not deleted
                counted = originals[row.origin] or row._replace(likes=b"0", comments=b"0", reposts=b"0")
            inputs = RankingInputs(
                parse_iso_ms(row.posted.decode()), int(counted.likes), int(counted.comments), int(counted.reposts),
                given[row.author], row.author in mutual, is_own=row.author == sight.viewer,
            )  # fmt: skip
            ranked.append((ListPosition(rank(inputs), status_id.decode()), json))
        return sorted(ranked, key=lambda each: _ranking_key(each[0]), reverse=True)


def _views(sight: Sight, least: Visibility = Visibility.VISIBLE) -> tuple[Show, Show]:
    """Return `show` and `judge` for `fill_page`: the first returns statuses as JSON, the second only their ids.

    Both return None in the place of a status whose visibility for the viewer is below ``least``.
    """
    return (
        lambda members: statuses.show(sight, [member for member, _ in members], least),
        lambda members: statuses.judge(sight, [member for member, _ in members], least),
    )


def _ranking_key(position: ListPosition) -> tuple[int, int]:
    return position.score, int(position.member)
