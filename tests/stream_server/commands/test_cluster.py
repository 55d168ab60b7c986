"""The command ``cluster`` on real nodes: make a cluster, refuse what does not fit, move the core, find faults."""

import json
import random
from collections.abc import Iterator
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from stream_server.cli import cli
from stream_server.commands import cluster as commands
from stream_server.commands.check_result import CheckState
from stream_server.commands.doctor_cluster import SET_UP_WELL, check_cluster_setup
from stream_server.commands.doctor_redis import NODE_OF_A_CLUSTER, check_redis
from stream_server.config import config
from stream_server.jobs.cluster_watch import ClusterWatch
from stream_server.store.redis import cluster_check
from stream_server.store.redis.acl import acl_line
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_health import CORE_OPEN, NOT_OWNED, ClusterHealth
from stream_server.store.redis.cluster_layout import plan_ranges, plan_shards
from stream_server.store.redis.cluster_node import AdminNode, AdminNodes, ClusterFault, NodeRow, parse_row
from tests.redis_cluster import CORE_SLOT, PrivateCluster, layout
from tests.redis_process import binaries, newest
from tests.waiting import PATIENCE, eventually


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["cluster", *map(str, arguments)])


def named(host: str, port: int = 6379) -> Any:
    return AdminNode((host, port), 1)


def names(shards: list[list[AdminNode]]) -> list[list[str]]:
    return [[node.address[0] for node in shard] for shard in shards]


@pytest.mark.parametrize("shards", [3, 4, 7, 100])
def test_every_slot_has_one_shard_and_the_core_is_alone(shards: int) -> None:
    ranges = plan_ranges(shards)
    assert ranges[0] == [(CORE_SLOT, CORE_SLOT)]
    owned = sorted(slot for each in ranges for first, last in each for slot in range(first, last + 1))
    assert owned == list(range(16_384))
    assert len(ranges) == len(layout(shards))


def test_replicas_are_on_other_hosts_than_their_primaries() -> None:
    nodes = [named(host, port) for host in "abc" for port in (1, 2)]
    shards = plan_shards(nodes, 1)
    assert shards[0][0] is nodes[0]
    assert {shard[0].address[0] for shard in shards} == {"a", "b", "c"}
    assert all(primary != replica for primary, replica in names(shards))


def test_a_number_of_nodes_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ClusterFault, match="3 shards of 2: name 6, 8 or more"):
        plan_shards([named("a")] * 5, 1)


def test_the_variable_of_the_password_does_not_stop_a_server() -> None:
    variables = {option.envvar for each in commands.cluster.commands.values() for option in each.params}
    config.load({}, {str(name): "a-password" for name in variables - {None}})


@pytest.fixture(scope="module")
def cluster() -> Iterator[PrivateCluster]:
    """A cluster that the command made."""
    nodes = PrivateCluster(newest())
    try:
        nodes.start(made=False)
        made = run("create", *addresses(nodes), "--json")
        assert made.exit_code == 0, made.output
        assert json.loads(made.stdout) == {"redis": nodes.url}
        yield nodes
    finally:
        nodes.stop()


def addresses(cluster: PrivateCluster) -> list[str]:
    return [f"127.0.0.1:{node.port}" for node in cluster.nodes]


@pytest.mark.extended
def test_the_made_cluster_is_well_and_its_core_moves_to_a_replica(cluster: PrivateCluster) -> None:
    core = cluster.owner()
    assert core is cluster.nodes[0]
    assert cluster.slots(core) == [CORE_SLOT]
    assert run("check", addresses(cluster)[3]).output == "ok: the cluster is set up well\n"
    refused = run("create", *addresses(cluster))
    assert refused.exit_code == 1
    assert "is part of a cluster already" in refused.output
    (replica,) = cluster.replicas(core)
    core.run("SET", "{core}:kept", "1")
    moved = run("move-core", f"127.0.0.1:{replica.port}", "--json")
    assert moved.exit_code == 0, moved.output
    assert cluster.owner() is replica
    assert replica.run("GET", "{core}:kept") == b"1"
    cluster.agreed()


@pytest.mark.extended
def test_the_core_moves_to_a_new_node(cluster: PrivateCluster) -> None:
    member = cluster.owner()
    new = cluster.new_node()
    address = f"127.0.0.1:{new.port}"
    assert "knows no node" in run("move-core", address).output
    owner_of_others = cluster.primaries()[1]
    assert "owns slots of its own" in run("move-core", f"127.0.0.1:{owner_of_others.port}").output
    moved = run("move-core", address, "--member", f"127.0.0.1:{member.port}")
    assert moved.exit_code == 0, moved.output
    cluster.agreed()
    assert cluster.owner() is new


@pytest.mark.extended
async def test_the_doctor_finds_nodes_that_disagree_and_an_open_core(cluster: PrivateCluster) -> None:
    """A node of Redis that imports the core's slot does not learn its new owner. One of Valkey does."""
    forgets = next(iter(binaries())).startswith("Redis")
    cluster.agreed()
    assert await check_cluster_setup(cluster.url, PATIENCE, 0) == [SET_UP_WELL]
    core, other, *_ = cluster.primaries()
    replica = cluster.rested_replica(core)
    other.run("CLUSTER", "SETSLOT", CORE_SLOT, "IMPORTING", core.id)
    replica.run("CLUSTER", "FAILOVER")
    await eventually(lambda: all("master" in node.table()[replica.id]["flags"] for node in cluster.nodes))
    knowing = [node for node in cluster.nodes if not (forgets and node is other)]
    await eventually(lambda: all(node.table()[replica.id]["slots"] for node in knowing))
    broken = [result.sentence for result in await check_cluster_setup(cluster.url, PATIENCE, 0)]
    assert any("do not name the same owner of the core's slot" in sentence for sentence in broken) is forgets
    assert any(f"is being moved at 127.0.0.1:{other.port}" in sentence for sentence in broken)
    cluster.close_slot(CORE_SLOT)
    other.run("CLUSTER", "SETSLOT", CORE_SLOT, "NODE", replica.id)
    cluster.agreed()


@pytest.mark.extended
async def test_the_doctor_of_a_silent_cluster_is_told_and_sees_no_password(cluster: PrivateCluster) -> None:
    silent = await check_cluster_setup("redis+cluster://:hunter22@127.0.0.1:9", 1.0, 0)
    assert [result.state for result in silent] == [CheckState.BROKEN]
    assert "hunter22" not in silent[0].sentence
    part = cluster.url.replace("://", "://127.0.0.1:9,")
    assert [result.state for result in await check_cluster_setup(part, PATIENCE, 0)] == [CheckState.ADVICE]
    assert await check_cluster_setup("redis://127.0.0.1", PATIENCE, 0) == []
    assert NODE_OF_A_CLUSTER not in await check_redis(cluster.url, PATIENCE)


@pytest.mark.extended
async def test_the_watch_sees_an_open_core_and_says_what_is_set_up_wrongly(cluster: PrivateCluster) -> None:
    client = RedisClient(cluster.url, PATIENCE)
    watch = ClusterWatch(ClusterHealth(client, 5, client), random.Random(1))
    assert watch.fault == NOT_OWNED
    await watch.look()
    assert (watch.fault, watch.detail()) == ("", {})
    core, other, *_ = cluster.primaries()
    cluster.open_slot(CORE_SLOT, core, other)
    await watch.look()
    assert watch.fault == CORE_OPEN
    cluster.close_slot(CORE_SLOT)
    await watch.look()
    await watch.check()
    assert watch.fault == ""
    (warning,) = watch.warnings
    assert watch.detail() == {"warnings": (warning,)}
    assert "--write-replicas 5" in warning
    await client.close()


@pytest.mark.extended
def test_a_server_with_the_least_rights_sees_what_is_wrong(cluster: PrivateCluster) -> None:
    """It may read no settings, because passwords are among them."""
    rules = acl_line("server", "least", sha256(b"a password").hexdigest()).split()[1:]
    for node in cluster.nodes:
        node.run("ACL", "SETUSER", *rules)
    found = run("check", addresses(cluster)[0], "--username", "least", "--password", "a password")
    (line,) = found.output.splitlines()
    assert "cannot be read (CONFIG GET)" in line


@pytest.mark.extended
def test_check_finds_an_open_core_and_settings_that_cost(cluster: PrivateCluster) -> None:
    core, other, *_ = cluster.primaries()
    address = f"127.0.0.1:{cluster.nodes[4].port}"
    cluster.open_slot(CORE_SLOT, core, other)
    found = run("check", address, "--json")
    assert found.exit_code == 1
    assert [finding["grave"] for finding in json.loads(found.stdout)] == [True, True]
    assert "move-core" in found.stdout
    cluster.close_slot(CORE_SLOT)
    core.run("CONFIG", "SET", "cluster-require-full-coverage", "yes", "cluster-node-timeout", "15000")
    found = run("check", address, "--write-replicas", len(cluster.replicas(core)))
    assert found.exit_code == 0
    assert "cluster-require-full-coverage is yes" in found.output
    assert "cluster-node-timeout is 15000 ms" in found.output
    assert "after a failover all writes are refused" in found.output
    core.run("ACL", "SETUSER", "default", "-config")
    assert "cannot be read (CONFIG GET)" in run("check", address).output


@pytest.mark.extended
async def test_the_doctor_refuses_one_node_in_place_of_the_cluster(cluster: PrivateCluster) -> None:
    found = await check_redis(f"redis://127.0.0.1:{cluster.owner().port}", 5)
    assert NODE_OF_A_CLUSTER in found


class ScriptedNode:
    """A node whose table of nodes is ``views``, one for each look; the last one stays."""

    def __init__(self, name: str, *views: str) -> None:
        self.name = name
        self._views = list(views)

    async def rows(self) -> list[NodeRow]:
        view = self._views.pop(0) if len(self._views) > 1 else self._views[0]
        return [parse_row(line.replace("myself,", "") if self.name not in line else line) for line in view.splitlines()]

    async def cluster_info(self) -> dict[str, str]:
        return {"cluster_state": "ok"}

    async def run(self, *_: object) -> list[bytes]:
        return [b"cluster-require-full-coverage", b"no", b"cluster-node-timeout", b"2000"]


def table(owner: str, *, opened: str = "", failed: str = "") -> str:
    """Return CLUSTER NODES: of ``a:1`` and ``b:1`` one owns the core and the other copies it; ``c:1`` has the rest."""
    other = "b" if owner == "a" else "a"
    return "\n".join([
        f"{owner} {owner}:1@2 myself,master{failed} - 0 0 3 connected {CORE_SLOT}",
        f"{other} {other}:1@2 myself,slave {owner} 0 0 3 connected",
        f"c c:1@2 myself,master - 0 0 2 connected 0-{CORE_SLOT - 1}{opened}",
    ])  # fmt: skip


OPEN = f" [{CORE_SLOT}-<-a]"
FAILED = table("a", failed=",fail")


@pytest.mark.parametrize(
    ("views", "said"),
    [
        ({"a": [table("a")], "b": [table("b")], "c": [table("b"), table("a")]}, ""),
        ({"a": [table("a")], "b": [table("a")], "c": [table("b")]}, "within seconds, so check again; if it stays"),
        ({"a": [table("a")], "b": [table("a")], "c": [table("b", opened=OPEN)]}, "SETSLOT"),
        ({"a": [FAILED], "b": [table("b")], "c": [FAILED, FAILED, table("b")]}, ""),
        ({"a": [FAILED], "b": [FAILED], "c": [FAILED]}, "a replica takes its place within seconds"),
    ],
    ids=["a failover ends", "they do not hear each other", "the slot is open", "a dead primary is replaced", "not yet"],
)
async def test_check_looks_twice_at_what_a_failover_ends(
    monkeypatch: pytest.MonkeyPatch, views: dict[str, list[str]], said: str
) -> None:
    """Only an open slot is closed by a person."""
    monkeypatch.setattr(cluster_check, "SETTLE_SECONDS", 0.0)
    nodes = {name: ScriptedNode(f"{name}:1", *each) for name, each in views.items()}
    opener = SimpleNamespace(connect=lambda address: nodes[address[0]])
    found = await cluster_check.check_cluster(cast(AdminNodes, opener), cast(AdminNode, nodes["c"]))
    told = " ".join(finding.sentence for finding in found)
    assert (said in told) if said else (told == "")
    assert ("SETSLOT" in told) == (said == "SETSLOT")


@pytest.mark.extended
def test_check_during_a_failover_advises_nothing_that_would_harm(cluster: PrivateCluster) -> None:
    cluster.agreed()
    core = cluster.owner()
    cluster.rested_replica(core)
    asked = next(node for node in cluster.primaries() if node is not core)
    told = []
    cluster.kill(core)
    while cluster.owner() is core:
        told.append(run("check", f"127.0.0.1:{asked.port}").output)
    cluster.start_again(core)
    cluster.agreed()
    assert told
    assert not [each for each in told if "SETSLOT" in each or "bus ports" in each]
