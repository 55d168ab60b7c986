"""The number of Redis commands of a page, inside scripts too: authors are read together, not one by one."""

from collections.abc import Awaitable
from typing import Any

import pytest

from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import group, ids, items_of

STATUSES, REPOSTS = 30, 6


async def _commands_of(raw: Any, page: Awaitable[Any]) -> tuple[int, Any]:
    """The number of commands that Redis ran for a page, and the page."""
    raw.config_resetstat()
    read = await page
    counts = raw.info("commandstats")
    return sum(row["calls"] for name, row in counts.items() if not name.startswith("cmdstat_config")), read


@pytest.fixture
async def viewer(store: Store, people: People, raw: Any) -> str:
    """A user who blocks, mutes, and follows thirty authors, with reposts of strangers on the home timeline."""
    viewer, blocked, muted, *everyone = await people.users(3 + STATUSES + REPOSTS)
    authors, strangers = everyone[:STATUSES], everyone[STATUSES:]
    for author in authors:
        await store.follows.follow(viewer, author, new_key())
    for number, author in enumerate(authors):
        if number < REPOSTS:
            origin = (await people.status(strangers[number], "of a stranger #all"))["id"]
            await people.status(author, "", origin=origin)
        else:
            await people.status(author, "hello #all")
    await store.blocks.block(viewer, blocked, new_key())
    await store.mutes.mute(viewer, muted, new_key())
    return viewer


async def test_a_home_page_of_thirty_authors_takes_at_most_48_commands(store: Store, viewer: str, raw: Any) -> None:
    commands, page = await _commands_of(raw, store.timelines.read_home(viewer, PageRequest(count=STATUSES)))
    assert len(items_of(page)) == STATUSES
    assert commands <= 48


async def test_a_page_of_a_tag_reads_its_authors_together(store: Store, viewer: str, raw: Any) -> None:
    commands, page = await _commands_of(raw, store.timelines.read_tag(viewer, "all", PageRequest(count=STATUSES - 1)))
    assert len(items_of(page)) == STATUSES - 1
    assert commands <= 48


async def test_group_posts_and_reposts_that_a_page_skips_are_hidden_as_those_that_it_shows(
    store: Store, people: People
) -> None:
    reader, owner, shy, ann, dan = await people.users(5)
    for uid in (reader, shy):
        await store.follows.follow(uid, owner, new_key())
    kept, left = [await group(store, "private", owner, reader, shy) for _ in range(2)]
    origin = (await people.status(dan, "of dan"))["id"]
    drafts: dict[str, dict[str, Any]] = {
        "plain": {"uid": ann}, "repost": {"uid": ann, "message": "", "origin": origin},
        "quote": {"uid": ann, "origin": origin}, "of a protected user": {"uid": shy},
        "of that user in a group": {"uid": shy, "group": kept},
        "in a group that was left": {"uid": owner, "group": left}, "last": {"uid": ann},
    }  # fmt: skip
    made = {name: (await people.status(**draft))["id"] for name, draft in drafts.items()}
    for status in made.values():
        await store.favorites.add(reader, status, new_key())
    await store.groups.leave(reader, left, new_key())
    await store.users.update(shy, {"protected": True}, new_key())
    await store.blocks.block(dan, reader, new_key())
    expected = [made[name] for name in ("last", "of that user in a group", "quote", "plain")]
    assert ids(await store.timelines.read_favorites(reader, PageRequest())) == expected
    by_number = [await store.timelines.read_favorites(reader, PageRequest(1, page=n)) for n in range(1, 6)]
    assert [ids(page) for page in by_number] == [[each] for each in expected] + [[]]


async def test_the_texts_that_a_page_skips_are_not_read(store: Store, people: People, raw: Any) -> None:
    (ann,) = await people.users(1)
    posted = [(await people.status(ann, "#all", meta={"large": "x" * 4000}))["id"] for _ in range(STATUSES)]
    sent = []
    for number in (1, 6):
        before = raw.info("stats")["total_net_output_bytes"]
        assert (
            ids(await store.timelines.read_tag(ann, "all", PageRequest(5, page=number)))
            == (posted[::-1][5 * number - 5 : 5 * number])
        )
        sent.append(raw.info("stats")["total_net_output_bytes"] - before)
    assert sent[1] < 1.5 * sent[0]
