"""Each stream receives what the promises say, and nothing else, whatever happens around it."""

import pytest

from tests.stream_server.hub.play import Play
from tests.stream_server.hub.world import World
from tests.tiers import sample


@pytest.mark.parametrize("seed", sample(range(24), lambda seed: seed < 5))
async def test_everybody_receives_what_they_may_see_and_nothing_else(world: World, seed: int) -> None:
    """Six users, random relations, and streams that join live or from random cursors, against a plain model."""
    play = Play(world, seed)
    for number in range(400):
        play.step()
        if number % 20 == 5:
            await play.listen()
    assert play.check() > 100
    assert world.hub.counters.malformed == 0
