"""The operator's page of one process."""

import time

import msgspec
import pytest
from aiohttp import web

from stream_server.monitoring.history import OperationsHistory
from stream_server.monitoring.operations import HostState
from stream_server.web.http import app_keys
from tests.stream_server.web.world import World


@pytest.fixture
def settings() -> dict[str, object]:
    return {"limits": "lookups=2"}


async def test_an_administrator_reads_the_state_of_the_server(world: World) -> None:
    """The answer has the worker, its counts of requests and refusals, and the limit that was met."""
    ann = await world.user("ann")
    for _ in range(3):
        await world.call("GET", "/v1/users/available?login=x")
    assert (await world.call("GET", "/v1/admin/operations", ann)).error == (403, "insufficient_scope", None)
    answer = await world.call("GET", "/v1/admin/operations", ann, scope="admin")
    state = msgspec.json.decode(answer.body, type=HostState)
    (worker,) = state.workers
    assert (worker.worker, worker.ready, worker.requests) == (1, True, 5)
    assert worker.refusals == {"rate_limited": 1, "insufficient_scope": 1}
    assert worker.memory_bytes > 2**20
    assert worker.cpu_seconds > 0
    assert [(limit.limit, limit.count) for limit in state.limits] == [("lookups", 1)]
    assert limit_time_is_recent(state)


def limit_time_is_recent(state: HostState) -> bool:
    return "2024" < state.limits[0].last <= state.at


async def test_an_administrator_reads_the_last_hour(world: World, app: web.Application) -> None:
    """What was recorded before the request is there, and a client without the scope is refused."""
    ann, recorder = await world.user("ann"), app[app_keys.HISTORY]
    path = "/v1/admin/operations/history"
    assert (await world.call("GET", path, ann)).error == (403, "insufficient_scope", None)
    at = int(time.time()) - 60
    sample = msgspec.structs.replace(recorder.take(), at=at, streams=3)
    await app[app_keys.STORE].operation_samples.add(recorder.server, {msgspec.json.encode(sample): at})
    answer = await world.call("GET", path, ann, scope="admin")
    history = msgspec.json.decode(answer.body, type=OperationsHistory)
    assert (history.workers, history.streams, len(history.at)) == ([1], [3], 1)
    assert history.memory_bytes[0] > 2**20
