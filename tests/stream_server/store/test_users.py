"""Users: unique, counted, and never half made."""

import asyncio
import json
from typing import Any

import pytest
import redis

from stream_server.errors import Conflict, Forbidden, NotFound
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.store import Store
from tests.stream_server.store.people import PASSWORD_HASH, People, footprint
from tests.stream_server.store.scenes import told


async def test_sign_up_gives_the_user_with_email(store: Store) -> None:
    """A new user has an id, counters at 0 and an e-mail that only the user sees."""
    made = await store.users.create("Ann_1", 'An"n é', "Ann@X.org", PASSWORD_HASH, IdempotencyKey.generate())
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
    """Login and e-mail are found whatever the case of their letters."""
    uid = await people.user("Ann")
    assert json.loads(await store.users.get_by_login(uid, "aNN"))["id"] == uid
    assert await store.users.find_credentials("ANN") == (uid, PASSWORD_HASH, False)
    assert await store.users.find_credentials("ann@EXAMPLE.org") == (uid, PASSWORD_HASH, False)
    assert await store.users.find_credentials("bob") is None
    assert await store.users.resolve_logins(["ANN", "bob", "ann"]) == {"ann": uid}


async def test_available(store: Store, people: People) -> None:
    """Each that is asked for is told on its own."""
    await people.user("Ann")
    assert await store.users.check_available("ann", "free@example.org") == {"login": False, "email": True}
    assert await store.users.check_available(email="ANN@example.org") == {"email": False}
    assert await store.users.check_available() == {}


async def test_unknown_users_are_not_found(store: Store) -> None:
    """Looking up who is not there is told as such."""
    for asked in (store.users.get("1", "2"), store.users.get_own("1"), store.users.get_by_login("1", "nobody")):
        with pytest.raises(NotFound):
            await asked


async def test_many_gives_those_that_exist_in_order(store: Store, people: People) -> None:
    """Several users come in one call, the unknown left out."""
    first, second = await people.users(2)
    found = await store.users.get_many(first, [second, "1", first])
    assert [json.loads(user)["id"] for user in found] == [second, first]
    assert await store.users.get_many(first, []) == []


@pytest.mark.parametrize("contested", ["login", "email"])
async def test_two_hundred_race_for_one_name(store: Store, raw: "redis.Redis", contested: str) -> None:
    """For one login, or one e-mail, exactly one wins; the others leave no key behind, nor any part of one."""

    async def sign_up(i: int) -> bytes:
        login, email = f"racer{i}", f"r{i}@example.org"
        if contested == "login":
            login = "Racer" if i % 2 else "rACER"
        else:
            email = "Racer@Example.org" if i % 2 else "rACER@example.ORG"
        return await store.users.create(login, "R", email, PASSWORD_HASH, IdempotencyKey.generate())

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


async def test_taken_email_leaves_nothing(store: Store, people: People, raw: "redis.Redis") -> None:
    """An e-mail that is taken refuses the whole sign-up, the free login included."""
    await people.user("Ann")
    before = footprint(raw)
    with pytest.raises(Conflict) as refusal:
        await store.users.create("Bob", "Bob", "ANN@example.org", PASSWORD_HASH, IdempotencyKey.generate())
    assert (refusal.value.error_code, refusal.value.param) == ("email_taken", "email")
    assert footprint(raw) == before
    assert await store.users.check_available("bob") == {"login": True}


async def test_a_batch_makes_the_missing_and_gives_the_rest(store: Store, people: People) -> None:
    """More than one chunk of users is made; those that were there, also by the batch itself, give their ids."""
    ann = await people.user("Ann")
    names = [("ANN", "x"), *((f"b{i}", f"B {i}") for i in range(450)), ("B7", "again")]
    request = IdempotencyKey.generate()
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
"""Words that would tear the card apart if a script took it apart by anything that may stand in a string."""


async def test_users_change_what_they_say(store: Store, people: People, raw: "redis.Redis") -> None:
    """What is given changes, the rest stays; event, answer and look-up are the same bytes; null takes away."""
    ann = await people.user("Ann")
    before = await people.me(ann)
    changes = {"name": "Ann B", "bio": "hi", "url": "https://x.org", "place": "here", "lang": "en"}
    answer = await store.users.update(ann, changes, IdempotencyKey.generate())
    assert json.loads(answer) == before | changes
    assert answer == await store.users.get_own(ann)
    (entry,) = await store.log.read(LOG_START, 10)
    assert (entry.kind, entry.audience) == ("user_update", "public")
    assert entry.body == b'{"wire":{"user":%b}}' % await store.users.get(ann, ann)
    assert raw.hmget(f"{{core}}:user:{ann}", *changes) == [value.encode() for value in changes.values()]
    await store.users.update(ann, {"bio": None, "url": None, "place": None, "lang": None}, IdempotencyKey.generate())
    assert await people.me(ann) == before | {"name": "Ann B"}
    assert raw.hmget(f"{{core}}:user:{ann}", "bio", "url", "place", "lang") == [None] * 4


async def test_whatever_is_said_comes_back(store: Store, people: People) -> None:
    """No words, one at a time or all at once, run into another member."""
    ann = await people.user("Ann")
    said: dict[str, Any] = {}
    for words in NASTY:
        for member in ("name", "bio", "url", "place", "lang"):
            said[member] = words
            told_back = json.loads(await store.users.update(ann, {member: words}, IdempotencyKey.generate()))
            assert {name: told_back[name] for name in said} == said
            assert told_back["protected"] is False


async def test_what_is_so_already_is_no_change(store: Store, people: People, raw: "redis.Redis") -> None:
    """Nothing given, or the same again, tells nobody."""
    ann = await people.user("Ann")
    await store.users.update(ann, {"bio": "hi", "protected": True}, IdempotencyKey.generate())
    length = raw.xlen("{core}:log")
    so_already: list[dict[str, Any]] = [{}, {"bio": "hi"}, {"protected": True}, {"bio": "hi", "name": "Ann"}]
    for changes in so_already:
        assert await store.users.update(ann, changes, IdempotencyKey.generate()) == await store.users.get_own(ann)
    assert raw.xlen("{core}:log") == length


async def test_protection_is_an_event_of_its_own(store: Store, people: People, raw: "redis.Redis") -> None:
    """It comes before the rest of the change; the set of the protected, the hash and the card agree."""
    ann = await people.user("Ann")
    cases: list[tuple[bool, dict[str, Any], list[str]]] = [
        (True, {"protected": True}, ["protect"]),
        (True, {"protected": True, "bio": "x"}, ["user_update"]),
        (False, {"protected": False, "bio": "y"}, ["unprotect", "user_update"]),
        (True, {"protected": True, "bio": "z"}, ["protect", "user_update"]),
    ]
    for on, changes, kinds in cases:
        head = await store.log.head()
        answer = json.loads(await store.users.update(ann, changes, IdempotencyKey.generate()))
        entries = await store.log.read(head, 10)
        assert [(entry.kind, entry.audience) for entry in entries] == [(kind, "public") for kind in kinds]
        assert {entry.body for entry in entries} == {b'{"wire":{"user":%b}}' % await store.users.get(ann, ann)}
        assert answer["protected"] == on
        assert raw.smembers("{core}:protected") == ({ann.encode()} if on else set())
        assert raw.hget(f"{{core}}:user:{ann}", "protected") == (b"1" if on else b"0")


async def test_changes_at_once_lose_nothing(store: Store, people: People) -> None:
    """Each member has its last writer's words, whoever else wrote another member meanwhile; the log tells the same."""
    ann = await people.user("Ann")
    members = ("name", "bio", "url", "place", "lang")
    await asyncio.gather(
        *(
            store.users.update(ann, {member: f"{member}{i}"}, IdempotencyKey.generate())
            for i in range(20)
            for member in members
        )
    )
    me = await people.me(ann)
    assert all(me[member].startswith(member) for member in members)
    last = (await told(store, "user_update"))[-1].wire["user"]
    assert last == {name: value for name, value in me.items() if name != "email"}


async def test_only_who_is_there_and_stands_well_changes(store: Store, people: People, raw: "redis.Redis") -> None:
    """The unknown are not found, the suspended are told so; nothing changes."""
    ann, bob = await people.users(2)
    await store.suspensions.suspend(bob, ann, IdempotencyKey.generate())
    before = footprint(raw)
    with pytest.raises(NotFound):
        await store.users.update("1", {"bio": "x"}, IdempotencyKey.generate())
    with pytest.raises(Forbidden):
        await store.users.update(ann, {"bio": "x"}, IdempotencyKey.generate())
    assert footprint(raw) == before


async def test_credentials_tell_the_suspended(store: Store, people: People) -> None:
    """Whoever knows the password of a suspended user can be told why it is of no use."""
    ann, bob = await people.user("Ann"), await people.user("Bob")
    await store.suspensions.suspend(bob, ann, IdempotencyKey.generate())
    assert await store.users.find_credentials("ann") == (ann, PASSWORD_HASH, True)
    assert await store.users.find_credentials("bob") == (bob, PASSWORD_HASH, False)


async def test_protection_leaves_followers_and_hides_from_others(store: Store, people: People) -> None:
    """Turned on while followers exist: they go on reading, others see the card and no status; off shows all again."""
    ann, bob, carl = await people.users(3)
    await store.follows.follow(bob, ann, IdempotencyKey.generate())
    status = (await people.status(ann))["id"]
    await store.users.update(ann, {"protected": True}, IdempotencyKey.generate())
    assert json.loads(await store.statuses.get(bob, status))["id"] == status
    assert json.loads(await store.users.get(carl, ann))["protected"] is True
    with pytest.raises(NotFound):
        await store.statuses.get(carl, status)
    await store.users.update(ann, {"protected": False}, IdempotencyKey.generate())
    assert json.loads(await store.statuses.get(carl, status))["id"] == status


async def test_who_is_not_there_is_looked_up_as_long(
    store: Store, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One round trip for a user, for nobody, and for one without a password: the time tells none of them apart."""
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
    assert trips == [1] * 5
