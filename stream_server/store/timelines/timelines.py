"""Timelines: pieces of lists of statuses, each as the viewer sees it.

Homes and the timelines of lists are derived: their ids are read first, then one script shows what the viewer may see of
them, so that a page is full although some ids point to what is gone or hidden. All others are truth: one round trip.
"""

from collections import Counter
from collections.abc import Sequence

from filters.entities import extract_entities
from filters.tokens import fold
from stream_server.errors import BadRequest, InvalidCursor
from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.pagination import (
    ListPosition,
    Page,
    PageRequest,
    PositionedItem,
    make_page,
    parse_page_start,
    read_page,
)
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import ScriptArgument, Scripts
from stream_server.store.timelines.importance import RankingInputs, rank

ListPositions = list[ListPosition]
StatusIds = list[str]

STATUSES_PER_RANKING_CALL = 200
"""Statuses that one step weighs, a few milliseconds; a home is weighed in several, all in one round trip."""

SPARE_IDS = 16
"""So many ids more than are needed are read, so that a few that are not shown cost no further round trip."""


class Timelines:
    """The timelines of one store. Every read takes the viewer first and gives statuses as JSON, newest first.

    All raise InvalidCursor, and NotFound for what does not exist or is not to be seen.
    """

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts

    async def read_home(self, viewer: str, page_request: PageRequest) -> Page:
        """What the viewer and everyone followed wrote."""
        return await self._read_derived_timeline(viewer, "", keys.home_timeline(viewer), page_request)

    async def read_list(self, viewer: str, list_id: str, page_request: PageRequest) -> Page:
        """What the members of a list wrote."""
        return await self._read_derived_timeline(viewer, list_id, keys.list_timeline(list_id), page_request)

    async def read_home_by_importance(self, viewer: str, page_request: PageRequest) -> Page:
        """The home timeline, the most important first; see :mod:`stream_server.store.timelines.importance`."""
        name = "importance:" + viewer
        place, backwards = parse_page_start(page_request, name)
        if place is not None and not place.member.isdecimal():  # a mark is no signature: a cursor can be made up
            raise InvalidCursor("this is no cursor of this list", param="after" if backwards else "before")
        (ids,) = await self._redis.execute(("ZRANGE", keys.home_timeline(viewer), 0, -1))
        places = await self._rank(viewer, ids)
        if place is not None:
            places = [
                each for each in places if (_ranking_key(each) > _ranking_key(place)) == backwards and each != place
            ]
        if backwards:
            places.reverse()
        skip = 0 if page_request.page is None else (page_request.page - 1) * page_request.count
        wanted = places[skip : skip + page_request.count + 1]
        bodies = await self._read_bodies(viewer, [each.member for each in wanted])
        found = [(each, bodies[each.member]) for each in wanted if each.member in bodies]
        return make_page(found, page_request, name, backwards=backwards, started_at_cursor=place is not None)

    async def read_profile(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """A user's own statuses, muted or not."""
        return await self._read_core_timeline("profile", uid, page_request, viewer, Visibility.ON_REQUEST, "user")

    async def read_group(self, viewer: str, group_id: str, page_request: PageRequest) -> Page:
        """What was posted in a group."""
        return await self._read_core_timeline("grouped", group_id, page_request, viewer, Visibility.VISIBLE, "group")

    async def read_tag(self, viewer: str, tag: str, page_request: PageRequest) -> Page:
        """The recent statuses with a hashtag, written with or without ``#``; raises BadRequest for what is none."""
        return await self._read_core_timeline("tag", fold_tag(tag), page_request, viewer, Visibility.VISIBLE, "")

    async def read_mentions(self, viewer: str, page_request: PageRequest) -> Page:
        """The recent statuses that mention the viewer."""
        return await self._read_core_timeline("mentions", viewer, page_request, viewer, Visibility.VISIBLE, "")

    async def read_reposts(self, viewer: str, status_id: str, page_request: PageRequest) -> Page:
        """Reposts and quotes of a status."""
        return await self._read_core_timeline("reposts", status_id, page_request, viewer, Visibility.VISIBLE, "status")

    async def read_replies(self, viewer: str, status_id: str, page_request: PageRequest) -> Page:
        """Direct replies to a status."""
        return await self._read_core_timeline("replies", status_id, page_request, viewer, Visibility.VISIBLE, "status")

    async def read_conversation(self, viewer: str, status_id: str, page_request: PageRequest) -> Page:
        """The whole thread in which a status stands, oldest first. Its cursors are for the thread of this status."""
        key = keys.key_for("thread", status_id)  # the script finds the root, whose thread it is
        return await read_page(
            self._scripts,
            "statuses_page",
            key,
            page_request,
            viewer,
            int(Visibility.VISIBLE),
            "thread",
            status_id,
            oldest_first=True,
        )

    async def read_liked(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """What a user likes, the latest like first; of a protected user, to approved followers only."""
        return await self._read_core_timeline("liked", uid, page_request, viewer, Visibility.ON_REQUEST, "person")

    async def read_favorites(self, viewer: str, page_request: PageRequest) -> Page:
        """What the viewer has kept, the latest first."""
        return await self._read_core_timeline("favorites", viewer, page_request, viewer, Visibility.ON_REQUEST, "")

    async def _read_core_timeline(
        self,
        key_name: str,
        owner: str,
        page_request: PageRequest,
        viewer: str,
        min_visibility: Visibility,
        owner_kind: str,
    ) -> Page:
        key = keys.key_for(key_name, owner)
        return await read_page(
            self._scripts, "statuses_page", key, page_request, viewer, int(min_visibility), owner_kind, owner
        )

    async def _read_derived_timeline(self, viewer: str, list_id: str, key: str, page_request: PageRequest) -> Page:
        place, backwards = parse_page_start(page_request, key)
        most = page_request.count + 1
        skip = 0 if page_request.page is None else (page_request.page - 1) * page_request.count
        found: list[PositionedItem] = []
        edge, batch = place, most + skip + SPARE_IDS
        while True:
            ids = await self._read_ids(key, edge, batch, backwards=backwards)
            shown, _, skipped = await self._scripts.call(
                "statuses_show", keys.META, viewer, int(Visibility.VISIBLE), list_id, most - len(found), skip, *ids
            )
            found += [(ListPosition(int(shown[i]), shown[i].decode()), shown[i + 1]) for i in range(0, len(shown), 2)]
            if len(found) >= most or len(ids) < batch:
                return make_page(found, page_request, key, backwards=backwards, started_at_cursor=place is not None)
            edge = ListPosition(int(ids[-1]), ids[-1].decode())
            skip, batch = skip - skipped, 2 * batch

    async def _read_ids(
        self, key: str, after: ListPosition | None, max_ids: int, *, backwards: bool
    ) -> Sequence[bytes]:
        """Ids behind a place; the score of a status is its id, so there are no ties."""
        if backwards:
            assert after is not None  # one goes backwards from somewhere
            command = ("ZRANGE", key, f"({after.score}", "+inf", "BYSCORE", "LIMIT", 0, max_ids)
            (ids,) = await self._redis.execute(command)
        else:
            top = "+inf" if after is None else f"({after.score}"
            (ids,) = await self._redis.execute(("ZRANGE", key, top, "-inf", "BYSCORE", "REV", "LIMIT", 0, max_ids))
        found: Sequence[bytes] = ids
        return found

    async def _rank(self, viewer: str, ids: Sequence[bytes]) -> ListPositions:
        """What the viewer sees of these, the most important first."""
        if not ids:
            return []
        parts = [ids[at : at + STATUSES_PER_RANKING_CALL] for at in range(0, len(ids), STATUSES_PER_RANKING_CALL)]
        calls: list[tuple[ScriptArgument, ...]] = [(viewer, int(at == 0), *part) for at, part in enumerate(parts)]
        weighed = await self._scripts.call_each("statuses_ranking_inputs", keys.META, calls)
        given = Counter(author.decode() for _, liked in weighed for author in liked)
        places = [
            ListPosition(
                rank(_make_ranking_inputs(numbers, given[uid.decode()], is_own=uid.decode() == viewer)),
                status_id.decode(),
            )
            for figures, _ in weighed
            for status_id, uid, *numbers in figures
        ]
        return sorted(places, key=_ranking_key, reverse=True)

    async def _read_bodies(self, viewer: str, ids: StatusIds) -> dict[str, bytes]:
        if not ids:
            return {}
        shown, _, _ = await self._scripts.call(
            "statuses_show", keys.META, viewer, int(Visibility.VISIBLE), "", len(ids), 0, *ids
        )
        return {shown[i].decode(): shown[i + 1] for i in range(0, len(shown), 2)}


def fold_tag(tag: str) -> str:
    """A hashtag as it is kept; raises BadRequest for what could stand in no status as one."""
    bare = tag.removeprefix("#").removeprefix("\uff03")
    if [found.text for found in extract_entities("#" + bare).hashtags] != [bare]:
        raise BadRequest("a hashtag: letters, digits and _, not digits alone", param="tag")
    return fold(bare)


def _make_ranking_inputs(numbers: Sequence[bytes], likes_given: int, *, is_own: bool) -> RankingInputs:
    posted_ms, likes, comments, reposts, mutual = map(int, numbers)
    return RankingInputs(posted_ms, likes, comments, reposts, likes_given, bool(mutual), is_own)


def _ranking_key(position: ListPosition) -> tuple[int, int]:
    """Equally important ones are ordered by id, the younger first."""
    return position.score, int(position.member)
