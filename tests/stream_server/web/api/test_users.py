"""Sign-up, look-up and profiles over HTTP, and every invalid request."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from stream_server.web.http import app_keys
from tests.stream_server.web.world import PASSWORD, World

GOOD = {"login": "ann", "name": "Ann", "email": "ann@example.org", "password": PASSWORD}


async def test_a_new_user_is_found_on_every_route(world: World) -> None:
    made = await world.call("POST", "/v1/users", json={**GOOD, "login": "Ann"})
    user = made.json
    assert made.status == 201
    assert made.headers["Location"] == f"/v1/users/{user['id']}"
    assert (user["login"], user["email"], user["posts"]) == ("Ann", "ann@example.org", 0)
    public = {name: value for name, value in user.items() if name != "email"}
    bob = await world.user("bob")
    assert (await world.call("GET", f"/v1/users/{user['id']}", bob)).json == public
    assert (await world.call("GET", "/v1/users/by-login/aNN", bob)).json == public
    several = await world.call("GET", f"/v1/users?ids={user['id']},12345,{bob}", bob)
    assert [one["id"] for one in several.json["users"]] == [user["id"], bob]
    assert (await world.call("GET", "/v1/users/me", user["id"])).json == user


async def test_answers_are_json_and_not_cacheable(world: World) -> None:
    answer = await world.call("GET", "/v1/users/me", await world.user("ann"))
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_the_length_of_a_name_counts_code_points(world: World) -> None:
    name = "🎉" * 50
    made = await world.call("POST", "/v1/users", json={**GOOD, "name": name})
    assert made.json["name"] == name


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"login": ""}, "invalid_parameter", "login"),
    ({"login": "a" * 21}, "invalid_parameter", "login"),
    ({"login": "a b"}, "invalid_parameter", "login"),
    ({"login": "ann\n"}, "invalid_parameter", "login"),
    ({"login": "ännchen"}, "invalid_parameter", "login"),
    ({"login": "\u0430nn"}, "invalid_parameter", "login"),  # a Cyrillic a
    ({"login": "\uff41nn"}, "invalid_parameter", "login"),  # a full-width a
    ({"login": "\u212aate"}, "invalid_parameter", "login"),  # the Kelvin sign, whose lower case is a plain k
    ({"login": "ann\u200b"}, "invalid_parameter", "login"),  # a blank of no width
    ({"login": "\u0661"}, "invalid_parameter", "login"),  # an Arabic digit
    ({"login": 5}, "invalid_parameter", "login"),
    ({"login": None}, "invalid_parameter", "login"),
    ({"name": ""}, "invalid_parameter", "name"),
    ({"name": " \u3000"}, "invalid_parameter", "name"),
    ({"name": "n" * 51}, "invalid_parameter", "name"),
    ({"name": "a\nb"}, "invalid_parameter", "name"),
    ({"name": "a\x85b"}, "invalid_parameter", "name"),
    ({"name": "a\x00"}, "invalid_parameter", "name"),
    ({"name": "\x7fa"}, "invalid_parameter", "name"),
    ({"email": "ann"}, "invalid_parameter", "email"),
    ({"email": "a@b@c"}, "invalid_parameter", "email"),
    ({"email": "a b@c"}, "invalid_parameter", "email"),
    ({"email": "a@b\n"}, "invalid_parameter", "email"),
    ({"email": "a@" + "b" * 253}, "invalid_parameter", "email"),
    ({"password": "1234567"}, "invalid_parameter", "password"),
    ({"password": "p" * 257}, "invalid_parameter", "password"),
    ({"admin": True}, "unknown_parameter", "admin"),
]


async def test_an_invalid_sign_up_is_refused_by_name(world: World, subtests: pytest.Subtests) -> None:
    before = world.state()
    for change, code, param in BAD:
        with subtests.test(change=change):
            assert (await world.call("POST", "/v1/users", json={**GOOD, **change})).error == (400, code, param)
            assert world.state() == before


async def test_every_member_of_a_sign_up_is_required(world: World, subtests: pytest.Subtests) -> None:
    for member in sorted(GOOD):
        with subtests.test(member=member):
            body = {name: value for name, value in GOOD.items() if name != member}
            assert (await world.call("POST", "/v1/users", json=body)).error == (400, "missing_parameter", member)


async def test_login_and_email_are_unique_in_any_case(world: World) -> None:
    await world.call("POST", "/v1/users", json=GOOD)
    before = world.state()
    again = {**GOOD, "login": "ANN", "email": "other@example.org"}
    assert (await world.call("POST", "/v1/users", json=again)).error == (409, "login_taken", "login")
    again = {**GOOD, "login": "other", "email": "Ann@Example.ORG"}
    assert (await world.call("POST", "/v1/users", json=again)).error == (409, "email_taken", "email")
    assert world.state() == before


async def test_a_taken_login_costs_no_hash(world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.call("POST", "/v1/users", json=GOOD)
    monkeypatch.setattr(app[app_keys.PASSWORDS].thread, "_pending", 100)
    assert (await world.call("POST", "/v1/users", json=GOOD)).error == (409, "login_taken", "login")
    free = {**GOOD, "login": "bob", "email": "bob@example.org"}
    assert (await world.call("POST", "/v1/users", json=free)).error == (503, "unavailable", None)


async def test_one_of_many_racing_sign_ups_wins(world: World) -> None:
    bodies = [{**GOOD, "email": f"{i}@example.org"} for i in range(30)]
    answers = await asyncio.gather(*(world.call("POST", "/v1/users", json=body) for body in bodies))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 29


async def test_available_checks_login_and_email(world: World) -> None:
    await world.call("POST", "/v1/users", json=GOOD)
    answer = await world.call("GET", "/v1/users/available?login=ANN&email=free@example.org")
    assert answer.json == {"login": False, "email": True}
    assert (await world.call("GET", "/v1/users/available?login=bob")).json == {"login": True}
    assert (await world.call("GET", "/v1/users/available")).error == (400, "missing_parameter", "login")
    assert (await world.call("GET", "/v1/users/available?login=b!")).error == (400, "invalid_parameter", "login")
    assert (await world.call("GET", "/v1/users/available?email=b")).error == (400, "invalid_parameter", "email")


A_BAD_LOOK_UP_IS_REFUSED: list[Any] = [
    ("/v1/users/999", (404, "not_found", None)),
    ("/v1/users/ann", (400, "invalid_parameter", "id")),
    ("/v1/users/-1", (400, "invalid_parameter", "id")),
    ("/v1/users/%D9%A4", (400, "invalid_parameter", "id")),
    ("/v1/users/%FF", (400, "invalid_parameter", "id")),
    ("/v1/users/by-login/nobody", (404, "not_found", None)),
    ("/v1/users/by-login/%00%FF", (404, "not_found", None)),
    ("/v1/users", (400, "missing_parameter", "ids")),
    ("/v1/users?ids=", (400, "missing_parameter", "ids")),
    ("/v1/users?ids=1,,2", (400, "invalid_parameter", "ids")),
    ("/v1/users?ids=1,x", (400, "invalid_parameter", "ids")),
    ("/v1/users?ids=" + ",".join("1" * 201), (413, "too_many", "ids")),
    ("/v1/users?ids=1&ids=2", (400, "invalid_parameter", "ids")),
    ("/v1/users?ids=1&page=2", (400, "unknown_parameter", "page")),
    ("/v1/users/me?x=1", (400, "unknown_parameter", "x")),
    ("/v1/users?ids=%FF", (400, "malformed_body", None)),
]


async def test_invalid_look_ups_are_refused(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    for path, refusal in A_BAD_LOOK_UP_IS_REFUSED:
        with subtests.test(path=path):
            assert (await world.call("GET", path, ann)).error == refusal


async def test_two_hundred_ids_are_accepted(world: World) -> None:
    ann = await world.user("ann")
    answer = await world.call("GET", "/v1/users?ids=" + ",".join([ann] * 200), ann)
    assert len(answer.json["users"]) == 200


async def test_users_change_their_profile(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    said = {"name": "Ann B", "bio": "one\nline", "url": "https://example.org/?a=1", "place": "Köln", "lang": "de-AT"}
    answer = await world.call("PATCH", "/v1/users/me", ann, json={**said, "protected": True})
    assert answer.status == 200
    assert answer.json == (await world.call("GET", "/v1/users/me", ann)).json
    assert {name: answer.json[name] for name in said} == said
    assert (await world.call("GET", f"/v1/users/{ann}", bob)).json["protected"] is True
    answer = await world.call("PATCH", "/v1/users/me", ann, json={"bio": None, "lang": None})
    assert (answer.json["bio"], answer.json["lang"], answer.json["place"]) == (None, None, "Köln")
    assert world.kinds() == ["protect", "user_update", "user_update"]
    again = await world.call("PATCH", "/v1/users/me", ann, json={"bio": None, "protected": True})
    assert (again.status, again.json) == (200, answer.json)
    assert (await world.call("PATCH", "/v1/users/me", ann, json={})).json == answer.json
    assert world.kinds() == ["protect", "user_update", "user_update"]


async def test_an_idempotency_key_changes_a_profile_once(world: World) -> None:
    ann = await world.user("ann")
    key = {"Idempotency-Key": "k"}
    await world.call("PATCH", "/v1/users/me", ann, json={"bio": "old"}, headers=key)
    await world.call("PATCH", "/v1/users/me", ann, json={"bio": "new"})
    assert (await world.call("PATCH", "/v1/users/me", ann, json={"bio": "old"}, headers=key)).json["bio"] == "old"
    assert (await world.call("GET", "/v1/users/me", ann)).json["bio"] == "new"
    other = await world.call("PATCH", "/v1/users/me", ann, json={"bio": "other"}, headers=key)
    assert other.error == (409, "duplicate", "Idempotency-Key")


BAD_CHANGES: list[tuple[Any, str, str | None]] = [
    ({"name": None}, "invalid_parameter", "name"),
    ({"name": ""}, "invalid_parameter", "name"),
    ({"name": "a\tb"}, "invalid_parameter", "name"),
    ({"name": "n" * 51}, "invalid_parameter", "name"),
    ({"bio": ""}, "invalid_parameter", "bio"),
    ({"bio": "\n \n"}, "invalid_parameter", "bio"),
    ({"bio": "a\x1bb"}, "invalid_parameter", "bio"),
    ({"bio": "b" * 501}, "invalid_parameter", "bio"),
    ({"url": "javascript:alert(1)"}, "invalid_parameter", "url"),
    ({"url": "https://x y"}, "invalid_parameter", "url"),
    ({"place": "a\nb"}, "invalid_parameter", "place"),
    ({"place": "p" * 101}, "invalid_parameter", "place"),
    ({"lang": "d_"}, "invalid_parameter", "lang"),
    ({"protected": None}, "invalid_parameter", "protected"),
    ({"protected": "true"}, "invalid_parameter", "protected"),
    ({"protected": 1}, "invalid_parameter", "protected"),
    ({"login": "bob"}, "unknown_parameter", "login"),
    ({"email": "x@example.org"}, "unknown_parameter", "email"),
    ({"suspended": False}, "unknown_parameter", "suspended"),
    ([], "malformed_body", None),
]


async def test_an_invalid_change_of_a_profile_is_refused_by_name(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    before = world.state(), (await world.call("GET", "/v1/users/me", ann)).json
    for changes, code, param in BAD_CHANGES:
        with subtests.test(changes=changes):
            body = {"place": "here", **changes} if changes else changes
            assert (await world.call("PATCH", "/v1/users/me", ann, json=body)).error == (400, code, param)
            assert (world.state(), (await world.call("GET", "/v1/users/me", ann)).json) == before


INVISIBLE = (
    "a\u202eb", "a\u200bb", "a\u2066b", "a\ufeffb", "a\u00adb", "\u3164a", "a\u2800b", "a\u200db", "\u200ca",
    "a\U000e0041", "a\ue000", "\u0430\u200c\u0431", "\u0915\u200d", "\u0645\u200c", "\U0001f469\u200d",
    "\u200d\U0001f680", "\U0001f600\U000e0067\U000e0062\U000e0065\U000e007f",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065",
    "\u0915\u094d\u200d\u200d",
)  # fmt: skip
VISIBLE = (
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "\u0622\u0632\u0627\u062f\u200c\u0631\u0627\u0647",  # Persian, where the joiner only keeps two parts apart
    "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Sinhala: Sri
    "\u0d05\u0d35\u0d28\u0d4d\u200d",  # Malayalam: the joiner after the virama ends the word
    "\u0915\u094d\u200c\u0937",
    "\U0001f469\u200d\U0001f680",
    "\u2764\ufe0f\u200d\U0001f525 Ann",
    "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f Ann",
    "Zoë",
    "李 小龍",
    "a-b_c.d",
)


@pytest.mark.parametrize("name", INVISIBLE)
async def test_names_have_no_invisible_characters(world: World, name: str) -> None:
    new = {"login": "ann", "name": name, "email": "ann@example.org", "password": PASSWORD}
    assert (await world.call("POST", "/v1/users", json=new)).error == (400, "invalid_parameter", "name")


@pytest.mark.parametrize("name", VISIBLE)
async def test_names_of_all_scripts_and_emoji_are_accepted(world: World, name: str) -> None:
    new = {"login": "ann", "name": name, "email": "ann@example.org", "password": PASSWORD}
    assert (await world.call("POST", "/v1/users", json=new)).status == 201
