"""Under any faults, everything that was acknowledged reaches every client that wants it, once and in order.

The windows of a summary have each event once. A program that reads a named subscription gets it at least once, and
nothing again of what it has acked. So do the programs that share one, in the order of each part, while they come, go
and die; and the endpoint of a webhook, with and without parts, which fails at random itself.
"""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.end_to_end.random_faults.clients import Listener
from tests.end_to_end.random_faults.crew import Crew
from tests.end_to_end.random_faults.hooks import DIES, FAULTS, Hook, PartedHook
from tests.end_to_end.random_faults.summaries import NEVER_HIDDEN, Counting
from tests.end_to_end.random_faults.workers import Worker
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
        hooks = _add_hooks(made)
        crew = Crew(made, firehose="true", kinds=ALL)
        workers = [made.add(Worker, firehose="true", kinds=ALL), made.add(Worker, track="storm,night gull")]
        counting = [made.add(Counting, firehose="true", kinds=NEVER_HIDDEN) for _ in range(3)]
        await made.begun()
        made.write()
        late = made.add(Listener, since=made.clients[0].cursor, firehose="true", kinds=ALL)
        async with asyncio.TaskGroup() as changing:
            changing.create_task(crew.change())
            await faults.run(FULL_SECONDS if full else SECONDS)
        await eventually(lambda: made.warned, what="a warning for a slow client")
        made.add(Listener, since=late.record.start, firehose="true", kinds=ALL)
        for hook in hooks:
            hook.is_well = True
        await made.finish()
        assert made.complaints() == [], seed
        assert faults.missing == []
        _all_was_there(made)
        _hooks_were_there(hooks)
        assert [wrong for worker in workers if isinstance(worker, Worker) for wrong in worker.wrong] == []
        assert all(worker.acked > 0 for worker in workers if isinstance(worker, Worker))
        assert all(client.windows and client.visits > 1 for client in counting if isinstance(client, Counting))
        assert any(worker.repeats > 0 for worker in workers if isinstance(worker, Worker))
        assert await crew.complaints() == []
        assert crew.repeats > 0
        assert "rebalanced" in crew.ends


def _add_hooks(made: World) -> list[Hook]:
    """Add endpoints of webhooks, one of them with parts. They share their faults."""
    added = [
        *(made.add(kind, firehose="true", kinds=ALL) for kind in (Hook, PartedHook)),
        made.add(Hook, track="storm,night gull"),
    ]
    hooks = [hook for hook in added if isinstance(hook, Hook)]
    for hook in hooks:
        hook.planned = hooks[0].planned
    return hooks


def _hooks_were_there(hooks: list[Hook]) -> None:
    """Check that endpoints failed in every way, got events again, and none that was acked."""
    assert [wrong for hook in hooks for wrong in hook.wrong] == []
    assert sum((hook.faults for hook in hooks), Counter[str]()).keys() == {*FAULTS, DIES, "ok"}
    assert all(hook.acked > 0 for hook in hooks)
    assert any(hook.repeats > 0 for hook in hooks)
    assert all(hook.sharing > 1 and hook.repeats > 0 for hook in hooks if isinstance(hook, PartedHook))


def _all_was_there(made: World) -> None:
    """Check that the run was not trivial: it had many writes, retries and returns."""
    assert made.ledger.count("written") > 100
    assert made.ledger.count("given up") > 0
    assert made.site.answers[0] > 0
    assert made.site.answers[503] > 0
    assert sum(client.visits > 1 for client in made.clients) > len(made.clients) / 2
    assert made.site.codes["shutdown"] > 0
    # One server may have been down at that moment.
    assert any("subscription to Redis" in server.log for server in made.site.servers)
