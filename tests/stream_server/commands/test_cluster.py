"""A Redis Cluster that is made and changed by the commands of docs/cluster.md, and what the doctor says of it."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stream_server.commands.doctor_machine import CheckState
from stream_server.commands.doctor_redis import NODE_OF_A_CLUSTER, SET_UP_WELL, check_cluster_setup, check_redis
from stream_server.commands.redis_acl import acl_line
from stream_server.store.redis import cluster_check
from tests.redis_cluster import CORE_SLOT, Node, PrivateCluster, wait_until
from tests.redis_process import binaries, newest
from tests.waiting import PATIENCE, eventually

PAGE = Path(__file__).parents[3] / "docs" / "cluster.md"


def run_page(block: int, nodes: list[Node]) -> None:
    """Run one block of the page's shell commands, with these nodes in the place of 10.0.0.1, 10.0.0.2 and so on.

    A command is repeated while Redis refuses it, as a person does who waits. What the doctor says is tested elsewhere.
    """
    lines = re.findall(r"```sh\n(redis-cli.*?)```", PAGE.read_text(), re.DOTALL)[block].splitlines()
    for line in lines:
        if line.startswith("redis-cli"):
            command = re.sub(r"(-h|meet) 10\.0\.0\.(\d)(?: 6379)?", partial(_named, nodes), line)
            answer = b"master_link_status:up" if "info" in command else b"OK"
            wait_until(partial(_says, command, answer), PATIENCE, command)


def _named(nodes: list[Node], place: "re.Match[str]") -> str:
    node = nodes[int(place[2]) - 1]
    return f"-p {node.port}" if place[1] == "-h" else f"meet 127.0.0.1 {node.port} {node.bus_port}"


def _says(command: str, answer: bytes) -> bool:
    said = subprocess.run(command, shell=True, capture_output=True, check=False).stdout
    return answer in said.split()


async def check(cluster: PrivateCluster, replicas: int = 0, **login: str) -> list[str]:
    """Return what the doctor says of the cluster, the grave with NO before them."""
    url = cluster.url if not login else cluster.url.replace("://", f"://{login['user']}:{login['password']}@")
    found = await check_cluster_setup(url, PATIENCE, replicas)
    return [f"{'NO ' if each.state is CheckState.BROKEN else ''}{each.sentence}" for each in found]


@pytest.fixture(scope="module")
def cluster() -> Iterator[PrivateCluster]:
    """A cluster that the commands of the page made."""
    if shutil.which("redis-cli") is None:
        pytest.skip("no redis-cli on PATH")
    nodes = PrivateCluster(newest())
    try:
        nodes.start(made=False)
        run_page(0, nodes.nodes)
        wait_until(lambda: {len(node.table()) for node in nodes.nodes} == {6}, PATIENCE, "nodes that have met")
        run_page(1, nodes.nodes)
        nodes.agreed()
        yield nodes
    finally:
        nodes.stop()


@pytest.mark.extended
async def test_the_cluster_of_the_page_is_set_up_well(cluster: PrivateCluster) -> None:
    core = cluster.owner()
    assert core is cluster.nodes[0]
    assert cluster.slots(core) == [CORE_SLOT]
    assert await check_cluster_setup(cluster.url, PATIENCE, 0) == [SET_UP_WELL]


@pytest.mark.extended
def test_the_core_moves_to_a_new_node_with_its_data(cluster: PrivateCluster) -> None:
    core, new = cluster.owner(), cluster.new_node()
    core.run("SET", "{core}:kept", "1")
    run_page(2, [core, *cluster.nodes[1:]])
    cluster.failover(new, asked=True)
    assert cluster.owner() is new
    assert new.run("GET", "{core}:kept") == b"1"


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
async def test_a_server_with_the_least_rights_sees_what_is_wrong(cluster: PrivateCluster) -> None:
    """It may read no settings, because passwords are among them."""
    rules = acl_line("server", "least", sha256(b"a-password").hexdigest()).split()[1:]
    for node in cluster.nodes:
        node.run("ACL", "SETUSER", *rules)
    (line,) = await check(cluster, user="least", password="a-password")
    assert "cannot be read (CONFIG GET)" in line


@pytest.mark.extended
async def test_the_doctor_finds_an_open_core_and_settings_that_cost(cluster: PrivateCluster) -> None:
    core, other, *_ = cluster.primaries()
    cluster.open_slot(CORE_SLOT, core, other)
    found = await check(cluster)
    assert [line[:3] for line in found] == ["NO ", "NO "]
    assert all("is being moved at" in line for line in found)
    cluster.close_slot(CORE_SLOT)
    core.run("CONFIG", "SET", "cluster-require-full-coverage", "yes", "cluster-node-timeout", "15000")
    found = await check(cluster, len(cluster.replicas(core)))
    assert not any(line.startswith("NO ") for line in found)
    told = " ".join(found)
    assert "cluster-require-full-coverage is yes" in told
    assert "cluster-node-timeout is 15000 ms" in told
    assert "after a failover all writes are refused" in told
    core.run("CONFIG", "SET", "cluster-require-full-coverage", "no", "cluster-node-timeout", "2000")


@pytest.mark.extended
async def test_the_doctor_refuses_one_node_in_place_of_the_cluster(cluster: PrivateCluster) -> None:
    found = await check_redis(f"redis://127.0.0.1:{cluster.owner().port}", 5)
    assert NODE_OF_A_CLUSTER in found


class ScriptedNodes:
    """Nodes whose tables of nodes are ``views``, one for each look; the last one stays."""

    group, timeout_seconds = SimpleNamespace(hosts=[("c", 1)]), 1.0

    def __init__(self, views: dict[str, list[str]]) -> None:
        self._views = {name: [*each] for name, each in views.items()}

    async def ask(self, _topology: object, node: tuple[str, int], *commands: tuple[str, ...]) -> list[Any]:
        views = self._views[node[0]]
        view = views.pop(0) if len(views) > 1 else views[0]
        rows = [line if f"{node[0]}:1@" in line else line.replace("myself,", "") for line in view.splitlines()]
        settings = [b"cluster-require-full-coverage", b"no", b"cluster-node-timeout", b"2000"]
        return ["\n".join(rows).encode(), settings if commands[1][0] == "CONFIG" else b"cluster_state:ok"]


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
    nodes = ScriptedNodes(views)
    monkeypatch.setattr(cluster_check, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(cluster_check, "ask_node", nodes.ask)
    found = await cluster_check.check_cluster(cast(Any, nodes), 0)
    told = " ".join(finding.sentence for finding in found)
    assert (said in told) if said else (told == "")
    assert ("SETSLOT" in told) == (said == "SETSLOT")
