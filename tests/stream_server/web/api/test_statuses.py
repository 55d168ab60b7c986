"""Statuses, reposts and quotes over HTTP, and every invalid body."""

import json
from typing import Any

import pytest

from tests.stream_server.web.world import World


async def test_a_post_is_on_the_log_and_can_be_read(world: World) -> None:
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


async def test_line_breaks_of_all_systems_and_byte_order_marks_are_taken(world: World) -> None:
    """A text of Windows or an old Mac has as many characters as one of Unix, and comes back as that."""
    ann, bob = await world.user("ann"), await world.user("bob")
    text, stored = "a\r\nb\r\tc", "a\nb\n\tc"
    status = await world.status(ann)
    talk = (await world.call("POST", "/v1/talks", ann, json={"people": [bob]})).json["id"]
    long = "\r\n" * 279 + "a"  # 280 code points as it is stored
    for method, path, member, sent, expected in (
        ("POST", "/v1/statuses", "message", text, stored),
        ("POST", "/v1/statuses", "message", long, "\n" * 279 + "a"),
        ("POST", f"/v1/statuses/{status}/comments", "message", text, stored),
        ("POST", f"/v1/talks/{talk}/messages", "message", text, stored),
        ("PATCH", "/v1/users/me", "bio", text, stored),
    ):
        body = b"\xef\xbb\xbf" + json.dumps({member: sent}).encode()
        headers = {"Content-Type": "application/json"}
        answer = await world.call(method, path, ann, data=body, headers=headers)
        assert answer.json.get(member) == expected, (path, answer)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for path in ("/v1/events", "/v1/stream"):
        refused = await world.call("POST", path, ann, data=b"\xef\xbb\xbftrack=a&language=%0d%0a", headers=form)
        assert refused.error == (400, "invalid_parameter", "language")


async def test_replies_reposts_and_quotes_name_their_originals(world: World) -> None:
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


async def test_only_the_author_deletes_a_status(world: World) -> None:
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


def status_body(**change: Any) -> bytes:
    return json.dumps({"message": "hello", **change}).encode()


def nested_lists(levels: int) -> Any:
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
    (b"\xef\xbb\xbf\xef\xbb\xbf" + status_body(), 400, "malformed_body", None),
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
    (status_body(message=""), 400, "missing_parameter", "message"),
    (status_body(message=" \n\t "), 400, "invalid_parameter", "message"),
    (status_body(message="x" * 281), 400, "invalid_parameter", "message"),
    (status_body(message="a\0b"), 400, "invalid_parameter", "message"),
    (status_body(message="a\vb"), 400, "invalid_parameter", "message"),
    (status_body(message="a\x1b[31m"), 400, "invalid_parameter", "message"),
    (status_body(message=None), 400, "invalid_parameter", "message"),
    (status_body(message=5), 400, "invalid_parameter", "message"),
    (status_body(message=["a"]), 400, "invalid_parameter", "message"),
    (status_body(location={"lon": 181, "lat": 0}), 400, "invalid_parameter", "location.lon"),
    (status_body(location={"lon": 0, "lat": -90.1}), 400, "invalid_parameter", "location.lat"),
    (status_body(location={"lon": "0", "lat": 0}), 400, "invalid_parameter", "location.lon"),
    (status_body(location={"lon": True, "lat": 0}), 400, "invalid_parameter", "location.lon"),
    (status_body(location={"lon": 0}), 400, "missing_parameter", "location.lat"),
    (status_body(location={"lon": 0, "lat": 0, "alt": 0}), 400, "unknown_parameter", "location.alt"),
    (status_body(location=[0, 0]), 400, "invalid_parameter", "location"),
    (status_body(place={"name": ""}), 400, "invalid_parameter", "place.name"),
    (status_body(place={"name": "x" * 101}), 400, "invalid_parameter", "place.name"),
    (status_body(place={"name": "a\nb"}), 400, "invalid_parameter", "place.name"),
    (status_body(place={"name": "a", "country": "DEU"}), 400, "invalid_parameter", "place.country"),
    (status_body(place={"name": "a", "box": [0, 0, 1]}), 400, "invalid_parameter", "place.box"),
    (status_body(place={"name": "a", "box": [0, 1, 1, 0]}), 400, "invalid_parameter", "place.box"),
    (status_body(place={"name": "a", "box": [1, 0, 1, 1]}), 400, "invalid_parameter", "place.box"),
    (status_body(place={"name": "a", "box": [0, 0, 181, 1]}), 400, "invalid_parameter", "place.box[2]"),
    (status_body(lang=""), 400, "invalid_parameter", "lang"),
    (status_body(lang="en_GB"), 400, "invalid_parameter", "lang"),
    (status_body(lang="en-" + "abcdefgh-" * 4 + "x"), 400, "invalid_parameter", "lang"),
    (status_body(in_reply_to=5), 400, "invalid_parameter", "in_reply_to"),
    (status_body(in_reply_to="me"), 400, "invalid_parameter", "in_reply_to"),
    (status_body(origin="-1"), 400, "invalid_parameter", "origin"),
    (status_body(media=[{"url": "ftp://a", "type": "image"}]), 400, "invalid_parameter", "media[0].url"),
    (status_body(media=[{"url": "https://a/\n", "type": "image"}]), 400, "invalid_parameter", "media[0].url"),
    (
        status_body(media=[{"url": "https://a/" + "x" * 2048, "type": "image"}]),
        400,
        "invalid_parameter",
        "media[0].url",
    ),
    (status_body(media=[{"url": "https://a", "type": "pdf"}]), 400, "invalid_parameter", "media[0].type"),
    (status_body(media=[{"url": "https://a", "type": "image"}] * 5), 413, "too_many", "media"),
    (status_body(meta=[1]), 400, "invalid_parameter", "meta"),
    (status_body(meta={"a": "x" * 4096}), 400, "invalid_parameter", "meta"),
    (status_body(meta={"a": nested_lists(16)}), 400, "invalid_parameter", "meta"),
    (status_body(group=1), 400, "invalid_parameter", "group"),
    (status_body(group="me"), 400, "invalid_parameter", "group"),
    (status_body(group="1"), 404, "not_found", "group"),
    (status_body(id="1"), 400, "unknown_parameter", "id"),
    (status_body(**{"x" * 1000: 1}), 400, "unknown_parameter", "x" * 64),
]


async def test_an_invalid_status_changes_nothing(
    world: World, caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    ann = await world.user("ann")
    before = world.state()
    headers = {"Content-Type": "application/json"}
    for body, code, error, param in BAD:
        with subtests.test(body=body):
            refused = await world.call("POST", "/v1/statuses", ann, data=body, headers=headers)
            assert refused.error == (code, error, param)
            assert world.state() == before
            assert not [record for record in caplog.records if record.exc_info or record.levelname == "ERROR"]


async def test_values_at_the_limits_are_accepted(world: World) -> None:
    ann = await world.user("ann")
    await world.status(ann, "🎉" * 280)
    await world.status(ann, media=[{"url": "https://a", "type": "gif"}] * 4)
    await world.status(ann, meta={"a": "x" * (4096 - len('{"a":""}'))})
    await world.status(ann, meta={"a": nested_lists(15)})
    await world.status(ann, place={"name": "Fiji", "box": [177, -20, -178, -12]}, location={"lon": -180, "lat": 90})
    await world.status(ann, meta=None, location=None, place=None, in_reply_to=None, origin=None, lang=None)


@pytest.mark.parametrize("settings", [{"message_max_chars": 10}])
async def test_the_length_limit_is_a_setting(world: World) -> None:
    ann = await world.user("ann")
    await world.status(ann, "0123456789")
    answer = await world.call("POST", "/v1/statuses", ann, json={"message": "0123456789a"})
    assert answer.error == (400, "invalid_parameter", "message")


async def test_whitespace_of_the_body_does_not_reach_the_log(world: World) -> None:
    """A log entry is one line."""
    ann = await world.user("ann")
    headers = {"Content-Type": "application/json"}
    body = b'{"message": "a", "meta": {\n\r\n "a": [\n1,\r2 ]}}'
    assert (await world.call("POST", "/v1/statuses", ann, data=body, headers=headers)).status == 201
    entry = world.redis.xrevrange("{core}:log", count=1)[0][1][b"e"]
    assert b"\n" not in entry
    assert b"\r" not in entry


async def test_the_language_is_given_by_the_author_or_detected(world: World) -> None:
    ann = await world.user("ann")
    posted = {}
    for name, more in {
        "said": {"message": "Heute war der Zug wieder zu spät", "lang": "en"},
        "detected": {"message": "@bob Heute war der Zug wieder zu spät https://example.org/the-train-was-late"},
        "short": {"message": "ok"},
        "linked": {"message": "https://example.org/the/train/was/late/again"},
    }.items():
        posted[name] = await world.status(ann, **more)
    posted["repost"] = await world.status(ann, "", origin=posted["detected"])
    langs = {name: (await world.call("GET", f"/v1/statuses/{one}", ann)).json["lang"] for name, one in posted.items()}
    assert langs == {"said": "en", "detected": "de", "short": "und", "linked": "und", "repost": "de"}


async def test_an_idempotency_key_posts_once(world: World) -> None:
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
async def test_an_invalid_idempotency_key_is_refused(world: World, key: str) -> None:
    ann = await world.user("ann")
    answer = await world.call("POST", "/v1/statuses", ann, json={"message": "a"}, headers={"Idempotency-Key": key})
    assert answer.error == (400, "invalid_parameter", "Idempotency-Key")
    assert world.redis.xlen("{core}:log") == 0


async def test_several_statuses_are_read_in_one_request(world: World) -> None:
    ann = await world.user("ann")
    made = [await world.status(ann, f"{i}") for i in range(3)]
    asked = ",".join([*made[::-1], *["1"] * 197])
    found = await world.call("GET", f"/v1/statuses?ids={asked}", ann)
    assert [one["id"] for one in found.json["statuses"]] == made[::-1]
    assert (await world.call("GET", f"/v1/statuses?ids={asked},1", ann)).error == (413, "too_many", "ids")
    assert (await world.call("GET", "/v1/statuses?ids=", ann)).error == (400, "missing_parameter", "ids")
    assert (await world.call("GET", "/v1/statuses?ids=1,x", ann)).error == (400, "invalid_parameter", "ids")


async def test_meta_is_kept_as_given(world: World) -> None:
    ann = await world.user("ann")
    meta = r'{"z":[],"a":{},"n":null,"big":9007199254740993,"f":1e-7,"t":true,"é\u2028":"\u0000</script>"}'
    answer = await world.call("POST", "/v1/statuses", ann, json={"message": "x", "meta": json.loads(meta)})
    read = await world.call("GET", f"/v1/statuses/{answer.json['id']}", ann)
    for got in (answer.json["meta"], read.json["meta"]):
        assert got == json.loads(meta)
        assert list(got) == list(json.loads(meta))


async def test_a_token_of_an_unknown_user_cannot_post(world: World) -> None:
    await world.user("ann")
    before = world.state()
    answer = await world.call("POST", "/v1/statuses", "12345", json={"message": "x"})
    assert answer.status == 401
    assert world.state() == before
