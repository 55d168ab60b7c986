"""Saved rules over HTTP, and explanations of matches."""

from typing import Any

import pytest
from aiohttp import web

from stream_server.events.language import detect_nothing
from stream_server.web.http import app_keys
from tests.stream_server.web.world import World

BAD: list[tuple[Any, int, str, str | None, int | None]] = [
    ({}, 400, "missing_parameter", "rules", None),
    ({"rules": []}, 400, "invalid_parameter", "rules", None),
    ({"rules": [{"rule": "tea"}] * 1001}, 413, "too_many", "rules", None),
    ({"rules": ["tea"]}, 400, "invalid_parameter", "rules[0]", None),
    ({"rules": [{"tag": "a"}]}, 400, "missing_parameter", "rules[0].rule", None),
    ({"rules": [{"rule": ""}]}, 400, "invalid_parameter", "rules[0].rule", 1),
    ({"rules": [{"rule": "\ufe0f"}]}, 400, "invalid_parameter", "rules[0].rule", 2),
    ({"rules": [{"rule": "a" * 1025}]}, 400, "invalid_parameter", "rules[0].rule", 1025),
    ({"rules": [{"rule": "tea"}, {"rule": "\u0149" * 1024}]}, 400, "invalid_parameter", "rules[1].rule", 1025),
    ({"rules": [{"rule": "tea", "tag": "x" * 121}]}, 400, "invalid_parameter", "rules[0].tag", None),
    ({"rules": [{"rule": "tea", "tag": "a\nb"}]}, 400, "invalid_parameter", "rules[0].tag", None),
    ({"rules": [{"rule": "tea", "id": "1"}]}, 400, "unknown_parameter", "rules[0].id", None),
    ({"rules": [{"rule": "tea"}], "dry": True}, 400, "unknown_parameter", "dry", None),
    ({"rules": [{"rule": "tea"}, {"rule": "tea (milk"}]}, 400, "invalid_parameter", "rules[1].rule", 10),
    ({"rules": [{"rule": "tea NOT milk"}]}, 400, "invalid_parameter", "rules[0].rule", 5),
    ({"rules": [{"rule": "tea lang:english"}]}, 400, "invalid_parameter", "rules[0].rule", 10),
    ({"rules": [{"rule": "tea"}, {"rule": "milk -from:nobody_1"}]}, 400, "invalid_parameter", "rules[1].rule", 6),
    ({"rules": [{"rule": "is:reply"}]}, 400, "invalid_parameter", "rules[0].rule", 1),
    ({"rules": [{"rule": "tea OR  -milk"}]}, 400, "invalid_parameter", "rules[0].rule", 9),
    ({"rules": [{"rule": "tea"}, {"rule": "tea"}]}, 409, "duplicate", "rules[1].rule", None),
    ({"rules": [{"rule": "milk tea"}, {"rule": "is there", "tag": "t"}]}, 409, "duplicate", "rules[1].rule", None),
    ([], 400, "malformed_body", None, None),
]


async def add_rules(world: World, uid: str, *rules: str, tag: str = "", **more: Any) -> Any:
    body = {"rules": [{"rule": rule, "tag": tag} for rule in rules], **more}
    answer = await world.call("POST", "/v1/rules", uid, json=body)
    assert answer.status == (200 if more.get("dry_run") else 201), answer.body
    return answer.json


async def saved_rules(world: World, uid: str, ids: str = "") -> Any:
    answer = await world.call("GET", "/v1/rules" + ids, uid)
    assert answer.status == 200, answer.body
    return answer.json["rules"]


async def test_the_operators_are_those_that_a_rule_takes(world: World) -> None:
    """Each example of an operator that can stand alone is a rule; the others need one beside them."""
    ann = await world.user("ada")
    answer = await world.call("GET", "/v1/rules/operators", ann)
    operators = answer.json["operators"]
    names = {one["name"] for one in operators}
    assert {"", "from", "has", "is", "lang", "meta.NAME", "point_radius", "track", "locations"} <= names, names
    assert names.isdisjoint({"firehose", "sample%"})
    for one in operators:
        example = one["example"]
        if example.endswith("\N{HORIZONTAL ELLIPSIS}"):
            continue  # of an installed filter, which has no value as an example
        rule = example if one["standalone"] else f"tea {example}"
        sent = {"rules": [{"rule": rule}], "dry_run": True}
        assert (await world.call("POST", "/v1/rules", ann, json=sent)).status == 200, rule
        if not one["standalone"]:
            sent = {"rules": [{"rule": example}], "dry_run": True}
            assert (await world.call("POST", "/v1/rules", ann, json=sent)).error[0] == 400, example


async def test_rules_are_created_listed_and_deleted(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    made = await add_rules(world, ann, "tea  (milk)", "from:ANN", tag="drinks")
    assert made["dry_run"] is False
    tea, ann_s = made["rules"]
    assert [(one["rule"], one["tag"]) for one in made["rules"]] == [("tea milk", "drinks"), ("from:ann", "drinks")]
    assert await saved_rules(world, ann) == made["rules"]
    assert await saved_rules(world, ann, f"?ids={ann_s['id']},7") == [ann_s]
    assert await saved_rules(world, bob) == []
    assert (await world.call("GET", "/v1/rules?ids=", ann)).error == (400, "invalid_parameter", "ids")
    old = {"ids": [tea["id"], "7", tea["id"]]}
    for dry_run, left in ((True, [tea, ann_s]), (False, [ann_s])):
        gone = await world.call("POST", "/v1/rules/delete", ann, json={**old, "dry_run": dry_run})
        assert gone.json == {"deleted": [tea["id"]], "not_deleted": ["7"], "dry_run": dry_run}
        assert await saved_rules(world, ann) == left
    assert (await world.call("DELETE", f"/v1/rules/{ann_s['id']}", bob)).error == (404, "not_found", "id")
    assert (await world.call("DELETE", f"/v1/rules/{ann_s['id']}", ann)).status == 204
    assert (await world.call("DELETE", f"/v1/rules/{ann_s['id']}", ann)).error == (404, "not_found", "id")
    assert await saved_rules(world, ann) == []


async def test_a_rule_is_changed_and_keeps_its_id(world: World) -> None:
    ann = await world.user("ann")
    tea, milk = (await add_rules(world, ann, "tea", "milk", tag="drinks"))["rules"]
    path, new = f"/v1/rules/{tea['id']}", {"rule": "rum  (ice)", "tag": "t"}
    key = {"Idempotency-Key": "once"}
    for body, left in (({**new, "dry_run": True}, tea), (new, {**tea, "rule": "rum ice", "tag": "t"})):
        changed = await world.call("PUT", path, ann, json=body, headers=key if left is not tea else {})
        assert (changed.status, changed.json) == (200, {**tea, "rule": "rum ice", "tag": "t"})
        assert await saved_rules(world, ann) == [left, milk]
    entries = world.redis.xlen("{core}:log")
    assert (await world.call("PUT", path, ann, json=new, headers=key)).json == changed.json
    assert (await world.call("PUT", path, ann, json=new)).json == changed.json
    assert world.redis.xlen("{core}:log") == entries
    assert (await world.call("PUT", path, ann, json={"rule": "rum"})).json == {**tea, "rule": "rum", "tag": ""}
    assert await saved_rules(world, ann) == [{**tea, "rule": "rum", "tag": ""}, milk]


async def test_a_change_is_refused_as_a_new_rule_is(world: World, subtests: pytest.Subtests) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    tea, milk = (await add_rules(world, ann, "tea", "milk"))["rules"]
    await add_rules(world, bob, "tea")
    before = world.state()[1]
    for path, uid, body, expected in (
        (tea["id"], ann, {}, (400, "missing_parameter", "rule", None)),
        (tea["id"], ann, {"rule": "tea (milk"}, (400, "invalid_parameter", "rule", 10)),
        (tea["id"], ann, {"rule": "rum -from:nobody_1"}, (400, "invalid_parameter", "rule", 5)),
        (tea["id"], ann, {"rule": "rum", "tag": "a\nb"}, (400, "invalid_parameter", "tag", None)),
        (tea["id"], ann, {"rule": "rum", "id": "1"}, (400, "unknown_parameter", "id", None)),
        (tea["id"], ann, {"rule": "milk"}, (409, "duplicate", "rule", None)),
        (tea["id"], ann, {"rule": "milk", "dry_run": True}, (409, "duplicate", "rule", None)),
        ("7", ann, {"rule": "rum"}, (404, "not_found", "id", None)),
        (tea["id"], bob, {"rule": "rum"}, (404, "not_found", "id", None)),
        ("x", ann, {"rule": "rum"}, (400, "invalid_parameter", "id", None)),
    ):
        with subtests.test(path=path, body=body):
            refused = await world.call("PUT", f"/v1/rules/{path}", uid, json=body)
            assert (*refused.error, refused.json["error"].get("column")) == expected
    assert world.state()[1] == before
    assert await saved_rules(world, ann) == [tea, milk]


async def test_a_dry_run_saves_nothing(world: World) -> None:
    ann = await world.user("ann")
    await add_rules(world, ann, "is there", tag="t")
    before = world.redis.hgetall(f"{{core}}:rules:{ann}")
    tried = await add_rules(world, ann, "tea  milk", dry_run=True)
    assert tried == {"rules": [{"rule": "tea milk", "tag": ""}], "dry_run": True}
    again = {"rules": [{"rule": "is  there", "tag": "t"}], "dry_run": True}
    refused = await world.call("POST", "/v1/rules", ann, json=again)
    assert refused.error == (409, "duplicate", "rules[0].rule")
    assert world.redis.hgetall(f"{{core}}:rules:{ann}") == before


async def test_one_invalid_rule_refuses_all(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    (there,) = (await add_rules(world, ann, "is there", tag="t"))["rules"]
    before = world.state()[1]
    for body, status, code, param, column in BAD:
        with subtests.test(body=body):
            refused = await world.call("POST", "/v1/rules", ann, json=body)
            assert refused.error == (status, code, param)
            assert refused.json["error"].get("column") == column
            assert world.state()[1] == before
            assert await saved_rules(world, ann) == [there]


async def test_a_rule_that_is_too_long_has_the_same_error_on_every_route(world: World) -> None:
    ann = await world.user("ann")
    for path, body in (
        ("", {"rules": [{"rule": "a" * 1025}]}),
        ("/explain", {"rule": "a" * 1025, "status": "1"}),
        ("/preview", {"rule": "a" * 1025, "minutes": 1}),
    ):
        error = (await world.call("POST", f"/v1/rules{path}", ann, json=body)).json["error"]
        assert error["message"] == "the rule has 1025 characters; column 1025: expected at most 1024 characters"
        assert error["column"] == 1025


async def test_a_made_up_status_may_be_as_long_as_a_posted_one(world: World) -> None:
    ann = await world.user("ann")
    longest = 280
    cases: list[tuple[Any, str | None]] = [
        ({"message": "x" * longest}, None),
        ({"message": "x" * (longest + 1)}, "status.message"),
        ({"message": "tea", "author": {"bio": "x" * 500}}, None),
        ({"message": "tea", "author": {"bio": "x" * 501}}, "status.author.bio"),
    ]
    for status, param in cases:
        answer = await world.call("POST", "/v1/rules/explain", ann, json={"rule": "tea", "status": status})
        assert (None if answer.status == 200 else answer.error) == (param and (400, "invalid_parameter", param)), param


async def test_a_user_has_at_most_a_thousand_rules(world: World) -> None:
    ann = await world.user("ann")
    for start in (0, 500):
        await add_rules(world, ann, *(f"word{number}" for number in range(start, start + 500)))
    refused = await world.call("POST", "/v1/rules", ann, json={"rules": [{"rule": "tea"}]})
    assert refused.error == (413, "too_many", "rules")
    everyone = [one["id"] for one in await saved_rules(world, ann)]
    gone = await world.call("POST", "/v1/rules/delete", ann, json={"ids": everyone})
    assert gone.json["deleted"] == everyone


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("POST", ""), ("DELETE", "/1"), ("POST", "/delete"), ("POST", "/explain"), ("POST", "/preview")],
)
async def test_rules_need_the_scope_stream(world: World, method: str, path: str) -> None:
    ann = await world.user("ann")
    answer = await world.call(method, "/v1/rules" + path, ann, scope="read write", json={})
    assert answer.error == (403, "insufficient_scope", None)


async def explain(world: World, uid: str, rule: str, status: Any) -> Any:
    answer = await world.call("POST", "/v1/rules/explain", uid, json={"rule": rule, "status": status})
    assert answer.status == 200, answer.body
    return answer.json


async def test_a_rule_is_explained_part_by_part(world: World) -> None:
    ann = await world.user("ann")
    explained = await explain(world, ann, "tea  -is:reply", {"message": "my tea"})
    tea, reply = explained["parts"]["parts"]
    assert (explained["matched"], explained["rule"]) == (True, "tea -is:reply")
    assert (tea["text"], tea["column"], tea["matched"], tea["indices"]) == ("tea", 1, True, [[3, 6]])
    assert (reply["text"], reply["column"], reply["matched"], reply["indices"]) == ("-is:reply", 6, True, [])
    assert tea["why"]
    assert reply["why"]
    explained = await explain(world, ann, "tea", {"message": "coffee"})
    assert (explained["matched"], explained["parts"]["matched"], "parts" in explained["parts"]) == (False, False, False)


MADE_UP: list[Any] = [
    ("from:jill", {"message": "a", "author": {"login": "jill"}}),
    ("from:12", {"message": "a", "author": {"id": "12"}}),
    ("a followers_count:5..", {"message": "a", "author": {"followers": 5}}),
    ("bio:chess", {"message": "a", "author": {"bio": "chess and tea"}}),
    ("a lang:fr", {"message": "a", "lang": "fr"}),
    ("train lang:en", {"message": "The train to the airport was late again this morning"}),
    ("bounding_box:[13.3 52.4 13.5 52.6]", {"message": "a", "location": {"lon": 13.4, "lat": 52.5}}),
    ("place:Berlin", {"message": "a", "place": {"name": "Berlin", "country": "DE"}}),
    ("place_country:de", {"message": "a", "place": {"name": "Berlin", "country": "DE"}}),
    ("a has:images", {"message": "a", "media": [{"url": "https://example.org/a.png", "type": "image"}]}),
    ("#tea @jack $twtr", {"message": "#tea @jack $TWTR"}),
    ("meta.room:7 meta.size:2..", {"message": "a", "meta": {"room": "7", "size": 3}}),
    ("url:example", {"message": "see https://example.org/tea"}),
]


async def test_a_made_up_status_matches_by_its_members(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    for rule, status in MADE_UP:
        with subtests.test(rule=rule):
            assert (await explain(world, ann, rule, status))["matched"]
            assert not (await explain(world, ann, rule, {"message": "nothing"}))["matched"]


async def test_a_posted_status_is_explained_as_of_posting(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    root = await world.status(ann, "tea #morning", meta={"room": 7})
    reply = await world.status(bob, "yes", in_reply_to=root)
    quote = await world.status(bob, "see", origin=root)
    repost = await world.status(bob, "", origin=root, meta={"room": 8})
    for status, rule in (
        (root, "from:ann #morning"), (root, "tea followers_count:0..0"), (reply, "to:ann yes is:reply"),
        (reply, f"conversation_id:{root}"), (quote, "tea is:quote"), (repost, "retweets_of:ann is:retweet"),
        (root, "meta.room:7"), (repost, "meta.room:7 -meta.room:8"), (quote, "tea -has:meta.room"),
    ):  # fmt: skip
        assert (await explain(world, ann, rule, status))["matched"], rule
    assert not (await explain(world, ann, "tea", reply))["matched"]
    await world.call("PUT", f"/v1/users/me/following/{ann}", bob)
    assert (await explain(world, bob, "tea followers_count:0..0", root))["matched"]
    world.redis.delete("{core}:log")
    assert (await explain(world, bob, "tea followers_count:1..1 from:ann", root))["matched"]
    assert (await explain(world, bob, "to:ann", reply))["matched"]


async def test_without_language_detection_a_made_up_status_has_no_language(world: World, app: web.Application) -> None:
    ann = await world.user("ann")
    status = {"message": "Heute war der Zug wieder zu spät, wie jeden Tag"}
    assert (await explain(world, ann, "zug lang:de", status))["matched"]
    app[app_keys.STORE].detect_language = detect_nothing
    assert not (await explain(world, ann, "zug lang:de", status))["matched"]


async def test_a_made_up_status_may_reply_to_and_quote_visible_statuses(world: World) -> None:
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    root = await world.status(ann, "tea")
    repost = await world.status(bob, "", origin=root)
    assert (await explain(world, eve, "to:ann", {"message": "yes", "in_reply_to": root}))["matched"]
    assert (await explain(world, eve, "tea is:quote", {"message": "see", "origin": root}))["matched"]
    for origin in (root, repost):
        assert (await explain(world, eve, "retweets_of:ann", {"origin": origin}))["matched"]
    assert (await world.call("PUT", f"/v1/users/me/blocks/{eve}", ann)).status == 200
    for status, param in (
        (root, "status"), ({"message": "yes", "in_reply_to": root}, "status.in_reply_to"),
        ({"origin": root}, "status.origin"), ({"message": "yes", "in_reply_to": "7"}, "status.in_reply_to"),
        ("7", "status"),
    ):  # fmt: skip
        refused = await world.call("POST", "/v1/rules/explain", eve, json={"rule": "tea", "status": status})
        assert refused.error == (404, "not_found", param)


async def test_a_made_up_reply_is_in_the_thread_of_its_parent(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    root = await world.status(ann, "tea")
    reply = await world.status(bob, "milk?", in_reply_to=root)
    rule = f"conversation_id:{root}"
    for answered in (root, reply):
        assert (await explain(world, ann, rule, {"message": "deep answer", "in_reply_to": answered}))["matched"]
    for status in ({"message": "alone"}, {"message": "see", "origin": root}):
        explained = await explain(world, ann, rule, status)
        assert (explained["matched"], explained["parts"]["why"]) == (False, "it belongs to no thread")


async def test_a_rule_does_not_match_a_hidden_original(world: World) -> None:
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    quote = await world.status(bob, "see", origin=await world.status(ann, "tea"))
    assert (await explain(world, eve, "tea", quote))["matched"]
    await world.call("PUT", f"/v1/users/me/blocks/{eve}", ann)
    assert not (await explain(world, eve, "tea", quote))["matched"]


A_BAD_QUESTION: list[Any] = [
    ({"rule": "tea", "status": {"message": 1}}, "invalid_parameter", "status.message", None),
    ({"rule": "tea", "status": {"message": "a", "uid": "1"}}, "unknown_parameter", "status.uid", None),
    ({"rule": "tea", "status": {"author": {"login": "a b"}}}, "invalid_parameter", "status.author.login", None),
    ({"rule": "tea", "status": "x"}, "invalid_parameter", "status", None),
    ({"rule": "tea"}, "missing_parameter", "status", None),
    ({"rule": "tea )", "status": {"message": "a"}}, "invalid_parameter", "rule", 5),
    ({"rule": "", "status": {"message": "a"}}, "invalid_parameter", "rule", 1),
    ({"rule": "a" * 1025, "status": {"message": "a"}}, "invalid_parameter", "rule", 1025),
]


async def test_invalid_explain_requests_are_refused_by_name(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    for body, code, param, column in A_BAD_QUESTION:
        with subtests.test(body=body):
            refused = await world.call("POST", "/v1/rules/explain", ann, json=body)
            assert refused.error == (400, code, param)
            assert refused.json["error"].get("column") == column
