"""Users: unique names, profile changes, protection, and credentials."""

import asyncio
import json
from typing import Any

import pytest
import redis

from stream_server.errors import Conflict, NotFound
from stream_server.events.position import LOG_START
from stream_server.store.store import Store
from tests.stream_server.store.people import PASSWORD_HASH, People, footprint, new_key
from tests.stream_server.store.scenes import logged


async def test_sign_up_gives_the_user_with_a_private_email(store: Store) -> None:
    made = await store.users.create("Ann_1", 'An"n é', "Ann@X.org", PASSWORD_HASH, new_key())
    user = json.loads(made)
    assert user | {"id": "", "signup": ""} == {
        "id": "", "login": "Ann_1", "name": 'An"n é', "bio": None, "url": None, "place": None, "lang": None,
        "followers": 0, "following": 0, "posts": 0, "signup": "", "protected": False, "email": "Ann@X.org",
    }  # fmt: skip
    assert await store.users.get_own(user["id"]) == made
    public = json.loads(await store.users.get(user["id"], user["id"]))
    assert "email" not in public
    assert public == {name: value for name, value in user.items() if name != "email"}


async def test_lookups_ignore_case(store: Store, people: People) -> None:
    uid = await people.user("Ann")
    assert json.loads(await store.users.get_by_login(uid, "aNN"))["id"] == uid
    assert await store.users.find_credentials("ANN") == (uid, PASSWORD_HASH, False)
    assert await store.users.find_credentials("ann@EXAMPLE.org") == (uid, PASSWORD_HASH, False)
    assert await store.users.find_credentials("bob") is None
    assert await store.users.resolve_logins(["ANN", "bob", "ann"]) == {"ann": uid}


async def test_availability_of_login_and_email(store: Store, people: People) -> None:
    await people.user("Ann")
    assert await store.users.check_available("ann", "free@example.org") == {"login": False, "email": True}
    assert await store.users.check_available(email="ANN@example.org") == {"email": False}
    assert await store.users.check_available() == {}


async def test_unknown_users_are_not_found(store: Store) -> None:
    for asked in (store.users.get("1", "2"), store.users.get_own("1"), store.users.get_by_login("1", "nobody")):
        with pytest.raises(NotFound):
            await asked


async def test_get_many_keeps_the_order_and_omits_unknown_users(store: Store, people: People) -> None:
    first, second = await people.users(2)
    found = await store.users.get_many(first, [second, "1", first])
    assert [json.loads(user)["id"] for user in found] == [second, first]
    assert await store.users.get_many(first, []) == []


@pytest.mark.parametrize("contested", ["login", "email"])
async def test_two_hundred_race_for_one_name(store: Store, raw: "redis.Redis", contested: str) -> None:

    async def sign_up(i: int) -> bytes:
        login, email = f"racer{i}", f"r{i}@example.org"
        if contested == "login":
            login = "Racer" if i % 2 else "rACER"
        else:
            email = "Racer@Example.org" if i % 2 else "rACER@example.ORG"
        return await store.users.create(login, "R", email, PASSWORD_HASH, new_key())

    results = await asyncio.gather(*(sign_up(i) for i in range(200)), return_exceptions=True)
    (won,) = [json.loads(result) for result in results if isinstance(result, bytes)]
    lost = [result for result in results if isinstance(result, Conflict)]
    assert len(lost) == 199
    assert {(error.error_code, error.param) for error in lost} == {(f"{contested}_taken", contested)}
    found: list[Any] = raw.keys("*")
    kept = {key.decode() for key in found}
    (request,) = [key for key in kept if key.startswith("{core}:request:")]
    assert kept == {"{core}:meta", "{core}:logins", "{core}:emails", f"{{core}}:user:{won['id']}", request}
    assert raw.hgetall("{core}:logins") == {won["login"].lower().encode(): won["id"].encode()}
    assert raw.hgetall("{core}:emails") == {won["email"].lower().encode(): won["id"].encode()}
    assert raw.hmget("{core}:meta", "n") == [None]


async def test_a_taken_email_leaves_nothing_of_the_sign_up(store: Store, people: People, raw: "redis.Redis") -> None:
    await people.user("Ann")
    before = footprint(raw)
    with pytest.raises(Conflict) as refusal:
        await store.users.create("Bob", "Bob", "ANN@example.org", PASSWORD_HASH, new_key())
    assert (refusal.value.error_code, refusal.value.param) == ("email_taken", "email")
    assert footprint(raw) == before
    assert await store.users.check_available("bob") == {"login": True}


async def test_a_batch_creates_missing_users_and_finds_the_others(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    names = [("ANN", "x"), *((f"b{i}", f"B {i}") for i in range(450)), ("B7", "again")]
    request = new_key()
    made = await store.users.create_many(names, request)
    assert [one.login for one in made] == [login for login, _ in names]
    assert (made[0].id, made[0].is_new) == (ann, False)
    assert all(one.is_new for one in made[1:-1])
    assert (made[-1].id, made[-1].is_new) == (made[8].id, False)
    assert len({one.id for one in made}) == 451
    assert await store.users.create_many(names, request) == made
    assert await store.users.find_credentials("b7") is None
    assert (await people.me(made[8].id))["email"] is None


NASTY = ['","bio":"x', '\\","url":null,"place":"', '"protected":true', "\\", '\\"', "é\u2028👩‍👩‍👧", ',"lang":']
"""Texts that would break a profile if a script cut its JSON apart by characters that may be in a string."""


async def test_a_profile_update_changes_only_the_given_fields(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    before = await people.me(ann)
    changes = {"name": "Ann B", "bio": "hi", "url": "https://x.org", "place": "here", "lang": "en"}
    answer = await store.users.update(ann, changes, new_key())
    assert json.loads(answer) == before | changes
    assert answer == await store.users.get_own(ann)
    (entry,) = await store.log.read(LOG_START, 10)
    assert (entry.kind, entry.audience) == ("user_update", "public")
    assert entry.body == b'{"wire":{"user":%b}}' % await store.users.get(ann, ann)
    await store.users.update(ann, {"bio": None, "url": None, "place": None, "lang": None}, new_key())
    assert await people.me(ann) == before | {"name": "Ann B"}


async def test_profile_fields_with_any_characters_stay_separate(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    said: dict[str, Any] = {}
    for words in NASTY:
        for member in ("name", "bio", "url", "place", "lang"):
            said[member] = words
            answer = json.loads(await store.users.update(ann, {member: words}, new_key()))
            assert {name: answer[name] for name in said} == said
            assert answer["protected"] is False


async def test_an_unchanged_profile_is_not_logged(store: Store, people: People, raw: "redis.Redis") -> None:
    ann = await people.user("Ann")
    await store.users.update(ann, {"bio": "hi", "protected": True}, new_key())
    length = raw.xlen("{core}:log")
    so_already: list[dict[str, Any]] = [{}, {"bio": "hi"}, {"protected": True}, {"bio": "hi", "name": "Ann"}]
    for changes in so_already:
        assert await store.users.update(ann, changes, new_key()) == await store.users.get_own(ann)
    assert raw.xlen("{core}:log") == length


async def test_protection_has_a_separate_log_entry(store: Store, people: People, raw: "redis.Redis") -> None:
    ann = await people.user("Ann")
    cases: list[tuple[bool, dict[str, Any], list[str]]] = [
        (True, {"protected": True}, ["protect"]),
        (True, {"protected": True, "bio": "x"}, ["user_update"]),
        (False, {"protected": False, "bio": "y"}, ["unprotect", "user_update"]),
        (True, {"protected": True, "bio": "z"}, ["protect", "user_update"]),
    ]
    for on, changes, kinds in cases:
        head = await store.log.head()
        answer = json.loads(await store.users.update(ann, changes, new_key()))
        entries = await store.log.read(head, 10)
        assert [(entry.kind, entry.audience) for entry in entries] == [(kind, "public") for kind in kinds]
        assert {entry.body for entry in entries} == {b'{"wire":{"user":%b}}' % await store.users.get(ann, ann)}
        assert answer["protected"] == on
        assert raw.smembers("{core}:protected") == ({ann.encode()} if on else set())
        assert raw.hget(f"{{core}}:user:{ann}", "protected") == (b"1" if on else b"0")


async def test_concurrent_updates_lose_nothing(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    members = ("name", "bio", "url", "place", "lang")
    await asyncio.gather(
        *(store.users.update(ann, {member: f"{member}{i}"}, new_key()) for i in range(20) for member in members)
    )
    me = await people.me(ann)
    assert all(me[member].startswith(member) for member in members)
    last = (await logged(store, "user_update"))[-1].wire["user"]
    assert last == {name: value for name, value in me.items() if name != "email"}


async def test_credentials_show_a_suspension(store: Store, people: People) -> None:
    ann, bob = await people.user("Ann"), await people.user("Bob")
    await store.suspensions.suspend(bob, ann, new_key())
    assert await store.users.find_credentials("ann") == (ann, PASSWORD_HASH, True)
    assert await store.users.find_credentials("bob") == (bob, PASSWORD_HASH, False)


async def test_a_lookup_takes_as_many_round_trips_for_known_as_for_unknown_users(
    store: Store, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a lookup must not reveal which logins exist."""
    await people.user("Ann")
    await people.users(1)
    exchange, trips = store._redis.run_pipeline, []

    async def counted(commands: Any, timeout_seconds: float) -> Any:
        trips.append(len(commands))
        return await exchange(commands, timeout_seconds)

    monkeypatch.setattr(store._redis, "run_pipeline", counted)
    found = [
        await store.users.find_credentials(name) for name in ("ann", "ann@example.org", "nobody", "no@x.org", "u0")
    ]
    assert [one is not None for one in found] == [True, True, False, False, False]
    assert trips == [1, 1] * 5
