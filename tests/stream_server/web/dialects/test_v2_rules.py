"""The v2 routes for rules: requests, outcomes, and the rules they share with the native API."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.stream_server.web.world import Answer, World

PATH = "/2/tweets/search/stream/rules"
PROBLEM = "https://api.twitter.com/2/problems/"


async def add_rules(world: World, sub: str, *rules: dict[str, str], query: str = "") -> Answer:
    return await world.call("POST", PATH + query, sub, json={"add": list(rules)})


async def saved_rules(world: World, sub: str) -> list[tuple[str, str]]:
    """Return the rules and tags of a user, read through the native API."""
    answer = await world.call("GET", "/v1/rules", sub)
    return [(rule["rule"], rule["tag"]) for rule in answer.json["rules"]]


async def test_rules_are_created_listed_and_deleted(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    made = await add_rules(world, ann, {"value": "tea   milk", "tag": "cups of tea"}, {"value": "ice"})
    tea, ice = made.json["data"]
    assert made.status == 201
    assert made.json["meta"]["summary"] == {"created": 2, "not_created": 0, "valid": 2, "invalid": 0}
    assert (tea["value"], tea["tag"], ice["value"], ice["tag"]) == ("tea milk", "cups of tea", "ice", "")
    assert await saved_rules(world, ann) == [("tea milk", "cups of tea"), ("ice", "")]
    listed = (await world.call("GET", PATH, ann)).json
    assert (listed["data"], listed["meta"]["result_count"]) == ([tea, ice], 2)
    sent = datetime.strptime(listed["meta"]["sent"], "%Y-%m-%dT%H:%M:%S.%f%z")
    assert sent.utcoffset() == timedelta(0)
    assert (await world.call("GET", f"{PATH}?ids={ice['id']},404", ann)).json["data"] == [ice]
    assert "data" not in (await world.call("GET", PATH, bob)).json
    strange = await world.call("POST", PATH, bob, json={"delete": {"ids": [tea["id"]]}})
    assert (strange.status, strange.json["meta"]["summary"]) == (200, {"deleted": 0, "not_deleted": 1})
    gone = await world.call("POST", PATH, ann, json={"delete": {"ids": [tea["id"], "404"]}})
    assert (gone.status, gone.json["meta"]["summary"]) == (200, {"deleted": 1, "not_deleted": 1})
    (unknown,) = gone.json["errors"]
    assert (unknown["parameter"], unknown["value"], unknown["type"]) == ("ids", "404", PROBLEM + "resource-not-found")
    assert await saved_rules(world, ann) == [("ice", "")]


async def test_valid_rules_are_added_and_the_others_reported(world: World) -> None:
    ann = await world.user("ann")
    (first,) = (await add_rules(world, ann, {"value": "tea"})).json["data"]
    answer = await add_rules(world, ann, {"value": "tea"}, {"value": "ice"}, {"value": "ice"}, {"value": "(ice"})
    assert answer.status == 201
    assert answer.json["meta"]["summary"] == {"created": 1, "not_created": 3, "valid": 1, "invalid": 3}
    errors = [(error["title"], error["value"], error["type"]) for error in answer.json["errors"]]
    assert sorted(errors) == [
        ("DuplicateRule", "ice", PROBLEM + "duplicate-rules"),
        ("DuplicateRule", "tea", PROBLEM + "duplicate-rules"),
        ("UnprocessableEntity", "(ice", PROBLEM + "invalid-rules"),
    ]
    by_value = {error["value"]: error for error in answer.json["errors"]}
    assert by_value["tea"]["id"] == first["id"]
    assert "column" in by_value["(ice"]["details"][0]
    assert await saved_rules(world, ann) == [("tea", ""), ("ice", "")]


async def test_only_invalid_rules_write_nothing(world: World) -> None:
    ann = await world.user("ann")
    before = world.state()
    answer = await add_rules(world, ann, {"value": "has:media"}, {"value": ""})
    assert (answer.status, answer.json["meta"]["summary"]["invalid"]) == (201, 2)
    assert world.state() == before


async def test_a_dry_run_answers_the_same_and_changes_nothing(world: World) -> None:
    ann = await world.user("ann")
    (kept,) = (await add_rules(world, ann, {"value": "tea"})).json["data"]
    before = world.kinds()
    tried = await add_rules(world, ann, {"value": "ice", "tag": "cold"}, {"value": "tea"}, query="?dry_run=True")
    (ice,) = tried.json["data"]
    assert (tried.status, ice["value"], ice["tag"], ice["id"].isdecimal()) == (201, "ice", "cold", True)
    assert tried.json["meta"]["summary"] == {"created": 1, "not_created": 1, "valid": 1, "invalid": 1}
    gone = await world.call("POST", f"{PATH}?dry_run=true", ann, json={"delete": {"ids": [kept["id"]]}})
    assert gone.json["meta"]["summary"] == {"deleted": 1, "not_deleted": 0}
    assert world.kinds() == before
    assert await saved_rules(world, ann) == [("tea", "")]


async def test_rules_are_deleted_by_value_and_all_at_once(world: World) -> None:
    ann = await world.user("ann")
    rules = [{"value": "tea milk"}, {"value": "tea milk", "tag": "b"}, {"value": "ice"}, {"value": "rum"}]
    await add_rules(world, ann, *rules)
    gone = await world.call("POST", PATH, ann, json={"delete": {"values": ["tea  milk", "beer", "("]}})
    assert gone.json["meta"]["summary"] == {"deleted": 2, "not_deleted": 2}
    unknown = [(error["parameter"], error["value"]) for error in gone.json["errors"]]
    assert unknown == [("values", "beer"), ("values", "(")]
    assert await saved_rules(world, ann) == [("ice", ""), ("rum", "")]
    cleared = await world.call("POST", f"{PATH}?delete_all=true", ann)
    assert cleared.json["meta"]["summary"] == {"deleted": 2, "not_deleted": 0}
    assert await saved_rules(world, ann) == []


async def test_rules_are_counted_and_read_in_pages(world: World) -> None:
    ann = await world.user("ann")
    await add_rules(world, ann, *({"value": f"tea{n}"} for n in range(5)))
    counts = (await world.call("GET", f"{PATH}/counts", ann)).json["data"]
    own = {"rule_count": 5, "client_app_id": ann}
    assert counts == {
        "cap_per_client_app": "1000", "cap_per_project": "1000", "project_rules_count": "5",
        "client_app_rules_count": own,
    }  # fmt: skip
    fields = "rules_count.fields=all_project_client_apps"
    more = (await world.call("GET", f"{PATH}/counts?{fields}", ann)).json["data"]
    assert more == {**counts, "all_project_client_apps": [own]}
    seen: list[str] = []
    token: str | None = ""
    while token is not None:
        page = (await world.call("GET", f"{PATH}?max_results=2{token}", ann)).json
        seen += [rule["value"] for rule in page["data"]]
        token = f"&pagination_token={page['meta']['next_token']}" if "next_token" in page["meta"] else None
    assert seen == [f"tea{n}" for n in range(5)]


A_BAD_CHANGE_IS_A_PROBLEM_AND_CHANGES_NOTHING: list[Any] = [
    ("", {}),
    ("", {"add": []}),
    ("", {"add": [{}]}),
    ("", {"add": [{"value": 1}]}),
    ("", {"add": [{"value": "tea", "tag": "x" * 121}]}),
    ("", {"add": [{"value": "tea", "tag": "a\nb"}]}),
    ("", {"add": [{"value": "tea"}], "delete": {"ids": ["1"]}}),
    ("?delete_all=true", {"delete": {"ids": ["1"]}}),
    ("?dry_run=perhaps", {"add": [{"value": "tea"}]}),
    ("", {"delete": {"ids": [1]}}),
    ("", ["tea"]),
]


async def test_an_invalid_change_changes_nothing(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    before = world.state()
    for query, body in A_BAD_CHANGE_IS_A_PROBLEM_AND_CHANGES_NOTHING:
        with subtests.test(query=query):
            refused = await world.call("POST", PATH + query, ann, json=body)
            assert (refused.status, refused.headers["Content-Type"]) == (400, "application/problem+json")
            assert (refused.json["title"], refused.json["type"]) == ("Invalid Request", PROBLEM + "invalid-request")
            assert refused.json["errors"][0]["message"]
            assert world.state() == before


@pytest.mark.parametrize("named", ["ids", "values"])
async def test_at_most_a_thousand_rules_are_deleted_at_once(world: World, named: str) -> None:
    ann = await world.user("ann")
    most = [str(n) for n in range(1, 1001)]
    assert (await world.call("POST", PATH, ann, json={"delete": {named: most}})).status == 200
    refused = await world.call("POST", PATH, ann, json={"delete": {named: [*most, "1001"]}})
    assert refused.status == 400


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("max_results", number) for number in ("0", "1001", "x")),
        *(("pagination_token", token) for token in ("", "x", "00======", "0" * 15, "ä" * 16, "========")),
    ],
)
async def test_an_invalid_page_is_refused_by_name(world: World, name: str, value: str) -> None:
    ann = await world.user("ann")
    refused = await world.call("GET", f"{PATH}?{urlencode({name: value})}", ann)
    assert refused.json["errors"][0]["parameters"] == {name: [value]}


async def test_the_number_of_rules_is_limited(world: World) -> None:
    ann = await world.user("ann")
    key = f"{{core}}:rules:{ann}"
    rules = {str(n): f'{{"id":"{n}","rule":"a{n}","tag":"","created":""}}' for n in range(1, 1000)}
    world.redis.hset(key, mapping=rules)
    before = world.state()
    refused = await add_rules(world, ann, {"value": "tea"}, {"value": "ice"})
    assert (refused.status, refused.json["type"]) == (400, PROBLEM + "rule-cap")
    assert (world.state(), world.redis.hlen(key)) == (before, 999)
    assert (await add_rules(world, ann, {"value": "tea"})).status == 201


async def test_a_missing_token_and_a_missing_scope_are_problems(world: World) -> None:
    ann = await world.user("ann")
    nobody = await world.call("GET", PATH)
    assert (nobody.status, nobody.json["title"], nobody.json["status"]) == (401, "Unauthorized", 401)
    assert nobody.headers["WWW-Authenticate"].startswith("Bearer")
    reader = await world.call("GET", PATH, ann, scope="read write")
    assert (reader.status, reader.json["title"], reader.json["type"]) == (403, "Forbidden", "about:blank")
