"""An entry that somebody else publishes on the bus is not believed."""

import json
from pathlib import Path

import pytest

from stream_server.events.position import EPOCH_MS
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended


async def forge(server: Server, api: Api, victim: str) -> None:
    """Publish a post in the victim's name at the next position of the log, and a revocation of everybody's tokens."""
    cursor = await api.head()
    entry_id, _, number = cursor.partition(".")
    ms = max(int(entry_id.partition("-")[0]), EPOCH_MS) + 1000
    status = {"id": "4096", "uid": victim, "login": "victim", "message": "forged", "entities": {}}
    body = json.dumps({"wire": {"status": status}, "facts": {"author": {"id": victim, "login": "victim"}}})
    with server.redis_client() as client:
        client.publish("events:post", f"{ms}-0 {int(number) + 1} post public {body}")
        client.publish("events:post", f"{ms + 5}-0 {int(number) + 900} post public {body}")
        revocation = json.dumps({"wire": {"uid": victim, "sessions": [], "before": 4_000_000_000}})
        client.publish("events:revoke", f"{ms + 9}-0 {int(number) + 2} revoke - {revocation}")


@pytest.mark.parametrize("defended", [False, True])
async def test_a_forged_entry_reaches_streams_only_without_the_defence(tmp_path: Path, *, defended: bool) -> None:
    module = "stream_server" if defended else "tests.attacks.undefended"
    async with Server(tmp_path, module=module) as server, Api(server) as api:
        victim = await api.user()
        async with await api.stream({"follow": victim}, uid=victim) as stream:
            await forge(server, api, victim)
            if not defended:
                await stream.until(lambda s: s.events or s.of("gap") or s.ended)
                assert any("forged" in str(event) for event in stream.events)
                return
            await api.until_metric("events_unsigned_total", lambda count: count == 3)
            posted = await api.post(victim, "real")
            await stream.until(lambda s: s.events)
            assert stream.received == [("post", posted["id"])]
            assert not stream.of("gap")
            assert await api.metric("events_malformed_total") == 0
