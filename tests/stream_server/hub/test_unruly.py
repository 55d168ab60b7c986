"""The hub where the index will not have a stream."""

import pytest

from filters.base import Failed
from filters.combine import Subscription
from filters.index import Index
from filters.track import Track
from stream_server.hub.group import Group
from tests.stream_server.hub.world import World
from tests.waiting import eventually


async def test_a_group_that_could_not_be_opened_is_not_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream fails; the next one that asks the same is opened anew, and hears of what happens."""
    whole = Index.add

    def fails_once(index: Index[Group], group: Group, subscription: Subscription) -> None:
        monkeypatch.setattr(Index, "add", whole)
        raise Failed(Track.parse("tea"), ValueError("no index holds this"))

    monkeypatch.setattr(Index, "add", fails_once)
    with pytest.raises(Failed, match="no index holds this"):
        world.open(track="tea")
    _, socket = world.open(track="tea")
    await eventually(lambda: world.hub.live_members() == 1, what="one live")
    world.post("tea")
    await socket.tells("tea")
