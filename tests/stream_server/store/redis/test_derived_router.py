"""The router of derived data: which packet goes to which node, what follows a refusal, and what a dead node costs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from stream_server.errors import Unavailable
from stream_server.store.redis import derived
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.derived import DerivedRouter
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.timeout_budget import CURRENT
from tests.stream_server.store.redis.budgets import budget
from tests.stream_server.store.redis.puppet_cluster import PuppetCluster
from tests.waiting import PATIENCE, eventually

SHORT = 1.5
"""A timeout in seconds for calls that must fail, and whose failure is found out after parts of it."""

LONG = 100.0
"""A timeout in seconds that no test may reach."""


@asynccontextmanager
async def opened(count: int = 3, seconds: float = PATIENCE) -> AsyncIterator[tuple[PuppetCluster, DerivedRouter]]:
    async with PuppetCluster(count) as cluster:
        core = RedisClient(cluster.url, seconds)
        assert core.topology is not None
        router = DerivedRouter(core, core.topology, cluster.url)
        try:
            yield cluster, router
        finally:
            await router.close()
            await core.close()


async def test_the_commands_of_a_node_leave_in_one_packet_and_the_replies_come_in_order() -> None:
    async with opened() as (cluster, router):
        keys = [cluster.key_of(node, number) for number in range(20) for node in range(3)]
        replies = await router.execute(*(("ZADD", key, "1", "1") for key in keys))
        assert replies == [number + 1 for number in range(20) for _ in range(3)]
        assert [len({each.packet for each in cluster.seen if each.node == node}) for node in range(3)] == [1, 1, 1]
        assert router.follow_ups == {}


async def test_later_commands_of_a_refused_key_are_sent_again_behind_it() -> None:
    """The first is refused, and the key comes to this node before the second: it must not overtake the first."""
    async with opened() as (cluster, router):
        key, other = cluster.key_of(0), cluster.key_of(0, 1)
        cluster.nodes[0].refusals[key] = [cluster.refusal("MOVED", key, 1)]
        commands: list[Command] = [("ZADD", key, "1", "1"), ("ZADD", other, "1", "1"), ("ZREM", key, "1")]
        assert await router.execute(*commands) == [1, 1, 2]
        assert [(each.node, each.command) for each in cluster.seen] == [
            *((0, command) for command in commands), (1, commands[0]), (1, commands[2])
        ]  # fmt: skip


async def test_tryagain_is_repeated_at_the_same_node_until_the_deadline() -> None:
    async with opened(seconds=SHORT) as (cluster, router):
        key, never = cluster.key_of(1), cluster.key_of(1, 1)
        cluster.nodes[1].refusals = {key: ["TRYAGAIN later"] * 2, never: ["TRYAGAIN later"] * 1000}
        found, failed = await router.execute_each(("GET", key), ("GET", never))
        assert found == 1
        assert isinstance(failed, Unavailable)
        assert {each.node for each in cluster.seen} == {1}
        assert router.follow_ups["tryagain"] > 2


async def test_nodes_that_name_each_other_are_asked_with_pauses_until_one_takes_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses = 0
    sleep = asyncio.sleep

    async def count_pauses(seconds: float) -> None:
        nonlocal pauses
        pauses += seconds == derived.PAUSE_SECONDS
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", count_pauses)
    async with opened() as (cluster, router):
        key = cluster.key_of(0)
        cluster.nodes[0].refusals[key] = [cluster.refusal("MOVED", key, 1)] * 3
        cluster.nodes[1].refusals[key] = [cluster.refusal("MOVED", key, 0)] * 3
        assert await router.execute(("GET", key)) == [1]
        assert [each.node for each in cluster.seen] == [0, 1, 0, 1, 0, 1, 0]
        assert pauses == 5


async def test_a_port_without_a_host_means_the_same_host() -> None:
    async with opened() as (cluster, router):
        key = cluster.key_of(0)
        cluster.nodes[0].refusals[key] = [cluster.refusal("MOVED", key, 1).replace("127.0.0.1", "")]
        assert await router.execute(("GET", key)) == [1]
        assert [each.node for each in cluster.seen] == [0, 1]


async def test_refused_keys_do_not_fail_the_others() -> None:
    async with opened() as (cluster, router):
        down, wrong, right = cluster.key_of(0), cluster.key_of(0, 1), cluster.key_of(1)
        cluster.nodes[0].refusals = {
            down: ["CLUSTERDOWN Hash slot not served"] * 2, wrong: ["WRONGTYPE Operation against a key"] * 2
        }  # fmt: skip
        commands = [("GET", key) for key in (right, down, wrong)]
        found, unavailable, internal = await router.execute_each(*commands)
        assert found == 1
        assert isinstance(unavailable, Unavailable)
        assert internal.status == 500
        with pytest.raises(Unavailable):
            await router.execute(*commands)


async def test_a_dead_node_fails_its_keys_at_once_until_it_answers_again(caplog: pytest.LogCaptureFixture) -> None:
    async with opened() as (cluster, router):
        dead, alive = cluster.key_of(1), cluster.key_of(2)
        await router.execute(("GET", dead), ("GET", alive))
        await cluster.nodes[1].kill()
        failed, found = await router.execute_each(("GET", dead), ("GET", alive))
        assert isinstance(failed, Unavailable)
        assert found == 2
        await eventually(lambda: router.unreachable_nodes == [cluster.address(1)])
        packets = cluster.packets
        with pytest.raises(Unavailable):
            await router.execute(("GET", dead))
        assert cluster.packets == packets
        await cluster.nodes[1].start()
        await eventually(lambda: not router.unreachable_nodes)
        assert await router.execute(("GET", dead)) == [2]
        assert router.nodes_returned == 1
    assert [line.split(":")[-1].lstrip("0123456789") for line in caplog.messages] == [
        " does not answer; requests for its keys fail", " answers again"
    ]  # fmt: skip


async def test_calls_that_wait_for_a_frozen_node_end_before_their_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived, "SUSPECT_SHARE", 0.2 / LONG)
    async with opened(seconds=LONG) as (cluster, router):
        frozen, alive = cluster.key_of(1), cluster.key_of(2)
        await router.execute(("GET", frozen), ("GET", alive))
        cluster.nodes[1].speaks.clear()
        async with asyncio.timeout(PATIENCE):
            replies = await asyncio.gather(*(router.execute_each(("GET", frozen), ("GET", alive)) for _ in range(3)))
        assert {type(failed) for failed, _ in replies} == {Unavailable}
        assert [found for _, found in replies] == [2, 3, 4]
        assert router.unreachable_nodes == [cluster.address(1)]
        cluster.nodes[1].speaks.set()
        await eventually(lambda: not router.unreachable_nodes)
        await router.execute(("GET", frozen))


async def test_a_node_that_left_the_table_is_let_go_and_counts_as_returned() -> None:
    async with opened(seconds=SHORT) as (cluster, router):
        key = cluster.key_of(1)
        await router.execute(("GET", key))
        await cluster.nodes[1].kill()
        await router.execute_each(("GET", key))
        await eventually(lambda: bool(router.unreachable_nodes))
        cluster.owners = [0 if owner == 1 else owner for owner in cluster.owners]
        cluster.epoch += 1
        await eventually(lambda: not router.unreachable_nodes)  # by the next poll
        assert router.nodes_returned == 1
        assert await router.execute(("GET", key)) == [1]
        await eventually(lambda: not router._closing)


async def test_an_address_that_only_a_late_node_names_is_no_unreachable_node() -> None:
    async with opened() as (cluster, router):
        key = cluster.key_of(0)
        await router.execute(("GET", key))
        cluster.owners = [0 if owner == 1 else owner for owner in cluster.owners]
        cluster.epoch += 1
        await router._topology.refresh()
        await cluster.nodes[1].kill()
        cluster.nodes[0].refusals[key] = [cluster.refusal("MOVED", key, 1)]
        (failed,) = await router.execute_each(("GET", key))
        assert isinstance(failed, Unavailable)
        assert router.unreachable_nodes == []
        await eventually(lambda: cluster.address(1) not in router._nodes)
        assert router.unreachable_nodes == []
        assert await router.execute(("GET", key)) == [2]


async def test_a_call_of_many_nodes_is_charged_once() -> None:
    async with opened() as (cluster, router):
        commands = [("GET", cluster.key_of(node)) for node in range(3)]
        await router.execute(*commands)
        with budget(PATIENCE):
            await router.execute(*commands)
            left = CURRENT.get()
            assert left is not None
            assert 0 < left.remaining_seconds < PATIENCE
            left.remaining_seconds = 0
            cluster.seen.clear()
            with pytest.raises(Unavailable):
                await router.execute(*commands)
            assert cluster.seen == []


async def test_without_an_owner_the_key_is_unavailable() -> None:
    async with opened() as (cluster, router):
        for node in cluster.nodes:
            await node.kill()
        (failed,) = await router.execute_each(("GET", "home:{1}"))
        assert isinstance(failed, Unavailable)


async def test_keys_whose_owner_is_learned_join_those_of_the_same_node(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as (cluster, router):
        known, new = cluster.key_of(0), cluster.key_of(0, 1)
        cluster.give(new, None)
        await router.execute(("GET", known))
        learned = 0

        async def learn(_deadline: float) -> None:
            nonlocal learned
            learned += 1
            cluster.give(new, 0)
            await router._topology.refresh()

        monkeypatch.setattr(router, "_learn_owners", learn)
        assert await router.execute(("GET", known), ("GET", new), ("GET", known)) == [2, 3, 4]
        assert learned == 1
