"""A removal asks the streams that were sent its post or comment, and these are all that must be asked."""

import random
from typing import Any

import pytest

from stream_server.hub.visibility import sent_subjects
from stream_server.hub.visibility.sent_subjects import SentMemory, SentSubjects
from tests.stream_server.hub.world import Graph, World, user_json
from tests.waiting import eventually


@pytest.fixture
def short_memory(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sent_subjects, "MAX_REMEMBERED_SUBJECTS", 4)
    monkeypatch.setattr(sent_subjects, "COMPACT_AFTER", 7)
    return 4


@pytest.mark.parametrize("seed", range(2))
def test_the_index_knows_what_each_stream_remembers(short_memory: int, seed: int) -> None:
    """The model is a list for each stream, in the order of the deliveries."""
    source, index = random.Random(seed), SentSubjects()
    model: dict[SentMemory, list[str]] = {}
    ended = 0
    for _ in range(2000):
        if len(model) < 40:
            model[index.new_memory()] = []
        memory = source.choice(list(model))
        if source.random() < 0.03:
            memory.end()
            memory.remember("too late")
            del model[memory]
            ended += 1
            continue
        subject, known = str(source.randrange(60)), model[memory]
        if subject not in known:
            known[:] = [*known, subject][-short_memory:]
        memory.remember(subject)
        assert set(index.receivers_of(subject)) == {one.number for one, held in model.items() if subject in held}
        assert all((str(other) in memory) == (str(other) in known) for other in range(0, 60, 7))
    assert ended > 30
    for memory in model:
        memory.end()
    index.sweep(10_000)
    assert (len(index), index._memories, len(index._ended)) == (0, {}, 0)


def test_the_index_takes_room_for_what_is_remembered_only(short_memory: int) -> None:
    """A post that a thousand streams were sent and all but one forgot takes no room for a thousand."""
    index = SentSubjects()
    memories = [index.new_memory() for _ in range(1000)]
    for memory in memories:
        memory.remember("popular")
    for number, memory in enumerate(memories[1:]):
        for later in range(short_memory):
            memory.remember(f"{number} {later}")
    found: Any = index._receivers["popular"]
    assert (index.receivers_of("popular"), len(found) < 20) == ([memories[0].number], True)


async def test_a_delete_reaches_a_rules_stream_that_was_sent_the_post_by_a_rule_that_is_gone(world: World) -> None:
    world.graphs["1"] = Graph(blocks={"99": 1})
    _, socket = world.open(user="1", saved={"a": "red", "b": "end"}, rules="saved")
    await world.until_live()
    post = world.post("red words", uid="7")
    world.change_rules("1", removed=("a",))
    await eventually(lambda: "effective" in socket.kinds(), what="the change of rules")
    await world.until_live()
    world.delete(post)
    world.post("end", uid="7")
    await socket.expect_texts("red words", f"-{post.position.status_number}", "end")


async def test_an_old_view_forgets_what_it_was_sent_when_its_stream_ends(world: World) -> None:
    world.graphs["1"] = Graph(following={"7": 1})
    stream, _ = world.open_user_stream("1")
    await world.until_live()
    world.post("red", uid="7")
    world.publish("follow", source=user_json("1"), target=user_json("8"))
    index = world.hub.viewer_cache.sent_subjects
    assert (len(index), len(index._memories)) == (1, 1)
    stream.connection_lost()
    world.hub._drop_unused_caches()
    assert (len(index), index._memories) == (0, {})
