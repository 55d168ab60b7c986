"""People are found by the beginnings of their names, and suggested to those who do not know them yet."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from filters.tokens import fold_name
from stream_server.store.names import beginnings_of
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key

NAMED = {
    "ann_b": "Zoë Ångström", "zoltan": "Kiss Zoltán", "kim": "김철수 \uff2b\uff49\uff4d", "m1": "María-José O'Neil",
    "ankle": "🦶",
}  # fmt: skip


@pytest.fixture
async def ids(store: Store) -> dict[str, str]:
    made = await store.users.create_many([*NAMED.items(), ("viewer", "V")], new_key())
    return {user.login: user.id for user in made}


def logins(found: Iterable[bytes]) -> list[str]:
    return [json.loads(each)["login"] for each in found]


async def find(store: Store, viewer: str, text: str, count: int = 10) -> list[str]:
    return logins(await store.users.search(viewer, text, count))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("zo", {"ann_b", "zoltan"}), ("ZOE", {"ann_b"}), ("zoë å", {"ann_b"}), ("angs", {"ann_b"}),
        ("zoltan", {"zoltan"}),
        ("kiss  zol", {"zoltan"}), ("zoltan kiss", set()), ("an", {"ann_b", "ankle"}), ("ann_b", {"ann_b"}),
        ("김철", {"kim"}), ("\uff4b\uff49", {"kim", "zoltan"}), ("jose", {"m1"}), ("o'n", {"m1"}), ("neil", {"m1"}),
        ("oltan", set()),
        ("🦶", set()), (" ", set()), ("a" * 50, set()), ("*", set()), ("\t", set()),
    ],
)  # fmt: skip
async def test_a_beginning_finds_users(store: Store, ids: dict[str, str], text: str, found: set[str]) -> None:
    """Case, accents and width do not matter."""
    assert set(await find(store, ids["viewer"], text)) == found


async def test_the_index_follows_each_change(store: Store, ids: dict[str, str], people: People) -> None:
    viewer, ann = ids["viewer"], ids["ann_b"]
    await store.users.update(ann, {"bio": "other"}, new_key())
    assert await find(store, viewer, "zoe") == ["ann_b"]
    await store.users.update(ann, {"name": "Bea Ann"}, new_key())
    assert (await find(store, viewer, "zoe"), await find(store, viewer, "bea ann")) == ([], ["ann_b"])
    new = await people.user("beatrix")
    assert set(await find(store, viewer, "bea")) == {"ann_b", "beatrix"}
    subject = await store.users.user_of_subject("s1", ["beatrix", "beatrix2"], "Beau Été", "")
    assert await find(store, viewer, "ete") == ["beatrix2"] == logins(await store.users.get_many(viewer, [subject]))
    await store.suspensions.suspend(viewer, ann, new_key())
    await store.blocks.block(new, viewer, new_key())
    assert await find(store, viewer, "bea") == ["beatrix2"]
    await store.suspensions.reinstate(viewer, ann, new_key())
    assert await find(store, viewer, "bea") == ["ann_b", "beatrix2"]
    await store.accounts.delete(viewer, ann, new_key())
    assert await find(store, viewer, "bea") == ["beatrix2"]


async def test_the_best_found_come_first(store: Store, people: People) -> None:
    """The user with this login, then those with most followers. Of many users, some are looked at."""
    made = await store.users.create_many([(f"sam{n}", "Sam") for n in range(150)] + [("sam", "Other")], new_key())
    ids = [user.id for user in made]
    for follower, target in ((0, 7), (1, 7), (0, 3)):
        await store.follows.follow(ids[follower], ids[target], new_key())
    assert (await find(store, ids[20], "SAM", 3))[:1] == ["sam"]
    assert len(await find(store, ids[20], "sam", 50)) == 50
    assert len(set(await find(store, ids[20], "sam", 50))) == 50
    assert (await find(store, ids[20], "sam7", 3))[0] == "sam7"


def test_a_name_has_few_short_beginnings() -> None:
    assert beginnings_of("Ada  Lovelace") == "ada lovelace\nlovelace"
    assert beginnings_of("ada ada") == "ada ada\nada"
    assert beginnings_of("🦶") == ""
    assert len(beginnings_of(" ".join(["longer" * 9] * 9)).split("\n")) == 1
    assert all(len(line) <= 40 for line in beginnings_of("x" * 50).split("\n"))
    assert fold_name("İSTANBUL ﬁn Straße") == "istanbul fin strasse"


async def suggested(store: Store, uid: str, authors: Iterable[str] = (), count: int = 10) -> list[str]:
    return logins(await store.suggestions.suggest(uid, [each.encode() for each in authors], count))


async def test_friends_of_friends_are_suggested_before_active_users(store: Store, people: People, raw: Any) -> None:
    uids = await people.users(9)
    me, friend, other, near, far, active, silent, visitor, known = uids
    for uid in uids:
        if uid != silent:
            await people.status(uid)
    for source, target in (
        (friend, near), (friend, far), (other, near), (friend, me), (friend, silent), (other, known), (known, active),
    ):  # fmt: skip
        await store.follows.follow(source, target, new_key())
    raw.zadd("{core}:visited", {visitor: 1})
    raw.xtrim("{core}:log", maxlen=0, approximate=False)
    assert await suggested(store, me, [me, active, silent]) == ["u5", "u7"]
    for target in (friend, other, known):
        await store.follows.follow(me, target, new_key())
    assert await suggested(store, me, [me, active, silent, friend]) == ["u3", "u5", "u4", "u7"]
    assert await suggested(store, me, count=1) == ["u3"]
    await store.mutes.mute(me, near, new_key())
    await store.blocks.block(me, far, new_key())
    assert await suggested(store, me) == ["u5", "u7"]
    assert await suggested(store, visitor, [active]) == ["u5"]
    await store.users.update(active, {"protected": True}, new_key())
    assert await suggested(store, me, [active]) == ["u7"]
    await store.users.update(active, {"protected": False}, new_key())
    await store.blocks.block(active, me, new_key())
    assert await suggested(store, me, [active]) == ["u7"]


async def test_the_log_names_authors_on_a_quiet_site(store: Store, people: People) -> None:
    me, one, other, protected = await people.users(4)
    await store.users.update(protected, {"protected": True}, new_key())
    for uid in (one, protected, other, me):
        await people.status(uid)
    assert set(await suggested(store, me)) == {"u1", "u2"}
    assert await suggested(store, me, [one] * 20) == ["u1"]


async def test_silent_friends_of_friends_leave_room_for_active_users(store: Store, people: People) -> None:
    me, active, *silent = await people.users(250)
    await people.status(active)
    for at in range(0, len(silent), 30):
        await store.follows.follow(me, silent[at], new_key())
        for other in silent[at + 1 : at + 30]:
            await store.follows.follow(silent[at], other, new_key())
    assert await suggested(store, me, [active]) == ["u1"]
