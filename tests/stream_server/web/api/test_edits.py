"""``PATCH /v1/statuses/{id}``: what may be changed, by whom, and until when."""

from typing import Any

import pytest

from tests.stream_server.web.world import Refusal, World

BAD: list[Refusal] = [
    ([], 400, "malformed_body", None),
    ({"text": "x"}, 400, "unknown_parameter", "text"),
    ({"in_reply_to": "1"}, 400, "unknown_parameter", "in_reply_to"),
    ({"message": ""}, 400, "invalid_parameter", "message"),
    ({"message": " \n"}, 400, "invalid_parameter", "message"),
    ({"message": None}, 400, "invalid_parameter", "message"),
    ({"message": "a\u0000b"}, 400, "invalid_parameter", "message"),
    ({"message": "x" * 281}, 400, "invalid_parameter", "message"),
    ({"meta": []}, 400, "invalid_parameter", "meta"),
    ({"meta": {"a": "x" * 4096}}, 400, "invalid_parameter", "meta"),
    ({"location": {"lon": 181, "lat": 0}}, 400, "invalid_parameter", "location.lon"),
    ({"media": [{"url": "ftp://a", "type": "image"}]}, 400, "invalid_parameter", "media[0].url"),
    ({"lang": "x" * 50}, 400, "invalid_parameter", "lang"),
]


async def test_an_edit_answers_with_the_new_status(world: World) -> None:
    ann = await world.user("ann")
    made = (await world.call("POST", "/v1/statuses", ann, json={"message": "the weather is very nice today"})).json
    body = {"message": "das Wetter ist heute wirklich schön", "meta": {"a": 1}}
    edited = await world.call("PATCH", f"/v1/statuses/{made['id']}", ann, json=body)
    assert edited.status == 200
    assert edited.json == made | body | {"lang": "de", "edits": 1, "edited": edited.json["edited"]}
    assert edited.json["edited"] >= made["posted"]
    assert (await world.call("GET", f"/v1/statuses/{made['id']}", ann)).json == edited.json
    again = await world.call("PATCH", f"/v1/statuses/{made['id']}", ann, json={"message": "so", "lang": "en-GB"})
    assert (again.json["lang"], again.json["edits"], again.json["meta"]) == ("en-GB", 2, {"a": 1})


@pytest.mark.parametrize("bad", BAD)
async def test_a_bad_edit_is_refused_and_changes_nothing(world: World, bad: Refusal) -> None:
    ann = await world.user("ann")
    made = (await world.call("POST", "/v1/statuses", ann, json={"message": "tea"})).json
    body, *error = bad
    assert (await world.call("PATCH", f"/v1/statuses/{made['id']}", ann, json=body)).error == tuple(error)
    assert (await world.call("GET", f"/v1/statuses/{made['id']}", ann)).json == made


async def test_others_are_told_that_it_is_not_theirs(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    path = f"/v1/statuses/{(await world.call('POST', '/v1/statuses', ann, json={'message': 'tea'})).json['id']}"
    assert (await world.call("PATCH", path, bob, json={"message": "x"})).error == (403, "not_yours", None)
    assert (await world.call("PATCH", "/v1/statuses/1", bob, json={"message": "x"})).error == (404, "not_found", None)
    repost = (await world.call("POST", "/v1/statuses", bob, json={"origin": path[13:]})).json
    refused = await world.call("PATCH", f"/v1/statuses/{repost['id']}", bob, json={"meta": {}})
    assert refused.error == (400, "invalid_parameter", "origin")


class TestWithoutEdits:
    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {"edit_seconds": 0.0}

    async def test_edits_can_be_turned_off(self, world: World) -> None:
        ann = await world.user("ann")
        made = (await world.call("POST", "/v1/statuses", ann, json={"message": "tea"})).json
        path = f"/v1/statuses/{made['id']}"
        assert (await world.call("PATCH", path, ann, json={"message": "x"})).error == (403, "too_late", None)
