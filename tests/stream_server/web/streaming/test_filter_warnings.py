"""The warnings about filters that can match nothing, as polls and streams get them."""

import json
from typing import Any

import pytest

from tests.stream_server import tokens
from tests.stream_server.web.world import World


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"track": "tea", "kinds": "follow"}, {"filter": "track"}),
        ({"rule": "tea -tea"}, {"filter": "rule", "terms": ["tea -tea"]}),
    ],
)
async def test_a_poll_and_a_stream_are_told_of_contradictions(
    world: World, asked: dict[str, str], told: dict[str, Any]
) -> None:
    ann = await world.user("ann")
    first = (await world.call("POST", "/v1/events", ann, data={**asked, "wait": "30"})).json["events"]
    headers = {"Authorization": f"Bearer {tokens.fresh(ann, 'stream')}", "Accept": "application/x-ndjson"}
    async with world.session.post("/v1/stream", data=asked, headers=headers) as stream:
        hello, warning = [json.loads(await stream.content.readline()) for _ in range(2)]
    assert hello["kind"] == "hello"
    for message in (*first, warning):
        found = {name: message[name] for name in ("kind", "code", "filter", "terms") if name in message}
        assert found == {"kind": "warning", "code": "never_matches", **told}


async def test_a_poll_without_a_cursor_is_told_of_terms_that_never_match(world: World) -> None:
    ann = await world.user("ann")
    asked = {"track": "tea,#tag's,:)", "wait": "30"}
    first = (await world.call("POST", "/v1/events", ann, data=asked)).json
    (told,) = first["events"]
    assert (told["kind"], told["code"], told["filter"]) == ("warning", "never_matches", "track")
    assert told["terms"] == ["#tag's", ":)"]
    later = await world.call("POST", "/v1/events", ann, data={**asked, "wait": "0", "since": first["cursor"]})
    assert later.json["events"] == []
