"""People of another site: created and changed by one line, related to each other, suspended, and never lost."""

import json
import re
from typing import Any

import pytest

from tests.stream_server.web.api.test_ingest import ADA, codes, ingest, post
from tests.stream_server.web.world import PASSWORD, World

IDS = re.compile(r'"(?:id|posted|signup|login|name|foreign_id|uid)":"[^"]*"')


def user(foreign_id: str = "u1", **members: Any) -> dict[str, Any]:
    return {"op": "user", "user": {"foreign_id": foreign_id, **members}}


def pair(op: str, source: str, target: str, **more: str) -> dict[str, Any]:
    return {"op": op, "source": source, "target": target, **more}


def entries(world: World, **names: str) -> list[tuple[str, str, Any]]:
    """Return kind, audience and body of each entry, with names in the place of own ids."""
    found = []
    for _, entry in world.redis.xrange("{core}:log"):
        audience, body = entry[b"a"].decode(), entry[b"e"].decode()
        for name, uid in names.items():
            audience, body = audience.replace(uid, name), body.replace(uid, name)
        found.append((entry[b"k"].decode(), audience, json.loads(body)))
    return found


async def shown(world: World, uid: str) -> dict[str, Any]:
    found: dict[str, Any] = (await world.call("GET", f"/v1/users/{uid}", uid)).json
    return found


async def test_a_user_line_creates_changes_or_leaves_as_it_is(world: World) -> None:
    """Omitted members stay and null clears, as in `PATCH /v1/users/me`. A login never changes."""
    site = await world.user("site")
    whole: dict[str, Any] = {"login": "ada", "name": "Ada", "bio": "counts", "lang": "en", "protected": True}
    lines = [
        user(**whole),
        user(**whole),
        user(),
        user(name="Ada L.", bio=None, url="https://ada.example/"),
        user(name=None, login="ADA"),
        user(protected=False, login="other"),
        user(protected=False),
    ]
    answers = await ingest(world, site, *lines)
    outcomes = ["created", "unchanged", "unchanged", "updated", "unchanged", "updated", "unchanged"]
    assert [answer["outcome"] for answer in answers] == outcomes
    assert len({answer["id"] for answer in answers}) == 1
    (left_out,) = answers[5].pop("left_out")
    assert (left_out["code"], left_out["param"]) == ("invalid_parameter", "user.login")
    assert "`ada`" in left_out["message"]
    assert [answer for answer in answers if "left_out" in answer] == []
    assert world.kinds() == ["protect", "user_update", "unprotect"]
    assert answers[3]["cursor"] == answers[4]["cursor"] < answers[5]["cursor"] == answers[6]["cursor"]
    found = await shown(world, answers[0]["id"])
    expected = {"login": "ada", "name": "Ada L.", "bio": None, "lang": "en", "protected": False}
    assert {name: found[name] for name in expected} == expected
    assert (found["url"], found["foreign_id"]) == ("https://ada.example/", "u1")


async def test_a_user_line_with_an_id_counts_once(world: World) -> None:
    """A line that is sent again after a later change does not undo that."""
    site = await world.user("site")
    first, second = {**user(name="A", login="a"), "id": "c1"}, {**user(name="B"), "id": "c2"}
    answers = await ingest(world, site, first, second)
    assert [answer["outcome"] for answer in answers] == ["created", "updated"]
    assert await ingest(world, site, first, second) == answers
    assert ((await shown(world, answers[0]["id"]))["name"], world.kinds()) == ("B", ["user_update"])


CHANGES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "follow": ("PUT", "/v1/users/me/following/{}", {}),
    "unfollow": ("DELETE", "/v1/users/me/following/{}", {}),
    "block": ("PUT", "/v1/users/me/blocks/{}", {}),
    "unblock": ("DELETE", "/v1/users/me/blocks/{}", {}),
    "mute": ("PUT", "/v1/users/me/mutes/{}", {}),
    "unmute": ("DELETE", "/v1/users/me/mutes/{}", {}),
    "suspend": ("PUT", "/v1/admin/suspensions/{}", {"scope": "admin"}),
    "reinstate": ("DELETE", "/v1/admin/suspensions/{}", {"scope": "admin"}),
}
HISTORY = (
    "follow", "back", "user", "mute", "mute", "block", "block", "unblock", "unmute", "suspend", "suspend", "reinstate",
    "follow", "unfollow",
)  # fmt: skip
"""Changes by the one user to the other. ``back`` is a follow by the other, ``user`` a change of the first's profile."""

PROFILE = {"name": "Ann", "bio": "tea", "protected": True}


async def test_each_change_is_that_of_the_api(world: World) -> None:
    """The API makes a history with two users, and an ingest makes it with two others. The log has the same twice."""
    site = await world.user("site")
    made = await ingest(world, site, *(user(name) for name in ("a", "b", "x", "y")))
    a, b, x, y = (answer["id"] for answer in made)
    for change in HISTORY:
        source, target = (b, a) if change == "back" else (a, b)
        method, path, more = CHANGES.get({"back": "follow"}.get(change, change), ("PATCH", "/v1/users/me", {}))
        caller = site if "scope" in more else source
        body = {"json": PROFILE} if change == "user" else {}
        answer = await world.call(method, path.format(target), caller, **more, **body)
        assert answer.status < 300, (change, answer)
    by_api = entries(world, A=a, B=b)
    lines = {
        "back": pair("follow", "y", "x"),
        "user": user("x", **PROFILE),
        "suspend": {"op": "suspend", "user": "y"},
        "reinstate": {"op": "reinstate", "user": "y"},
    }
    answers = await ingest(world, site, *(lines.get(change, pair(change, "x", "y")) for change in HISTORY))
    assert [answer for answer in answers if "error" in answer] == []
    by_line = entries(world, A=x, B=y)[len(by_api) :]
    assert [without_names(entry) for entry in by_line] == [without_names(entry) for entry in by_api]
    assert {"user_update", "protect", "block", "mute", "unblock", "unmute", "suspend"} < {kind for kind, *_ in by_api}
    for key in ("following", "followers", "blocks", "blockers", "mutes"):
        for one, other in ((a, x), (b, y)):
            assert world.redis.zcard(f"{{core}}:{key}:{one}") == world.redis.zcard(f"{{core}}:{key}:{other}")
    deeds = (await world.call("GET", "/v1/admin/audit", site, scope="admin")).json["deeds"]
    found = [(deed["deed"], deed["by"], deed["on"]) for deed in deeds if deed["deed"] != "ingest"]
    assert found == [(deed, site, uid) for uid in (y, b) for deed in ("reinstate", "suspend")]


def without_names(entry: tuple[str, str, Any]) -> tuple[str, str, Any]:
    kind, audience, body = entry
    return kind, audience, json.loads(IDS.sub('"x":"x"', json.dumps(body, separators=(",", ":"))))


async def test_what_a_block_ends_leaves_the_timelines(world: World) -> None:
    site = await world.user("site")
    made = await ingest(
        world, site, user("a"), user("b"), pair("follow", "a", "b"), pair("follow", "b", "a"),
        post(foreign_id="p1", author="a"), post(foreign_id="p2", author="b"), pair("block", "a", "b"),
    )  # fmt: skip
    for answer, own in zip(made[:2], ("p1", "p2"), strict=True):
        home = (await world.call("GET", "/v1/timelines/home", answer["id"])).json["statuses"]
        assert [status["foreign_id"] for status in home] == [own]


async def test_lines_about_pairs_name_what_is_wrong_and_are_answered_as_then(world: World) -> None:
    """Two users of a site may block each other, whoever is suspended there, and each block ends by itself."""
    site = await world.user("site")
    world.redis.hset("{core}:subjects", "me", site)
    await ingest(world, site, user("a"), user("b"))
    wrong = [
        (pair("block", "a", "a"), "invalid_parameter", "target"),
        (pair("mute", "a", "z"), "not_found", "target"),
        (pair("unblock", "z", "a"), "not_found", "source"),
        ({"op": "suspend", "user": "z"}, "not_found", "user"),
        ({"op": "suspend", "user": "me"}, "invalid_parameter", "user"),
        ({"op": "suspend"}, "missing_parameter", "user"),
        (pair("block", "a", "b", why="x"), "unknown_parameter", "why"),
    ]  # fmt: skip
    answers = await ingest(world, site, *(line for line, *_ in wrong))
    assert codes(answers) == [(n, code, param) for n, (_, code, param) in enumerate(wrong, 1)]
    assert world.kinds() == []
    lines = [
        {"op": "suspend", "user": "b", "id": "s1"}, pair("block", "a", "b", id="k1"), pair("block", "b", "a"),
        pair("mute", "b", "a"), pair("unblock", "a", "b", id="k2"), {"op": "reinstate", "user": "b", "id": "s2"},
    ]  # fmt: skip
    first = await ingest(world, site, *lines)
    kinds = ["suspend", "block", "block", "mute", "unblock", "reinstate"]
    assert world.kinds() == kinds
    assert await ingest(world, site, *lines) == first
    assert world.kinds() == kinds


@pytest.mark.parametrize(("path", "op"), [("blocks", "block"), ("mutes", "mute")])
async def test_users_end_their_own_block_or_mute_while_the_other_blocks_them(world: World, path: str, op: str) -> None:
    """To a user who began neither, the one who blocks looks like nobody. So it is after the end, too."""
    site = await world.user("site")
    made = await ingest(world, site, user("a"), user("b"), user("c"), pair(op, "a", "b"), pair("block", "b", "a"))
    a, b, c = (answer["id"] for answer in made[:3])
    await ingest(world, site, pair(op, "a", "c"), {"op": "suspend", "user": "c"})
    for other in (b, c):
        assert (await world.call("DELETE", f"/v1/users/me/{path}/{other}", a)).status == 200
        assert (await world.call("DELETE", f"/v1/users/me/{path}/{other}", a)).error == (404, "not_found", "id")
        assert (await world.call("PUT", f"/v1/users/me/{path}/{other}", a)).error == (404, "not_found", "id")
    assert world.redis.zrange(f"{{core}}:{path}:{a}", 0, -1) == []
    assert world.redis.zrange(f"{{core}}:blocks:{b}", 0, -1) == [a.encode()]
    assert world.redis.zrange(f"{{core}}:blockers:{b}", 0, -1) == []
    assert world.kinds().count(f"un{op}") == 2


async def test_a_suspension_holds_at_once_where_it_was_ingested(world: World) -> None:
    site = await world.user("site")
    (made,) = await ingest(world, site, user())
    assert (await world.call("GET", "/v1/users/me", made["id"])).status == 200
    await ingest(world, site, {"op": "suspend", "user": "u1"})
    assert (await world.call("GET", "/v1/users/me", made["id"])).error == (403, "suspended", None)
    changed, refused = await ingest(world, site, user(bio="tea"), post())
    assert (changed["outcome"], refused["error"]["param"]) == ("updated", "status.author")
    await ingest(world, site, {"op": "reinstate", "user": "u1"})
    assert (await world.call("GET", "/v1/users/me", made["id"])).json["bio"] == "tea"


INVALID = {
    "login": "ada lovelace",
    "name": "\u202eada",
    "bio": "\0",
    "url": "ada.example",
    "place": "",
    "lang": "english!",
}


async def test_an_invalid_member_costs_nobody_the_posts(world: World) -> None:
    """The user is made without what is invalid, and the answer names it. Valid members count."""
    site = await world.user("site")
    made, posted, later = await ingest(world, site, user(**INVALID), post(), user(**{**INVALID, "bio": "tea"}))
    faults = {fault["param"]: fault["code"] for fault in made["left_out"]}
    assert faults == {f"user.{name}": "invalid_parameter" for name in INVALID}
    assert (made["outcome"], later["outcome"], "id" in posted) == ("created", "updated", True)
    found = await shown(world, made["id"])
    assert (found["login"], found["name"], found["bio"]) == (f"u{made['id']}", "u1", "tea")


@pytest.mark.parametrize("value", [5, ["a"], {"a": 1}, True, "x" * 3000])
async def test_each_optional_member_of_any_type_is_left_out(world: World, value: Any) -> None:
    site = await world.user("site")
    (made,) = await ingest(world, site, user(**dict.fromkeys(INVALID, value)))
    assert {fault["param"] for fault in made["left_out"]} == {f"user.{name}" for name in INVALID}
    assert made["outcome"] == "created"


async def test_a_taken_login_is_left_out(world: World) -> None:
    site = await world.user("site")
    made, *_ = await ingest(world, site, user(login="SITE"), post())
    assert [(fault["code"], fault["param"]) for fault in made["left_out"]] == [("login_taken", "user.login")]
    found = await shown(world, made["id"])
    assert (found["login"], found["name"]) == (f"u{made['id']}", "SITE")


async def test_what_a_user_line_cannot_do_without_is_refused(world: World) -> None:
    """Nobody is made public by a mistake, and no member is ignored for its name."""
    site = await world.user("site")
    wrong: list[tuple[Any, str, str]] = [
        (user(protected="yes", bio="\0"), "invalid_parameter", "user.protected"),
        (user(protected=None), "invalid_parameter", "user.protected"),
        (user(email="a@b.c", lang="?"), "unknown_parameter", "user.email"),
        ({"op": "user", "user": {"login": "?"}}, "missing_parameter", "user.foreign_id"),
        ({"op": "user", "user": "u1"}, "invalid_parameter", "user"),
        (b'{"op":"user","user":{"foreign_id":"a","bio":5},"user":5}', "invalid_parameter", "user"),
        (b'{"op":"user","user":{"foreign_id":"a","bio":5}', "malformed_body", ""),
    ]  # fmt: skip
    answers = await ingest(world, site, *(line for line, *_ in wrong))
    assert [(a["error"]["code"], a["error"].get("param", "")) for a in answers] == [tuple(row[1:]) for row in wrong]
    assert world.redis.exists("{core}:subjects") == 0


async def test_a_post_does_without_what_only_describes_it(world: World) -> None:
    """What decides which post it is, such as its text, time and parent, is never left out."""
    site = await world.user("site")
    describing: dict[str, Any] = {
        "location": {"lon": 181, "lat": 0}, "place": {"name": "a", "mayor": "b"}, "lang": "en_GB",
        "media": [{"url": "ftp://a", "type": "image"}], "meta": {"a": "x" * 5000},
    }  # fmt: skip
    _, posted = await ingest(world, site, ADA, post(**describing))
    params = ["status.location.lon", "status.place.mayor", "status.lang", "status.media[0].url", "status.meta"]
    assert [fault["param"] for fault in posted["left_out"]] == params
    status = (await world.call("GET", f"/v1/statuses/{posted['id']}", site)).json
    assert (status["message"], status["location"], status["place"], status["media"]) == ("a", None, None, [])


async def test_half_an_emoji_costs_nothing(world: World) -> None:
    """Sites that cut a text in the middle of an emoji send half of it. Whole ones and backslashes stay."""
    site = await world.user("site")
    cut = rb"\ud83c\udf75 tea \\ud83c \ud83c"
    lines = [
        b'{"op":"user","user":{"foreign_id":"u1","bio":"%b","place":"\\udf75","lang":"?"}}' % cut,
        b'{"op":"post","status":{"foreign_id":"p1","author":"u1","message":"%b"}}' % cut,
    ]
    made, posted = await ingest(world, site, *lines)
    found, status = await shown(world, made["id"]), await world.call("GET", f"/v1/statuses/{posted['id']}", site)
    assert (found["bio"], found["place"]) == ("\U0001f375 tea \\ud83c \ufffd", "\ufffd")
    assert status.json["message"] == found["bio"]
    assert [fault["param"] for fault in made["left_out"]] == ["user.lang"]


async def test_lines_of_windows_and_old_macs_are_taken(world: World) -> None:
    site = await world.user("site")
    body = b'\xef\xbb\xbf{"op":"user","user":{"foreign_id":"u1","bio":"a\\r\\nb\\u000d\\tc"}}\r\n\xef\xbb\xbf\r'
    (made,) = await ingest(world, site, body)
    assert (await shown(world, made["id"]))["bio"] == "a\nb\n\tc"


async def test_a_site_deletes_accounts_and_may_begin_them_anew(world: World) -> None:
    site = await world.user("site")
    world.redis.hset("{core}:subjects", "me", site)
    made = await ingest(world, site, user("a", login="ada", bio="secret"), user("b"), post(foreign_id="p", author="a"))
    gone = {"op": "delete_user", "user": "a"}
    wrong = [
        ({"op": "delete_user", "user": "z"}, "not_found", "user"),
        ({"op": "delete_user", "user": "me"}, "invalid_parameter", "user"),
        ({"op": "delete_user"}, "missing_parameter", "user"),
    ]
    answers = await ingest(world, site, *(line for line, *_ in wrong))
    assert codes(answers) == [(n, code, param) for n, (_, code, param) in enumerate(wrong, 1)]
    first, again, by_name = await ingest(world, site, gone, gone, {**gone, "id": "c1"})
    assert (first["id"], {**again, "line": 1}) == (made[0]["id"], first)
    assert by_name["error"]["code"] == "not_found"
    assert world.kinds().count("user_delete") == 1
    (entry,) = [body for kind, _, body in entries(world, me=first["id"]) if kind == "user_delete"]
    assert entry["wire"] == {"user": {"id": "me", "foreign_id": "a", "deleted": True}}
    late = await ingest(world, site, pair("follow", "b", "a"), post(foreign_id="q", author="a"))
    assert codes(late) == [(1, "not_found", "target"), (2, "not_found", "status.author")]
    (new,) = await ingest(world, site, user("a", login="ada"))
    assert (new["outcome"], new["left_out"][0]["code"]) == ("created", "login_taken")
    assert new["id"] != first["id"]
    second = await ingest(world, site, gone, {"op": "delete_user", "user": "b", "id": "c2"})
    assert [answer["id"] for answer in second] == [new["id"], made[1]["id"]]
    assert (await ingest(world, site, {"op": "delete_user", "user": "b", "id": "c2"}))[0]["id"] == made[1]["id"]
    assert world.kinds().count("user_delete") == 3


async def test_a_deleted_user_whom_only_the_sites_tokens_named_is_unknown_at_once(
    world: World, subtests: pytest.Subtests
) -> None:
    """Nothing of the user has this name, so the sweep forgets it, which has not run yet."""
    site, zoe, bob = [await world.user(login) for login in ("site", "zoe", "bob")]
    world.redis.hset("{core}:subjects", mapping={"z": zoe, "b": bob})
    assert (await world.call("DELETE", "/v1/users/me", zoe, json={"password": PASSWORD})).status == 204
    for line in (
        pair("follow", "b", "z"), pair("block", "z", "b"), pair("mute", "b", "z"), pair("unmute", "z", "b"),
        {"op": "suspend", "user": "z"}, {"op": "reinstate", "user": "z"}, {"op": "delete_user", "user": "z"},
        post(foreign_id="p", author="z"),
    ):  # fmt: skip
        with subtests.test(line=line):
            (answer,) = await ingest(world, site, line)
            assert answer["error"]["code"] == "not_found"
    (new,) = await ingest(world, site, user("z", login="zoe"))
    assert new["outcome"] == "created"
    assert new["id"] != zoe
