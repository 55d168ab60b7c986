"""Under any faults, everything that was acknowledged reaches every client that wants it, once and in order."""

from pathlib import Path

import pytest

from tests.end_to_end.random_faults.clients import Listener
from tests.end_to_end.random_faults.world import ALL, World, add_clients, world
from tests.waiting import eventually

pytestmark = pytest.mark.extended

SEED = 7
SECONDS, FULL_SECONDS = 14.0, 60.0
FULL_SEEDS = range(1, 9)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run one seed, several with ``--full``, or the seed given by ``--seed``."""
    if "seed" in metafunc.fixturenames:
        given = metafunc.config.getoption("--seed")
        seeds = FULL_SEEDS if metafunc.config.getoption("--full") else [SEED]
        metafunc.parametrize("seed", seeds if given is None else [given])


@pytest.mark.timeout(600)
async def test_random_faults_lose_no_acknowledged_write(tmp_path: Path, seed: int, *, full: bool) -> None:
    """The oracle finds no fault, and every planned fault has happened."""
    async with world(tmp_path, seed) as (made, faults):
        add_clients(made)
        await made.begun()
        made.write()
        late = made.add(Listener, since=made.clients[0].cursor, firehose="true", kinds=ALL)
        await faults.run(FULL_SECONDS if full else SECONDS)
        await eventually(lambda: made.warned, what="a warning for a slow client")
        made.add(Listener, since=late.record.start, firehose="true", kinds=ALL)
        await made.finish()
        assert made.complaints() == [], seed
        assert faults.missing == []
        _all_was_there(made)


def _all_was_there(made: World) -> None:
    """Check that the run was not trivial: it had many writes, retries and returns."""
    assert made.ledger.count("written") > 100
    assert made.ledger.count("given up") > 0
    assert made.site.answers[0] > 0
    assert made.site.answers[503] > 0
    assert sum(client.visits > 1 for client in made.clients) > len(made.clients) / 2
    assert "shutdown" in {told.message.get("code") for client in made.clients for told in client.record.told}
    # One server may have been down at that moment.
    assert any("subscription to Redis" in server.log for server in made.site.servers)
