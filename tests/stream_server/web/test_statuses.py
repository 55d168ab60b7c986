"""Post, read and delete statuses over HTTP, and every invalid body."""

import json
from typing import Any

import pytest

from tests.stream_server import tokens
from tests.stream_server.web.world import World


async def test_a_post_is_on_the_log_and_can_be_read(world: World) -> None:
    """201 with the status and its path; the log has the same; one and several can be read."""
    ann = await world.user("ann")
    whole = {
        "message": "Hello @ann, #world\n\tagain 🎉", "location": {"lon": 13.4, "lat": 52.5},
        "place": {"name": "Berlin", "country": "DE", "box": [13.0, 52.3, 13.8, 52.7]}, "lang": "en-GB",
        "media": [{"url": "https://example.org/a.png", "type": "image"}], "meta": {"a": [1, {"b": None}]},
    }  # fmt: skip
    answer = await world.call("POST", "/v1/statuses", ann, json=whole)
    status = answer.json
    assert answer.status == 201
    assert answer.headers["Location"] == f"/v1/statuses/{status['id']}"
    assert {name: status[name] for name in whole} == whole
    assert status["entities"]["mentions"][0]["id"] == ann
    entry = world.redis.xrevrange("{core}:log", count=1)[0][1]
    assert json.loads(entry[b"e"])["wire"]["status"] == status
    assert (await world.call("GET", f"/v1/statuses/{status['id']}", ann)).json == status
    assert (await world.call("GET", f"/v1/statuses?ids=1,{status['id']}", ann)).json == {"statuses": [status]}
    assert (await world.call("GET", "/v1/statuses/1", ann)).error == (404, "not_found", None)


async def test_replies_reposts_and_quotes(world: World) -> None:
    """A reply names its parent; a repost may have no text and embeds its original; a quote may be a reply."""
    ann, bob = await world.user("ann"), await world.user("bob")
    first = await world.status(ann)
    body = {"message": "yes", "in_reply_to": first, "origin": first}
    quote = (await world.call("POST", "/v1/statuses", bob, json=body)).json
    assert (quote["in_reply_to"], quote["in_reply_to_uid"], quote["origin"]) == (first, ann, first)
    repost = (await world.call("POST", "/v1/statuses", bob, json={"origin": first})).json
    assert (repost["message"], repost["original"]["id"]) == ("", first)
    before = world.state()
    for member in ("in_reply_to", "origin"):
        body = {"message": "x", member: "404"}
        assert (await world.call("POST", "/v1/statuses", bob, json=body)).error == (404, "not_found", member)
    assert world.state() == before


async def test_only_the_author_deletes(world: World) -> None:
    """403 for another user, 404 for an unknown status, 204 for the author, then 404."""
    ann, bob = await world.user("ann"), await world.user("bob")
    status = await world.status(ann)
    before = world.state()
    refused = await world.call("DELETE", f"/v1/statuses/{status}", bob)
    assert refused.error == (403, "not_yours", None)
    assert "WWW-Authenticate" not in refused.headers
    assert (await world.call("DELETE", "/v1/statuses/1", ann)).error == (404, "not_found", None)
    assert (await world.call("DELETE", "/v1/statuses/me", ann)).error == (400, "invalid_parameter", "id")
    assert world.state() == before
    gone = await world.call("DELETE", f"/v1/statuses/{status}", ann)
    assert (gone.status, gone.body) == (204, b"")
    assert (await world.call("GET", f"/v1/statuses/{status}", ann)).status == 404
    assert (await world.call("DELETE", f"/v1/statuses/{status}", ann)).status == 404


def status(**change: Any) -> bytes:
    """Return a valid body with one change."""
    return json.dumps({"message": "hello", **change}).encode()


def deep(levels: int) -> Any:
    """Return nested lists."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


BAD: list[tuple[bytes, int, str, str | None]] = [
    (b"", 400, "malformed_body", None),
    (b"{", 400, "malformed_body", None),
    (b"null", 400, "malformed_body", None),
    (b"[]", 400, "malformed_body", None),
    (b'"hello"', 400, "malformed_body", None),
    (b'{"message":"hello"} {}', 400, "malformed_body", None),
    (b"\xef\xbb\xbf" + status(), 400, "malformed_body", None),
    (b'{"message":"\xff\xfe"}', 400, "malformed_body", None),
    (b'{"message":"\xed\xa0\x80"}', 400, "malformed_body", None),
    (b'{"message":"\\ud800"}', 400, "malformed_body", None),
    (b'{"message":"a\nb"}', 400, "malformed_body", None),
    (b"{'message':'a'}", 400, "malformed_body", None),
    (b"[" * 60_000, 400, "malformed_body", None),
    (b'{"message":"a","meta":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}", 400, "malformed_body", None),
    (b'{"message":"a","location":{"lon":NaN,"lat":0}}', 400, "malformed_body", None),
    (b'{"message":"a","location":{"lon":-Infinity,"lat":0}}', 400, "malformed_body", None),
    (b'{"message":"a","location":{"lon":1e999,"lat":0}}', 400, "invalid_parameter", "location.lon"),
    (b"{}", 400, "missing_parameter", "message"),
    (status(message=""), 400, "missing_parameter", "message"),
    (status(message=" \n\t "), 400, "invalid_parameter", "message"),
    (status(message="x" * 281), 400, "invalid_parameter", "message"),
    (status(message="a\0b"), 400, "invalid_parameter", "message"),
    (status(message="a\rb"), 400, "invalid_parameter", "message"),
    (status(message="a\x1b[31m"), 400, "invalid_parameter", "message"),
    (status(message=None), 400, "invalid_parameter", "message"),
    (status(message=5), 400, "invalid_parameter", "message"),
    (status(message=["a"]), 400, "invalid_parameter", "message"),
    (status(location={"lon": 181, "lat": 0}), 400, "invalid_parameter", "location.lon"),
    (status(location={"lon": 0, "lat": -90.1}), 400, "invalid_parameter", "location.lat"),
    (status(location={"lon": "0", "lat": 0}), 400, "invalid_parameter", "location.lon"),
    (status(location={"lon": True, "lat": 0}), 400, "invalid_parameter", "location.lon"),
    (status(location={"lon": 0}), 400, "missing_parameter", "location.lat"),
    (status(location={"lon": 0, "lat": 0, "alt": 0}), 400, "unknown_parameter", "location.alt"),
    (status(location=[0, 0]), 400, "invalid_parameter", "location"),
    (status(place={"name": ""}), 400, "invalid_parameter", "place.name"),
    (status(place={"name": "x" * 101}), 400, "invalid_parameter", "place.name"),
    (status(place={"name": "a\nb"}), 400, "invalid_parameter", "place.name"),
    (status(place={"name": "a", "country": "DEU"}), 400, "invalid_parameter", "place.country"),
    (status(place={"name": "a", "box": [0, 0, 1]}), 400, "invalid_parameter", "place.box"),
    (status(place={"name": "a", "box": [0, 1, 1, 0]}), 400, "invalid_parameter", "place.box"),
    (status(place={"name": "a", "box": [1, 0, 1, 1]}), 400, "invalid_parameter", "place.box"),
    (status(place={"name": "a", "box": [0, 0, 181, 1]}), 400, "invalid_parameter", "place.box[2]"),
    (status(lang=""), 400, "invalid_parameter", "lang"),
    (status(lang="en_GB"), 400, "invalid_parameter", "lang"),
    (status(lang="en-" + "abcdefgh-" * 4 + "x"), 400, "invalid_parameter", "lang"),
    (status(in_reply_to=5), 400, "invalid_parameter", "in_reply_to"),
    (status(in_reply_to="me"), 400, "invalid_parameter", "in_reply_to"),
    (status(origin="-1"), 400, "invalid_parameter", "origin"),
    (status(media=[{"url": "ftp://a", "type": "image"}]), 400, "invalid_parameter", "media[0].url"),
    (status(media=[{"url": "https://a/\n", "type": "image"}]), 400, "invalid_parameter", "media[0].url"),
    (status(media=[{"url": "https://a/" + "x" * 2048, "type": "image"}]), 400, "invalid_parameter", "media[0].url"),
    (status(media=[{"url": "https://a", "type": "pdf"}]), 400, "invalid_parameter", "media[0].type"),
    (status(media=[{"url": "https://a", "type": "image"}] * 5), 413, "too_many", "media"),
    (status(meta=[1]), 400, "invalid_parameter", "meta"),
    (status(meta={"a": "x" * 4096}), 400, "invalid_parameter", "meta"),
    (status(meta={"a": deep(16)}), 400, "invalid_parameter", "meta"),
    (status(group=1), 400, "invalid_parameter", "group"),
    (status(group="me"), 400, "invalid_parameter", "group"),
    (status(group="1"), 404, "not_found", "group"),
    (status(id="1"), 400, "unknown_parameter", "id"),
    (status(**{"x" * 1000: 1}), 400, "unknown_parameter", "x" * 64),
]


async def test_a_bad_status_changes_nothing(
    world: World, caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    """Each is a 4xx that names the member; Redis is unchanged and no error is logged."""
    ann = await world.user("ann")
    before = world.state()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {tokens.fresh(ann)}"}
    for body, code, error, param in BAD:
        with subtests.test(body=body):
            assert (await world.call("POST", "/v1/statuses", data=body, headers=headers)).error == (code, error, param)
            assert world.state() == before
            assert not [record for record in caplog.records if record.exc_info or record.levelname == "ERROR"]


async def test_what_is_just_allowed_passes(world: World) -> None:
    """The limits themselves: 280 code points, four media, 4 KiB and 16 levels of meta, a box over longitude 180."""
    ann = await world.user("ann")
    await world.status(ann, "🎉" * 280)
    await world.status(ann, media=[{"url": "https://a", "type": "gif"}] * 4)
    await world.status(ann, meta={"a": "x" * (4096 - len('{"a":""}'))})
    await world.status(ann, meta={"a": deep(15)})
    await world.status(ann, place={"name": "Fiji", "box": [177, -20, -178, -12]}, location={"lon": -180, "lat": 90})
    await world.status(ann, meta=None, location=None, place=None, in_reply_to=None, origin=None, lang=None)


@pytest.mark.parametrize("settings", [{"message_max_chars": 10}])
async def test_the_length_is_a_setting(world: World) -> None:
    """Ten code points pass with a limit of ten."""
    ann = await world.user("ann")
    await world.status(ann, "0123456789")
    answer = await world.call("POST", "/v1/statuses", ann, json={"message": "0123456789a"})
    assert answer.error == (400, "invalid_parameter", "message")


async def test_what_is_between_the_lines_stays_on_its_line(world: World) -> None:
    """White space between members is not copied: a log entry is one line, whatever the client sends."""
    ann = await world.user("ann")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {tokens.fresh(ann)}"}
    body = b'{"message": "a", "meta": {\n\r\n "a": [\n1,\r2 ]}}'
    assert (await world.call("POST", "/v1/statuses", data=body, headers=headers)).status == 201
    entry = world.redis.xrevrange("{core}:log", count=1)[0][1][b"e"]
    assert b"\n" not in entry
    assert b"\r" not in entry


async def test_the_language_is_the_author_s_else_it_is_told(world: World) -> None:
    """Detection ignores links; a repost has the language of its original, and comments have none."""
    ann = await world.user("ann")
    told = {}
    for name, more in {
        "said": {"message": "Heute war der Zug wieder zu spät", "lang": "en"},
        "detected": {"message": "@bob Heute war der Zug wieder zu spät https://example.org/the-train-was-late"},
        "short": {"message": "ok"},
        "linked": {"message": "https://example.org/the/train/was/late/again"},
    }.items():
        told[name] = await world.status(ann, **more)
    told["repost"] = await world.status(ann, "", origin=told["detected"])
    langs = {name: (await world.call("GET", f"/v1/statuses/{one}", ann)).json["lang"] for name, one in told.items()}
    assert langs == {"said": "en", "detected": "de", "short": "und", "linked": "und", "repost": "de"}


async def test_an_idempotency_key_posts_once(world: World) -> None:
    """The same key and body give the same status; another body or path is 409; keys belong to users."""
    ann, bob = await world.user("ann"), await world.user("bob")
    key = {"Idempotency-Key": "k:1"}
    first = await world.call("POST", "/v1/statuses", ann, json={"message": "a"}, headers=key)
    again = await world.call("POST", "/v1/statuses", ann, json={"message": "a"}, headers=key)
    assert (first.status, again.status) == (201, 201)
    assert first.body == again.body
    assert world.redis.xlen("{core}:log") == 1
    other = await world.call("POST", "/v1/statuses", ann, json={"message": "b"}, headers=key)
    assert other.error[:2] == (409, "duplicate")
    assert (await world.call("PUT", f"/v1/users/me/following/{bob}", ann, headers=key)).error[:2] == (409, "duplicate")
    assert (await world.call("POST", "/v1/statuses", bob, json={"message": "b"}, headers=key)).status == 201
    assert world.redis.xlen("{core}:log") == 2


@pytest.mark.parametrize("key", ["", "k" * 65, "a b", "k/1", "ä"])
async def test_a_bad_idempotency_key_is_refused(world: World, key: str) -> None:
    """1 to 64 characters of a small alphabet, so a key cannot collide with other keys."""
    ann = await world.user("ann")
    answer = await world.call("POST", "/v1/statuses", ann, json={"message": "a"}, headers={"Idempotency-Key": key})
    assert answer.error == (400, "invalid_parameter", "Idempotency-Key")
    assert world.redis.xlen("{core}:log") == 0


async def test_several_come_in_one_call(world: World) -> None:
    """In the order of the request without unknown ids; 200 ids are allowed, 201 and 0 are errors."""
    ann = await world.user("ann")
    made = [await world.status(ann, f"{i}") for i in range(3)]
    asked = ",".join([*made[::-1], *["1"] * 197])
    found = await world.call("GET", f"/v1/statuses?ids={asked}", ann)
    assert [one["id"] for one in found.json["statuses"]] == made[::-1]
    assert (await world.call("GET", f"/v1/statuses?ids={asked},1", ann)).error == (413, "too_many", "ids")
    assert (await world.call("GET", "/v1/statuses?ids=", ann)).error == (400, "missing_parameter", "ids")
    assert (await world.call("GET", "/v1/statuses?ids=1,x", ann)).error == (400, "invalid_parameter", "ids")


async def test_meta_is_kept_as_given(world: World) -> None:
    """Order, null, empty lists and objects, large and small numbers, any letters."""
    ann = await world.user("ann")
    meta = r'{"z":[],"a":{},"n":null,"big":9007199254740993,"f":1e-7,"t":true,"é\u2028":"\u0000</script>"}'
    answer = await world.call("POST", "/v1/statuses", ann, json={"message": "x", "meta": json.loads(meta)})
    read = await world.call("GET", f"/v1/statuses/{answer.json['id']}", ann)
    for got in (answer.json["meta"], read.json["meta"]):
        assert got == json.loads(meta)
        assert list(got) == list(json.loads(meta))


async def test_nobody_posts_as_a_user_that_is_not_there(world: World) -> None:
    """A valid token of a user that does not exist is refused."""
    await world.user("ann")
    before = world.state()
    answer = await world.call("POST", "/v1/statuses", "12345", json={"message": "x"})
    assert answer.status == 401
    assert world.state() == before


async def test_a_status_in_a_group(world: World) -> None:
    """Members post and read; other users get 403, and 404 for a private group."""
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    for kind, refusal in (("public", (403, "not_yours", "group")), ("private", (404, "not_found", "group"))):
        new = {"name": kind, "kind": kind}
        group = (await world.call("POST", "/v1/groups", ann, json=new)).json["id"]
        who, by = ("me", bob) if kind == "public" else (bob, ann)
        added = await world.call("PUT", f"/v1/groups/{group}/members/{who}", by)
        assert added.status == 200, added.body
        posted = await world.call("POST", "/v1/statuses", bob, json={"message": "x", "group": group})
        assert (posted.status, posted.json["group"]) == (201, group)
        seen = await world.call("GET", f"/v1/statuses/{posted.json['id']}", eve)
        assert seen.status == (200 if kind == "public" else 404)
        refused = await world.call("POST", "/v1/statuses", eve, json={"message": "x", "group": group})
        assert refused.error == refusal
