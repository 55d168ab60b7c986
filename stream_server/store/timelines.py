"""Timelines: pieces of lists of statuses, each as the viewer sees it.

Homes and the timelines of lists are derived: their ids are read first, then one script shows what the viewer may see of
them, so that a page is full although some ids point to what is gone or hidden. All others are truth: one round trip.
"""

from collections import Counter
from collections.abc import Sequence

from filters.entities import extract
from filters.tokens import fold
from stream_server.errors import BadRequest, InvalidCursor
from stream_server.sight import Sight
from stream_server.store import keys
from stream_server.store.importance import Figures, rank
from stream_server.store.link import Link
from stream_server.store.page import Found, Page, Piece, Place, cut, start, walk
from stream_server.store.scripts import Argument, Scripts

Places = list[Place]
Ids = list[str]

WEIGHED = 200
"""Statuses that one step weighs, a few milliseconds; a home is weighed in several, all in one round trip."""

SPARE = 16
"""So many ids more than are needed are read, so that a few that are not shown cost no further round trip."""


class Timelines:
    """The timelines of one store. Every read takes the viewer first and gives statuses as JSON, newest first.

    All raise InvalidCursor, and NotFound for what does not exist or is not to be seen.
    """

    def __init__(self, link: Link, scripts: Scripts) -> None:
        self._link = link
        self._scripts = scripts

    async def home(self, viewer: str, piece: Piece) -> Page:
        """What the viewer and everyone followed wrote."""
        return await self._derived(viewer, "", keys.home(viewer), piece)

    async def list(self, viewer: str, list_id: str, piece: Piece) -> Page:
        """What the members of a list wrote."""
        return await self._derived(viewer, list_id, keys.timeline(list_id), piece)

    async def importance(self, viewer: str, piece: Piece) -> Page:
        """The home timeline, the most important first; see :mod:`stream_server.store.importance`."""
        name = "importance:" + viewer
        place, backwards = start(piece, name)
        if place is not None and not place.member.isdecimal():  # a mark is no signature: a cursor can be made up
            raise InvalidCursor("this is no cursor of this list", param="after" if backwards else "before")
        (ids,) = await self._link.ask(("ZRANGE", keys.home(viewer), 0, -1))
        places = await self._ranked(viewer, ids)
        if place is not None:
            places = [each for each in places if (_order(each) > _order(place)) == backwards and each != place]
        if backwards:
            places.reverse()
        skip = 0 if piece.page is None else (piece.page - 1) * piece.count
        wanted = places[skip : skip + piece.count + 1]
        bodies = await self._bodies(viewer, [each.member for each in wanted])
        found = [(each, bodies[each.member]) for each in wanted if each.member in bodies]
        return cut(found, piece, name, backwards=backwards, begun=place is not None)

    async def profile(self, viewer: str, uid: str, piece: Piece) -> Page:
        """A user's own statuses, muted or not."""
        return await self._walk("profile", uid, piece, viewer, Sight.QUIET, "user")

    async def group(self, viewer: str, group_id: str, piece: Piece) -> Page:
        """What was posted in a group."""
        return await self._walk("grouped", group_id, piece, viewer, Sight.SHOWN, "group")

    async def tag(self, viewer: str, tag: str, piece: Piece) -> Page:
        """The recent statuses with a hashtag, written with or without ``#``; raises BadRequest for what is none."""
        return await self._walk("tag", folded_tag(tag), piece, viewer, Sight.SHOWN, "")

    async def mentions(self, viewer: str, piece: Piece) -> Page:
        """The recent statuses that mention the viewer."""
        return await self._walk("mentions", viewer, piece, viewer, Sight.SHOWN, "")

    async def reposts(self, viewer: str, status_id: str, piece: Piece) -> Page:
        """Reposts and quotes of a status."""
        return await self._walk("reposts", status_id, piece, viewer, Sight.SHOWN, "status")

    async def replies(self, viewer: str, status_id: str, piece: Piece) -> Page:
        """Direct replies to a status."""
        return await self._walk("replies", status_id, piece, viewer, Sight.SHOWN, "status")

    async def conversation(self, viewer: str, status_id: str, piece: Piece) -> Page:
        """The whole thread in which a status stands, oldest first. Its cursors are for the thread of this status."""
        key = keys.named("thread", status_id)  # the script finds the root, whose thread it is
        return await walk(
            self._scripts, "timeline", key, piece, viewer, int(Sight.SHOWN), "thread", status_id, oldest_first=True
        )

    async def liked(self, viewer: str, uid: str, piece: Piece) -> Page:
        """What a user likes, the latest like first; of a protected user, to approved followers only."""
        return await self._walk("liked", uid, piece, viewer, Sight.QUIET, "person")

    async def favorites(self, viewer: str, piece: Piece) -> Page:
        """What the viewer has kept, the latest first."""
        return await self._walk("favorites", viewer, piece, viewer, Sight.QUIET, "")

    async def _walk(self, name: str, owner: str, piece: Piece, viewer: str, least: Sight, owner_kind: str) -> Page:
        key = keys.named(name, owner)
        return await walk(self._scripts, "timeline", key, piece, viewer, int(least), owner_kind, owner)

    async def _derived(self, viewer: str, list_id: str, key: str, piece: Piece) -> Page:
        place, backwards = start(piece, key)
        most = piece.count + 1
        skip = 0 if piece.page is None else (piece.page - 1) * piece.count
        found: list[Found] = []
        edge, batch = place, most + skip + SPARE
        while True:
            ids = await self._ids(key, edge, batch, backwards=backwards)
            shown, _, skipped = await self._scripts.read(
                "show", keys.META, viewer, int(Sight.SHOWN), list_id, most - len(found), skip, *ids
            )
            found += [(Place(int(shown[i]), shown[i].decode()), shown[i + 1]) for i in range(0, len(shown), 2)]
            if len(found) >= most or len(ids) < batch:
                return cut(found, piece, key, backwards=backwards, begun=place is not None)
            edge = Place(int(ids[-1]), ids[-1].decode())
            skip, batch = skip - skipped, 2 * batch

    async def _ids(self, key: str, edge: Place | None, most: int, *, backwards: bool) -> Sequence[bytes]:
        """Ids behind a place; the score of a status is its id, so there are no ties."""
        if backwards:
            assert edge is not None  # one goes backwards from somewhere
            command = ("ZRANGE", key, f"({edge.score}", "+inf", "BYSCORE", "LIMIT", 0, most)
            (ids,) = await self._link.ask(command)
        else:
            top = "+inf" if edge is None else f"({edge.score}"
            (ids,) = await self._link.ask(("ZRANGE", key, top, "-inf", "BYSCORE", "REV", "LIMIT", 0, most))
        found: Sequence[bytes] = ids
        return found

    async def _ranked(self, viewer: str, ids: Sequence[bytes]) -> Places:
        """What the viewer sees of these, the most important first."""
        if not ids:
            return []
        parts = [ids[at : at + WEIGHED] for at in range(0, len(ids), WEIGHED)]
        calls: list[tuple[Argument, ...]] = [(viewer, int(at == 0), *part) for at, part in enumerate(parts)]
        weighed = await self._scripts.read_each("weigh", keys.META, calls)
        given = Counter(author.decode() for _, liked in weighed for author in liked)
        places = [
            Place(rank(_figures(numbers, given[uid.decode()], own=uid.decode() == viewer)), status_id.decode())
            for figures, _ in weighed
            for status_id, uid, *numbers in figures
        ]
        return sorted(places, key=_order, reverse=True)

    async def _bodies(self, viewer: str, ids: Ids) -> dict[str, bytes]:
        if not ids:
            return {}
        shown, _, _ = await self._scripts.read("show", keys.META, viewer, int(Sight.SHOWN), "", len(ids), 0, *ids)
        return {shown[i].decode(): shown[i + 1] for i in range(0, len(shown), 2)}


def folded_tag(tag: str) -> str:
    """A hashtag as it is kept; raises BadRequest for what could stand in no status as one."""
    bare = tag.removeprefix("#").removeprefix("\uff03")
    if [found.text for found in extract("#" + bare).hashtags] != [bare]:
        raise BadRequest("a hashtag: letters, digits and _, not digits alone", param="tag")
    return fold(bare)


def _figures(numbers: Sequence[bytes], likes_given: int, *, own: bool) -> Figures:
    posted_ms, likes, comments, reposts, mutual = map(int, numbers)
    return Figures(posted_ms, likes, comments, reposts, likes_given, bool(mutual), own)


def _order(place: Place) -> tuple[int, int]:
    """Equally important ones are ordered by id, the younger first."""
    return place.score, int(place.member)
