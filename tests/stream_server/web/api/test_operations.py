"""The operator's page of one process."""

import msgspec
import pytest

from stream_server.monitoring.operations import HostState
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
