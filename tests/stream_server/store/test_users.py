"""Users: unique, counted, and never half made."""

import asyncio
import json

import pytest
import redis

from stream_server.errors import Conflict, NotFound
from stream_server.store.request import Request
from stream_server.store.store import Store
from tests.stream_server.store.people import PASSWORD_HASH, People, footprint


async def test_sign_up_gives_the_user_with_email(store: Store) -> None:
    """A new user has an id, counters at 0 and an e-mail that only the user sees."""
    made = await store.users.create("Ann_1", 'An"n é', "Ann@X.org", PASSWORD_HASH, Request.fresh())
    user = json.loads(made)
    assert user | {"id": "", "signup": ""} == {
        "id": "", "login": "Ann_1", "name": 'An"n é', "bio": None, "url": None, "place": None, "lang": None,
        "followers": 0, "following": 0, "posts": 0, "signup": "", "protected": False, "email": "Ann@X.org",
    }  # fmt: skip
    assert await store.users.me(user["id"]) == made
    public = json.loads(await store.users.get(user["id"], user["id"]))
    assert "email" not in public
    assert public == {name: value for name, value in user.items() if name != "email"}


async def test_lookups_ignore_case(store: Store, people: People) -> None:
    """Login and e-mail are found whatever the case of their letters."""
    uid = await people.user("Ann")
    assert json.loads(await store.users.by_login(uid, "aNN"))["id"] == uid
    assert await store.users.credentials("ANN") == (uid, PASSWORD_HASH, False)
    assert await store.users.credentials("ann@EXAMPLE.org") == (uid, PASSWORD_HASH, False)
    assert await store.users.credentials("bob") is None
    assert await store.users.resolve(["ANN", "bob", "ann"]) == {"ann": uid}


async def test_available(store: Store, people: People) -> None:
    """Each that is asked for is told on its own."""
    await people.user("Ann")
    assert await store.users.available("ann", "free@example.org") == {"login": False, "email": True}
    assert await store.users.available(email="ANN@example.org") == {"email": False}
    assert await store.users.available() == {}


async def test_unknown_users_are_not_found(store: Store) -> None:
    """Looking up who is not there is told as such."""
    for asked in (store.users.get("1", "2"), store.users.me("1"), store.users.by_login("1", "nobody")):
        with pytest.raises(NotFound):
            await asked


async def test_many_gives_those_that_exist_in_order(store: Store, people: People) -> None:
    """Several users come in one call, the unknown left out."""
    first, second = await people.users(2)
    found = await store.users.many(first, [second, "1", first])
    assert [json.loads(user)["id"] for user in found] == [second, first]
    assert await store.users.many(first, []) == []


async def test_two_hundred_race_for_one_login(store: Store, raw: "redis.Redis") -> None:
    """Exactly one wins, and the others leave no key behind."""

    async def sign_up(i: int) -> bytes:
        login = "Racer" if i % 2 else "rACER"
        return await store.users.create(login, "R", f"r{i}@example.org", PASSWORD_HASH, Request.fresh())

    results = await asyncio.gather(*(sign_up(i) for i in range(200)), return_exceptions=True)
    won = [json.loads(result)["id"] for result in results if isinstance(result, bytes)]
    lost = [result for result in results if isinstance(result, Conflict)]
    assert len(won) == 1
    assert len(lost) == 199
    assert {(error.error_code, error.param) for error in lost} == {("login_taken", "login")}
    assert raw.hgetall("{core}:logins") == {b"racer": won[0].encode()}
    assert raw.hlen("{core}:emails") == 1
    users, requests = raw.keys("{core}:user:*"), raw.keys("{core}:request:*")
    assert users == [f"{{core}}:user:{won[0]}".encode()]
    assert len(requests) == 1


async def test_taken_email_leaves_nothing(store: Store, people: People, raw: "redis.Redis") -> None:
    """An e-mail that is taken refuses the whole sign-up, the free login included."""
    await people.user("Ann")
    before = footprint(raw)
    with pytest.raises(Conflict) as refusal:
        await store.users.create("Bob", "Bob", "ANN@example.org", PASSWORD_HASH, Request.fresh())
    assert (refusal.value.error_code, refusal.value.param) == ("email_taken", "email")
    assert footprint(raw) == before
    assert await store.users.available("bob") == {"login": True}


async def test_a_batch_makes_the_missing_and_gives_the_rest(store: Store, people: People) -> None:
    """More than one chunk of users is made; those that were there, also by the batch itself, give their ids."""
    ann = await people.user("Ann")
    names = [("ANN", "x"), *((f"b{i}", f"B {i}") for i in range(450)), ("B7", "again")]
    request = Request.fresh()
    made = await store.users.create_many(names, request)
    assert [one.login for one in made] == [login for login, _ in names]
    assert (made[0].id, made[0].created) == (ann, False)
    assert all(one.created for one in made[1:-1])
    assert (made[-1].id, made[-1].created) == (made[8].id, False)
    assert len({one.id for one in made}) == 451
    assert await store.users.create_many(names, request) == made
    assert await store.users.credentials("b7") is None
    assert (await people.me(made[8].id))["email"] is None
