"""Names in ``follow`` become ids: logins in any case, and ids of another site."""

import pytest
from aiohttp import web

from filters.error import ParameterError
from stream_server.web.http import app_keys
from stream_server.web.streaming.followed_names import resolve_followed
from tests.stream_server.web.world import World

EXOTIC = "at://did:plc:1/app.x?y=z&w"


async def test_logins_and_foreign_ids_become_ids_in_their_places(world: World, app: web.Application) -> None:
    ann, store = await world.user("ann"), app[app_keys.STORE]
    written, timelines = await store.ingest.write([store.ingest.user(EXOTIC, "zoe", {})])
    await timelines
    zoe = getattr(written[0], "id", None)
    for text, expected in (
        ("12,@me", "12,@me"),
        ("ANN", ann),
        (f"12,@me,foreign:{EXOTIC},ann,zoe,7", f"12,@me,{zoe},{ann},{zoe},7"),
    ):
        resolved = await resolve_followed(store.users, {"follow": text, "track": "ann"})
        assert resolved == {"follow": expected, "track": "ann"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nobody", "invalid_parameter"),
        ("12,foreign:nobody", "invalid_parameter"),
        ("foreign:", "invalid_parameter"),
        ("foreign:a b", "invalid_parameter"),
        ("a-b", "invalid_parameter"),
        ("@ann", "invalid_parameter"),
        ("012", "invalid_parameter"),
        ("a" * 21, "invalid_parameter"),
        ("x,12" + ",7" * 4999, "too_many"),
    ],
)
async def test_what_names_nobody_is_refused_before_the_stream(world: World, text: str, code: str) -> None:
    site = await world.user("ann")
    answer = await world.call("POST", "/v1/events", site, data={"follow": text, "wait": "0"})
    assert answer.error == (413 if code == "too_many" else 400, code, "follow")


async def test_ids_ask_nothing(app: web.Application, monkeypatch: pytest.MonkeyPatch) -> None:
    users = app[app_keys.STORE].users
    monkeypatch.setattr(users, "resolve_names", None)
    for text in ("12", "12,13", "@me", "12,@me"):
        await resolve_followed(users, {"follow": text})
    with pytest.raises(ParameterError):
        await resolve_followed(users, {"follow": "12,a-b"})


@pytest.mark.parametrize(
    ("rules", "place"),
    [
        ("tea from:NOBODY", "column 5"),
        ("from:ann\nnews:tea OR to:x_y", "rule 2: to:x_y never matches, because no user is named x_y; column 13"),
        ("(retweets_of:nobody tea) OR from:12", "column 2"),
    ],
)
async def test_a_rule_that_names_nobody_is_refused_with_its_column(world: World, rules: str, place: str) -> None:
    ann = await world.user("ann")
    for path in ("/v1/events?wait=0", "/v1/stream"):
        answer = await world.call("POST", path, ann, data={"rule": rules})
        assert answer.error == (400, "invalid_parameter", "rule")
        assert place in answer.json["error"]["message"]
    known = await world.call("POST", "/v1/events", ann, data={"rule": "from:ANN -to:12", "wait": "0"})
    assert known.status == 200
