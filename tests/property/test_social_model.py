"""Random actions on the store and on a plain model: all reads give the same."""

import asyncio
import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store
from tests.property.model.audit import complaints
from tests.property.model.moves import MOVES
from tests.property.model.mutants import MUTANTS, Mutant, mutated
from tests.property.model.readings import compare
from tests.property.model.snapshot import Snapshot
from tests.property.model.walk import Walk
from tests.redis_process import RedisProcess
from tests.tiers import sample
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.extended, pytest.mark.timeout(3600)]  # for the long form

EXAMPLES = 10
LONG = 3_000
STEPS = 30
MUTANT_LIVES = 40

MUTANTS_PER_TRIED = 3
"""Without ``--full``, each third mutant is tried: one takes half a second of processor time."""

NAMES = [name for name, (often, _) in MOVES.items() for _ in range(often)]
NUMBERS = st.integers(0, 63)
STEP = st.tuples(st.sampled_from(NAMES), NUMBERS, NUMBERS, NUMBERS)
LIVES = st.lists(STEP, min_size=STEPS // 2, max_size=STEPS * 3 // 2)

Step = tuple[str, int, int, int]


async def _live(
    server: RedisProcess, steps: list[Step], sizes: SizeLimits, *, prompt: bool, mutant: Mutant | None = None
) -> None:
    """Do all steps in an empty store, which may have a mutant."""
    raw = server.client()
    raw.flushall()
    store = Store(server.url, size_limits=sizes, timeout_seconds=PATIENCE)
    try:
        with mutated(store, mutant):
            await store.open()
            walk = Walk(store, raw, sizes.timeline_max, prompt=prompt)
            await walk.begin()
            for name, a, b, c in steps:
                await MOVES[name][1](walk, a, b, c)
            await compare(walk)
            wrong = complaints(Snapshot(raw), walk.journal)
            assert not wrong, walk.because("\n".join(wrong))
    finally:
        await store.close()
        raw.close()


def _try(server: RedisProcess, sizes: SizeLimits, *, prompt: bool, full: bool) -> None:
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


SHORT = SizeLimits(timeline_max=6, fanout_batch_size=2, adds_per_trim=1)
"""Each addition trims its timeline, as in the model: else a removal shows an older status that waited to be trimmed."""


def test_short_timelines_equal_the_model(private_redis: RedisProcess, full: bool) -> None:  # noqa: FBT001 - a fixture
    """The jobs run after every action."""
    _try(private_redis, SHORT, prompt=True, full=full)


def test_whole_timelines_equal_the_model(private_redis: RedisProcess, full: bool) -> None:  # noqa: FBT001 - a fixture
    """The jobs run late, after later changes."""
    _try(private_redis, SizeLimits(timeline_max=200, fanout_batch_size=2), prompt=False, full=full)


@pytest.mark.parametrize(
    "mutant",
    sample(MUTANTS, lambda mutant: mutant in MUTANTS[::MUTANTS_PER_TRIED], lambda _: False),
    ids=lambda mutant: mutant.name,
)
def test_the_comparison_detects_each_mutant(private_redis: RedisProcess, mutant: Mutant) -> None:
    for seed in range(mutant.seed, mutant.seed + MUTANT_LIVES):
        source = random.Random(seed)
        steps = [_step(source, mutant.moves) for _ in range(STEPS)]
        try:
            asyncio.run(_live(private_redis, steps, SHORT, prompt=True, mutant=mutant))
        except AssertionError:
            asyncio.run(_live(private_redis, steps, SHORT, prompt=True))
            return
    pytest.fail(f"{mutant.name}, and the comparison did not detect it")


def _step(source: random.Random, names: Sequence[str]) -> Step:
    a, b, c = (source.randrange(64) for _ in range(3))
    return source.choice(names), a, b, c
