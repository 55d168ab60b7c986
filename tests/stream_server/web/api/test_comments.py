"""Comments over HTTP."""

import pytest

from tests.stream_server.web.world import Refusal, World


async def test_a_comment_is_created_read_and_deleted(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    status = await world.status(ann)
    path = f"/v1/statuses/{status}/comments"
    made = [await world.call("POST", path, uid, json={"message": f"Hé @ann {uid}"}) for uid in (bob, ann)]
    first, second = [answer.json for answer in made]
    assert (made[0].status, made[0].headers["Location"]) == (201, f"/v1/comments/{first['id']}")
    assert (first["uid"], first["login"], first["status"]) == (bob, "bob", status)
    assert first["entities"]["mentions"][0]["id"] == ann
    assert (await world.call("GET", made[0].headers["Location"], ann)).body == made[0].body
    page = (await world.call("GET", path, ann)).json
    assert page == {"comments": [first, second], "next": None, "prev": None}
    half = (await world.call("GET", f"{path}?count=1", ann)).json
    assert half["comments"] == [first]
    assert (await world.call("GET", f"{path}?before={half['next']}", ann)).json["comments"] == [second]
    assert (await world.call("GET", f"/v1/statuses/{status}", bob)).json["comments"] == 2
    gone = await world.call("DELETE", f"/v1/comments/{first['id']}", bob)
    assert (gone.status, gone.body) == (204, b"")
    for method in ("GET", "DELETE"):
        assert (await world.call(method, f"/v1/comments/{first['id']}", bob)).error == (404, "not_found", None)
    assert (await world.call("GET", f"/v1/statuses/{status}", bob)).json["comments"] == 1


BAD: list[Refusal] = [
    ({}, 400, "missing_parameter", "message"),
    ({"message": ""}, 400, "invalid_parameter", "message"),
    ({"message": " \n\t "}, 400, "invalid_parameter", "message"),
    ({"message": "x" * 281}, 400, "invalid_parameter", "message"),
    ({"message": "a\0b"}, 400, "invalid_parameter", "message"),
    ({"message": "a\x1b[31m"}, 400, "invalid_parameter", "message"),
    ({"message": None}, 400, "invalid_parameter", "message"),
    ({"message": 5}, 400, "invalid_parameter", "message"),
    ({"message": "x", "uid": "1"}, 400, "unknown_parameter", "uid"),
    ([], 400, "malformed_body", None),
]


async def test_an_invalid_comment_changes_nothing(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    await world.refuses(subtests, "POST", f"/v1/statuses/{await world.status(ann)}/comments", ann, BAD)


async def test_comments_of_an_unknown_status_are_404(world: World) -> None:
    ann = await world.user("ann")
    gone = await world.status(ann)
    await world.call("DELETE", f"/v1/statuses/{gone}", ann)
    before = world.state()
    for method, more in (("POST", {"json": {"message": "x"}}), ("GET", {})):
        for status in ("1", gone):
            answer = await world.call(method, f"/v1/statuses/{status}/comments", ann, **more)
            assert answer.error == (404, "not_found", None)
        assert (await world.call(method, "/v1/statuses/x/comments", ann, **more)).error[1] == "invalid_parameter"
    assert world.state() == before


@pytest.mark.parametrize("settings", [{"message_max_chars": 10}])
async def test_the_length_limit_is_the_setting_for_statuses(world: World) -> None:
    ann = await world.user("ann")
    path = f"/v1/statuses/{await world.status(ann)}/comments"
    assert (await world.call("POST", path, ann, json={"message": "🎉" * 10})).status == 201
    assert (await world.call("POST", path, ann, json={"message": "🎉" * 11})).error[2] == "message"
