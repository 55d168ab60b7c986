"""The importance of a status, term by term, and the home timeline in that order."""

import math
from typing import Any

import pytest

from stream_server.errors import InvalidCursor
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from stream_server.store.timelines.timelines import HALF_LIFE_MS, RANK_STEPS_PER_DOUBLING, RankingInputs, rank
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import ids, read_pages

NOW = 1_800_000_000_000
PLAIN = RankingInputs(NOW)


def importance(figures: RankingInputs) -> float:
    """Return how many times as important as a plain status of now a status is, by its rank."""
    return float(2 ** ((rank(figures) - rank(PLAIN)) / RANK_STEPS_PER_DOUBLING))


def test_importance_halves_in_twelve_hours() -> None:
    assert HALF_LIFE_MS == 12 * 3_600_000
    assert importance(RankingInputs(NOW - HALF_LIFE_MS)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        (RankingInputs(NOW, likes=7), 4.0),
        (RankingInputs(NOW, comments=3, reposts=3), 5.0),
        (RankingInputs(NOW, likes=1, comments=1, reposts=1), 1 + math.log2(7)),
        (RankingInputs(NOW, is_mutual=True), 2.0),
        (RankingInputs(NOW, likes_given=3), 3.0),
        (RankingInputs(NOW, likes_given=1, is_mutual=True), 3.0),
        (RankingInputs(NOW, likes_given=50, is_mutual=True, is_own=True), 1.0),
        (RankingInputs(NOW, likes=1, is_mutual=True), 4.0),
    ],
)
def test_importance_grows_with_reactions_and_closeness(figures: RankingInputs, expected: float) -> None:
    assert importance(figures) == pytest.approx(expected, rel=1e-5)
    assert rank(figures) > 0


async def test_the_home_in_order_of_importance(store: Store, people: People, raw: Any) -> None:
    reader, ada, bob = await people.users(3)
    for each in (ada, bob):
        await store.follows.follow(reader, each, new_key())
    plain = [(await people.status(ada, f"{i}"))["id"] for i in range(5)]
    await store.likes.like(bob, plain[1], new_key())
    repost = (await people.status(bob, "", origin=plain[1]))["id"]
    order = ids(await store.timelines.read_home_by_importance(reader, PageRequest()))
    assert order == [repost, plain[1], *reversed([plain[0], *plain[2:]])]
    pages = await read_pages(lambda request: store.timelines.read_home_by_importance(reader, request), 2)
    assert [status for page in pages for status in ids(page)] == order
    numbered = await store.timelines.read_home_by_importance(reader, PageRequest(count=2, page=2))
    assert ids(numbered) == order[2:4]
    back = await store.timelines.read_home_by_importance(reader, PageRequest(count=2, after=numbered.prev))
    assert ids(back) == order[:2]


async def test_equally_important_statuses_are_ordered_by_id(store: Store, people: People, raw: Any) -> None:
    ada = await people.user("ada")
    made = [(await people.status(ada, f"{i}"))["id"] for i in range(5)]
    for each in made:
        raw.hset("{core}:status:" + each, "posted", NOW)
    first = await store.timelines.read_home_by_importance(ada, PageRequest(count=3))
    second = await store.timelines.read_home_by_importance(ada, PageRequest(count=3, before=first.next))
    assert ids(first) + ids(second) == list(reversed(made))


@pytest.mark.parametrize("member", ["abc", ":", "c1:2"])
async def test_a_made_up_cursor_is_refused(store: Store, people: People, member: str) -> None:
    ada = await people.user("ada")
    await people.status(ada)
    await people.status(ada)
    given = (await store.timelines.read_home_by_importance(ada, PageRequest(count=1))).next
    assert given is not None
    score, _, mark = given.split("-")
    for piece in (PageRequest(before=f"{score}-{member}-{mark}"), PageRequest(after=f"{score}-{member}-{mark}")):
        with pytest.raises(InvalidCursor):
            await store.timelines.read_home_by_importance(ada, piece)


async def test_liking_a_status_lifts_its_author(store: Store, people: People) -> None:
    reader, ada, bob = await people.users(3)
    for each in (ada, bob):
        await store.follows.follow(reader, each, new_key())
    liked = (await people.status(ada, "old"))["id"]
    of_ada = (await people.status(ada, "new"))["id"]
    of_bob = (await people.status(bob, "newest"))["id"]
    assert ids(await store.timelines.read_home_by_importance(reader, PageRequest())) == [of_bob, of_ada, liked]
    await store.likes.like(reader, liked, new_key())
    assert ids(await store.timelines.read_home_by_importance(reader, PageRequest())) == [liked, of_ada, of_bob]
