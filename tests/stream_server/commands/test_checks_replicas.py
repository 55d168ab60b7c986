"""What the doctor finds where there are replicas and Sentinels."""

import pytest

from stream_server import config
from stream_server.commands import backstage, checks
from stream_server.commands.checks import Finding, State
from stream_server.commands.exits import Failure
from stream_server.config import Config
from stream_server.store.request import Request
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.store.replicas import linked, servers
from tests.stream_server.store.watching import watch
from tests.waiting import PATIENCE

BINARY = next(iter(binaries().values()))


def states(findings: list[Finding]) -> list[State]:
    """How they came out, in their order."""
    return [finding.state for finding in findings]


def _settled(primary: RedisProcess, read: RedisProcess, copies: int) -> Config:
    more = {"redis_timeout_seconds": PATIENCE, "write_replicas": copies}
    return config.load({"redis": primary.url, "redis_read": read.url, **more}, {})


async def test_replicas_that_are_there_or_not() -> None:
    """The one to read from is looked at as the server does, those that writes wait for are counted."""
    with servers(BINARY, 2) as (primary, replica):
        alone = await checks.replicas(_settled(primary, replica, 1), primary.url)
        replica.replica_of(primary)
        await linked(replica)
        paired = await checks.replicas(_settled(primary, replica, 1), primary.url)
        wanting = await checks.replicas(_settled(primary, replica, 2), primary.url)
        primary.kill()
        assert await checks.replicas(_settled(primary, replica, 1), primary.url) == []
    assert states(alone) == [State.ADVICE, State.BROKEN]
    assert states(paired) == [State.GOOD, State.GOOD]
    assert states(wanting) == [State.GOOD, State.BROKEN]


async def test_sentinels() -> None:
    """They answer and agree; some are gone; all are. Behind them the commands find a Redis like any other."""
    with watch(BINARY) as watched:
        await watched.settled()
        well = await checks.sentinels(watched.url, PATIENCE)
        behind = await checks.redis(watched.url, PATIENCE)
        settled = config.load({"redis": watched.url, "write_replicas": 1, "redis_timeout_seconds": PATIENCE}, {})
        async with backstage.store(settled) as store:
            assert await store.users.create_many([("ann", "Ann")], Request.fresh())
        first = watched.sentinels[0]
        few = await checks.sentinels(f"redis+sentinel://127.0.0.1:{first.port}/main", PATIENCE)
        unknown = await checks.sentinels(f"redis+sentinel://u:hunter22@127.0.0.1:{first.port}/other", PATIENCE)
        watched.sentinels[1].kill()
        fewer = await checks.sentinels(watched.url, PATIENCE)
        for sentinel in watched.sentinels:
            sentinel.kill()
        gone = await checks.sentinels(watched.url, PATIENCE)
        with pytest.raises(Failure, match="cannot be reached"):
            async with backstage.store(settled):
                pass
    assert states(well) == [State.GOOD]
    assert behind[0].sentence.startswith("Redis ")
    assert states(few) == [State.ADVICE, State.GOOD]
    assert states(fewer) == [State.ADVICE, State.GOOD]
    assert states(gone) == states(unknown) == [State.BROKEN]
    assert not any("hunter22" in finding.sentence for finding in unknown)
    assert await checks.sentinels("redis://localhost", 1.0) == []
