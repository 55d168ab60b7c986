"""Clients may share a group because it shows exactly what each of their viewers would show."""

import random

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.visibility.viewer import AccountStatus, Viewer
from tests.stream_server.hub.world import Graph, World

USERS = [str(number) for number in range(1, 9)]
READER = "1"


def _public_entries(world: World, source: random.Random) -> list[Entry]:
    posts = [world.post("first words", uid) for uid in USERS]
    entries = list(posts)
    for number in range(60):
        author, post = source.choice(USERS), source.choice(posts)
        posts.append(world.post("" if number % 3 else "a quote", author, post))
        comment = world.comment("a comment", author, source.choice(posts))
        entries += [posts[-1], comment]
        if number % 2:
            entries.append(world.uncomment(comment))
        entries.append(world.publish("follow", source={"id": author}, target={"id": source.choice(USERS)}))
    return [*entries, *(world.delete(post) for post in source.sample(posts, 20))]


def _account_status(source: random.Random) -> AccountStatus:
    status = AccountStatus()
    status.load(source.sample(USERS[1:], 2), source.sample(USERS[1:], 2), Position(0, 0, 0))
    return status


def _shown(entry: Entry | None) -> bytes | None:
    return None if entry is None else entry.wire


@pytest.mark.parametrize("seed", range(8))
async def test_a_shared_group_renders_what_each_of_its_viewers_would_see(world: World, seed: int) -> None:
    source = random.Random(seed)
    entries, status = _public_entries(world, source), _account_status(source)
    following = {uid: 0 for uid in source.sample(USERS[1:], 3) if uid not in status.protected}
    viewer = Viewer(READER, status)
    viewer.load(Graph(following=following))
    assert viewer.sees_public_view
    hidden_originals = 0
    for entry in entries:
        shown = status.render_today(entry)
        assert _shown(shown) == _shown(viewer.render_today(entry)), (entry.kind, entry.wire)
        hidden_originals += shown is not None and shown is not entry and entry.kind == "post"
    assert hidden_originals > 0
