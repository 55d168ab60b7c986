"""Users whom somebody may want to follow. Nothing is kept for that: the follows and the last visits say enough."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from stream_server.events.entry import PUBLIC_AUDIENCE
from stream_server.store import keys
from stream_server.store.reads.users import read_rows
from stream_server.store.redis.lanes import Command
from stream_server.store.social.noun import Noun

MAX_FRIENDS = 20
"""Followed users whose own follows are looked at: those whom the user followed last."""

MAX_OF_FRIEND = 30
"""Newest follows of each of these that are looked at."""

MAX_SHARED = 60
"""Users whom most of these follow that are looked at. They may be silent, so there is room for active users, too."""

MAX_VISITORS = 50
"""Users who read their home timelines last that are looked at."""

MAX_CANDIDATES = 100
"""Users whose profiles are read for one answer."""

RECENT_ENTRIES = 200
"""Newest entries of the log whose authors may be suggested."""

ENOUGH_AUTHORS = 20
"""With fewer authors, on a quiet site, the log itself is read: it reaches further back than memory."""

_AUTHOR = re.compile(rb'"uid":"([0-9]+)"')
"""The author of a post, the first member of this name in the entry: a status begins with its id and author."""

_NEVER = ("following", "asked", "blocks", "mutes")
"""The sets of a user whose members are never suggested."""


def authors_of(bodies: Iterable[bytes]) -> list[bytes]:
    """Return the ids of the authors of posts, each once. ``bodies`` are the posts' entries as JSON."""
    found = map(_AUTHOR.search, bodies)
    return [*dict.fromkeys(match[1] for match in found if match)]


class Suggestions(Noun):
    """Suggests users to follow."""

    async def suggest(
        self, uid: str, authors: Sequence[bytes], count: int, *, are_all_known: bool = False
    ) -> list[bytes]:
        """Return at most ``count`` users as JSON whom the user ``uid`` may want to follow, the best ones first.

        Whom most of the followed users follow comes first. Then come the others by their followers: ``authors``, who
        have posted a moment ago, and who has just read the home timeline. All have posted, and none is protected.
        With ``are_all_known``, the ``authors`` are those of all `RECENT_ENTRIES`, so the log has no others.
        """
        asked: list[Command] = [
            ("ZRANGE", keys.key_for("following", uid), 0, MAX_FRIENDS - 1, "REV"),
            ("ZRANGE", keys.key_for("visited"), 0, MAX_VISITORS - 1, "REV"),
        ]
        if len(authors) < ENOUGH_AUTHORS and not are_all_known:
            asked.append(("XREVRANGE", keys.LOG, "+", "-", "COUNT", RECENT_ENTRIES))
        friends, visitors, *rows = await self._redis.execute(*asked)
        fields = (entry[1] for each in rows for entry in each)
        on_log = authors_of(each[7] for each in fields if each[3] == b"post" and each[5] == PUBLIC_AUDIENCE.encode())
        shared = Counter[bytes]()
        if friends:
            sets = (keys.key_for("following", each.decode()) for each in friends)
            for some in await self._redis.execute(*(("ZRANGE", key, 0, MAX_OF_FRIEND - 1, "REV") for key in sets)):
                shared.update(some)
        ranked = [each for each, _ in shared.most_common(MAX_SHARED)]
        candidates = [*dict.fromkeys((*ranked, *authors, *on_log, *visitors))]
        known = await self._without_known(uid, candidates[: 2 * MAX_CANDIDATES])
        users = await read_rows(self._sight(uid), known[:MAX_CANDIDATES])
        found = [row for row in users if row is not None and row.posts != b"0" and b'"protected":false' in row.card]
        found.sort(key=lambda row: (-shared[row.id], -int(row.followers)))
        return [row.public_json() for row in found[:count]]

    async def _without_known(self, uid: str, candidates: Sequence[bytes]) -> list[bytes]:
        """Return the candidates without the user, and without those whom the user follows, asks, blocks or mutes."""
        if not candidates:
            return []
        asked: list[Command] = [("ZMSCORE", keys.key_for(row, uid), *candidates) for row in _NEVER]
        scores = await self._redis.execute(*asked)
        never = {uid.encode()}
        for each in scores:
            never.update(other for other, score in zip(candidates, each, strict=True) if score is not None)
        return [each for each in candidates if each not in never]
