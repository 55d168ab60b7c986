"""The clients that are furthest behind: few, in order, and none that keeps up."""

from stream_server.monitoring.operations import MAX_CLIENTS, find_slow_clients
from tests.stream_server.hub.world import World


async def test_the_furthest_behind_are_found_among_many() -> None:
    """30 blocked clients beside 30 that keep up: the 20 with the most unsent bytes are listed, in order."""
    world = World()
    for number in range(60):
        _, socket = world.open(track="post")
        if number % 2:
            socket.block()
            socket.waiting += bytes(1000 + number)
    found = await find_slow_clients(world.hub, 3)
    assert len(found) == MAX_CLIENTS
    unsent = [client.unsent_bytes for client in found]
    assert unsent == sorted(unsent, reverse=True)
    assert min(unsent) > 1000 + 19
    assert {client.worker for client in found} == {3}


async def test_a_stream_of_a_reader_token_has_the_id_of_the_token_in_the_place_of_a_user() -> None:
    world = World()
    for user in ("7", ""):
        _, socket = world.open(user=user, track="post")
        socket.block()
        socket.waiting += bytes(1000)
    found = await find_slow_clients(world.hub, 1)
    assert sorted((client.uid, client.reader) for client in found) == [("", "j"), ("7", "")]


async def test_a_client_that_catches_up_is_as_many_entries_behind_as_it_has_not_read() -> None:
    world = World()
    start = world.hub.head
    for number in range(5):
        world.post(f"post {number}")
    session, _ = world.open(track="post")
    await world.until_live()
    assert await find_slow_clients(world.hub, 1) == []
    world.hub.live.remove(session, start)
    (found,) = await find_slow_clients(world.hub, 1)
    assert (found.behind, found.unsent_bytes, found.percent) == (5, 0, 0)
    world.hub.live.join(session)
