"""Users: unique names, profile changes, protection, and credentials."""

import asyncio
import json
from typing import Any

import pytest
import redis

from stream_server.errors import Conflict
from stream_server.store.store import Store
from tests.stream_server.store.people import PASSWORD_HASH, People, new_key
from tests.stream_server.store.scenes import logged


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
    rows = {f"{{core}}:{row}" for row in ("meta", "logins", "names", "emails")}
    assert kept == rows | {f"{{core}}:user:{won['id']}", request}
    assert raw.hgetall("{core}:logins") == {won["login"].lower().encode(): won["id"].encode()}
    assert raw.hgetall("{core}:emails") == {won["email"].lower().encode(): won["id"].encode()}
    assert raw.hmget("{core}:meta", "n") == [None]


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


async def test_profile_fields_with_any_characters_stay_separate(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    said: dict[str, Any] = {}
    for words in NASTY:
        for member in ("name", "bio", "url", "place", "lang"):
            said[member] = words
            answer = json.loads(await store.users.update(ann, {member: words}, new_key()))
            assert {name: answer[name] for name in said} == said
            assert answer["protected"] is False


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
