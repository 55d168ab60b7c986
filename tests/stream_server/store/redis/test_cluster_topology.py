"""The table of a cluster, from scripted answers of its nodes: old views, dead and silent nodes, unknown hosts."""

import asyncio
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from stream_server.store.redis.cluster_topology import (
    CORE_SLOT,
    MAX_ASKED_NODES,
    CoreOwnerGuide,
    CoreReplicaGuide,
)
from stream_server.store.redis.connecting import HostPort
from tests.stream_server.store.redis.scripted_cluster import Member, ScriptedNodes, at, shard
from tests.waiting import eventually

OLD, NEW = shard("a", 7001, epoch=4), shard("b", 7002, epoch=5)


async def test_the_owner_with_the_highest_epoch_counts() -> None:
    topology = ScriptedNodes(p7001=OLD, p7002=NEW, p7003=OLD).topology()
    await topology.refresh()
    assert topology.core_owner == at(7002)
    await topology.close()


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
async def test_of_equal_epochs_the_smaller_node_id_counts(first: str, second: str) -> None:
    """Redis gives the node with the smaller id a higher epoch in the end."""
    nodes = ScriptedNodes(p7001=shard(first, 7001, epoch=4), p7002=shard(second, 7002, epoch=4))
    topology = nodes.topology()
    await topology.refresh()
    assert topology.core_owner == at(7001 if first == "a" else 7002)
    await topology.close()


async def test_each_slot_has_its_own_owner_and_slots_that_move_are_left_out() -> None:
    core = shard("a", 7001, slots=f"{CORE_SLOT} [{CORE_SLOT}->-b]", replica="slave")
    topology = ScriptedNodes(p7001=[*core, *shard("b", 7003, slots="0-100 200")]).topology()
    await topology.refresh()
    owners = [topology.owner(slot) for slot in (0, 100, 101, 200, CORE_SLOT)]
    assert owners == [at(7003), at(7003), None, at(7003), at(7001)]
    assert (topology.replicas(CORE_SLOT), topology.replicas(0), topology.replicas(101)) == ((at(7002),), (), ())
    assert topology.primaries() == [at(7003), at(7001)]
    await topology.close()


@pytest.mark.parametrize(
    ("host", "names", "expected"),
    [
        (b"10.0.0.9", (), "10.0.0.9"),
        (b"", (), "10.0.0.1"),
        (None, (), "10.0.0.1"),
        (b"?", (), "10.0.0.1"),
        (b"?", (b"ip", b"10.0.0.8"), "10.0.0.8"),
        (b"?", (b"hostname", b"x", b"ip", b"10.0.0.8"), "10.0.0.8"),
    ],
)
async def test_an_unknown_host_is_the_ip_or_that_of_the_asked_node(
    host: bytes | None, names: tuple[bytes, ...], expected: str
) -> None:
    view = [Member("a", 7005, str(CORE_SLOT), host=host, names=names)]
    topology = ScriptedNodes(p7001=view).topology()
    await topology.refresh()
    assert topology.core_owner == (expected, 7005)
    await topology.close()


@pytest.mark.parametrize(
    ("flags", "has_owner"),
    [
        ((("master,fail", "slave"),) * 2, False),
        ((("master,fail", "slave"), ("master", "slave")), True),  # no majority
        ((("master,fail?", "slave"),) * 2, True),
        ((("master,fail", "slave,fail"),) * 2, True),  # nobody can take its place
        ((("master,fail", ""),) * 2, True),
    ],
)
async def test_a_failed_primary_is_no_owner_if_a_replica_can_take_its_place(
    flags: tuple[tuple[str, str], ...], *, has_owner: bool
) -> None:
    views = [shard("a", 7001, flags=primary, replica=replica) for primary, replica in flags]
    nodes = ScriptedNodes(p7003=views[0], p7004=views[1])
    topology = nodes.topology()
    await topology.refresh()
    assert topology.core_owner == (at(7001) if has_owner else None)
    guide = CoreOwnerGuide(topology)
    assert guide.address == topology.core_owner
    if not has_owner:
        with pytest.raises(RedisConnectionError):
            await guide.resolve()
    await topology.close()


async def test_all_nodes_are_asked_if_the_chosen_ones_are_silent() -> None:
    ports = range(7001, 7008)
    nodes = ScriptedNodes(**{f"p{port}": NEW if port == 7007 else None for port in ports})
    topology = nodes.topology()
    await topology.refresh()
    assert topology.core_owner == at(7002)
    assert 7007 in nodes.asked
    nodes.asked.clear()
    await topology.refresh()
    assert nodes.asked[0] == 7007  # the one that answered goes first
    assert len(nodes.asked) == MAX_ASKED_NODES
    await topology.close()


async def test_the_table_stays_if_no_node_answers() -> None:
    nodes = ScriptedNodes(p7001=NEW, p7002=NEW)
    topology = nodes.topology()
    await topology.refresh()
    nodes.views = {7001: None, 7002: None}
    with pytest.raises(RedisConnectionError):
        await topology.refresh()
    topology.request_refresh()
    await eventually(lambda: len(nodes.asked) >= 6, what="a quiet refresh")
    assert topology.core_owner == at(7002)
    await topology.close()


async def test_the_node_that_a_refusal_names_is_asked_too() -> None:
    nodes = ScriptedNodes(p7001=OLD, p7002=NEW)
    topology = nodes.topology(7001)
    await topology.refresh()
    assert topology.core_owner == at(7001)
    await topology.refresh(at(7002))
    assert topology.core_owner == at(7002)
    await topology.close()


async def test_a_node_named_during_a_question_is_asked_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = ScriptedNodes(p7001=OLD, p7002=NEW)
    topology = nodes.topology(7001)
    go_on = asyncio.Event()
    ask = topology._ask_nodes  # the question stands still here

    async def slow(asked: list[HostPort]) -> object:
        found = await ask(asked)
        await go_on.wait()
        return found

    monkeypatch.setattr(topology, "_ask_nodes", slow)
    first = asyncio.create_task(topology.refresh())
    await eventually(lambda: nodes.asked, what="a question")
    second = asyncio.create_task(topology.refresh(at(7002)))
    await asyncio.sleep(0)  # it now waits for the question that runs
    go_on.set()
    await first
    await second
    assert topology.core_owner == at(7002)
    await topology.close()


async def test_a_replica_that_comes_is_known_after_the_next_question_and_the_same_answer_changes_nothing() -> None:
    failed = Member("s", 7003, primary="a", flags="slave,fail")
    nodes = ScriptedNodes(p7001=[*shard("a", 7001, replica="slave"), failed])
    topology, tables = nodes.topology(), list[int]()
    topology.on_table = lambda: tables.append(len(topology.core_nodes))
    await topology.refresh()
    await topology.refresh()
    assert tables == [2]
    nodes.views[7001] = [*shard("a", 7001, replica="slave"), failed._replace(flags="slave")]
    topology.start_polling()
    await eventually(lambda: tables == [2, 3], what="a poll")
    assert at(7003) in topology.core_nodes
    await topology.close()


async def test_connections_to_nodes_that_are_not_asked_any_more_are_closed() -> None:
    nodes = ScriptedNodes(p7001=NEW, p7002=NEW, p7003=NEW, p7004=NEW)
    topology = nodes.topology(7001, 7002, 7003)
    await topology.refresh(at(7004))
    assert len(nodes.asked) == 4
    assert len(nodes.closed) == 1  # three stay
    await topology.close()
    assert sorted(nodes.closed) == [7001, 7002, 7003, 7004]


async def test_a_connection_that_was_being_closed_when_the_table_is_closed_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = ScriptedNodes(p7001=NEW, p7002=NEW, p7003=NEW, p7004=NEW)
    topology, hangs = nodes.topology(7001, 7002, 7003), asyncio.Event()
    client = type(topology.open_client(at(7001)))
    close = client.aclose

    async def hang_once(each: Any) -> None:
        if not hangs.is_set():
            hangs.set()
            await asyncio.Event().wait()
        await close(each)

    monkeypatch.setattr(client, "aclose", hang_once)
    refreshing = asyncio.create_task(topology.refresh(at(7004)))
    await hangs.wait()
    await topology.close()
    await asyncio.wait([refreshing])
    assert sorted(nodes.closed) == [7001, 7002, 7003, 7004]


async def test_a_replica_is_kept_until_it_leaves_the_shard_and_a_preferred_one_is_taken() -> None:
    replicas = [Member(f"r{port}", port, primary="a", flags="slave") for port in (7002, 7003, 7004)]
    nodes = ScriptedNodes(p7001=[*shard("a", 7001), *replicas])
    topology = nodes.topology()
    guide = CoreReplicaGuide(topology, (at(7003), at(7009)))
    assert await guide.resolve() == at(7003)
    nodes.views[7001] = [*shard("a", 7001), *(one for one in replicas if one.port != 7003)]
    await topology.refresh()
    assert guide.address is None  # connections to it are closed before their next use
    assert await guide.resolve() in {at(7002), at(7004)}
    nodes.views[7001] = shard("a", 7001)
    await topology.refresh()
    with pytest.raises(RedisConnectionError):
        await guide.resolve()
    await topology.close()
