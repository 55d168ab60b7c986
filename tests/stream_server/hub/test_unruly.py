"""The hub where the index will not have a stream."""

import pytest

from filters.base import FilterFailure
from filters.subscription import Subscription
from filters.subscription_index import SubscriptionIndex
from filters.track import Track
from stream_server.hub.group import ClientGroup
from tests.stream_server.hub.world import World
from tests.waiting import eventually


async def test_a_group_that_could_not_be_opened_is_not_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream fails; the next one that asks the same is opened anew, and hears of what happens."""
    whole = SubscriptionIndex.add

    def fails_once(index: SubscriptionIndex[ClientGroup], group: ClientGroup, subscription: Subscription) -> None:
        monkeypatch.setattr(SubscriptionIndex, "add", whole)
        raise FilterFailure(Track.parse("tea"), ValueError("no index holds this"))

    monkeypatch.setattr(SubscriptionIndex, "add", fails_once)
    with pytest.raises(FilterFailure, match="no index holds this"):
        world.open(track="tea")
    _, socket = world.open(track="tea")
    await eventually(lambda: world.hub.count_live_clients() == 1, what="one live")
    world.post("tea")
    await socket.tells("tea")
