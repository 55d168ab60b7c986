"""The truth on a real Redis Cluster under faults: what is acknowledged stays, once and in order, and nothing forks."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, closing, contextmanager
from functools import partial
from typing import Any, Protocol

import pytest
from redis.exceptions import AskError, TryAgainError

from stream_server.commands import redis_acl
from stream_server.errors import Unavailable
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis import scripts as scripts_module
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.replica_router import RETRY_PAUSE_SECONDS, ReplicaRouter
from stream_server.store.redis.replicated_client import begin_reads
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import NOT_OWNED, Store, UnusableRedis
from stream_server.store.write_guard import CORE_OPEN, FAULTY_CHECKS, WriteGuard
from tests.redis_cluster import CORE_SLOT, Node, PrivateCluster
from tests.redis_process import binaries, private_redis
from tests.stream_server.feed.node import LogWriter
from tests.stream_server.feed.node import Node as Feeding
from tests.stream_server.store.crowd import posts_at
from tests.stream_server.store.people import People, new_key, open_store
from tests.tiers import each_engine
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module", params=each_engine())
def shared(request: pytest.FixtureRequest) -> Iterator[PrivateCluster]:
    """A cluster of each engine whose core has two replicas, so that one is left after a failover."""
    with PrivateCluster(binaries()[request.param]) as made:
        made.add_node().run("CLUSTER", "REPLICATE", made.owner().id)
        made.agreed()
        yield made


@pytest.fixture
def cluster(shared: PrivateCluster) -> PrivateCluster:
    """The cluster without data and faults, and with new counts of errors."""
    shared.close_slot(CORE_SLOT)  # which a failed test may have left open
    shared.agreed()
    shared.flush()
    for node in shared.nodes:
        node.run("CONFIG", "RESETSTAT")
    return shared


class Open(Protocol):
    """Opens a store on the cluster, and closes it after the test."""

    async def __call__(self, seconds: float = PATIENCE, **options: Any) -> Store:
        """The store."""
        ...


@pytest.fixture
async def opened(cluster: PrivateCluster) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def make(seconds: float = PATIENCE, **options: Any) -> Store:
            store = Store(cluster.url, timeout_seconds=seconds, **options)
            stack.push_async_callback(store.close)
            with store.allow_slow_replies(PATIENCE):
                await store.open()
            return store

        yield make


def _errors(node: Node) -> set[str]:
    return {name.removeprefix("errorstat_") for name in node.info("errorstats")}


async def test_what_a_frozen_primary_makes_when_it_wakes_is_made_again_by_the_new_one(
    cluster: PrivateCluster, opened: Open
) -> None:
    """It acknowledges the writes that waited at it, and loses them, also without required replicas."""
    store = await opened(seconds=2 * PATIENCE)
    topology, uid, old = store._redis.topology, await People(store).user("Ann"), cluster.owner()
    assert topology is not None
    before = old.info("commandstats")["cmdstat_evalsha"]["calls"]
    old.pause()
    writing = [asyncio.create_task(People(store).status(uid, str(number))) for number in range(20)]
    await asyncio.to_thread(cluster.promoted, old)
    await eventually(lambda: topology.core_owner not in {None, old.address}, what="the new one known")
    assert not any(write.done() for write in writing)
    old.resume()
    made = await asyncio.gather(*writing)
    posts = (await posts_at(cluster.url))[uid]
    assert sorted(posts) == sorted((status["id"], status["message"]) for status in made)
    await eventually(lambda: old.info()["role"] == "slave", what="the old one demoted")
    assert old.info("commandstats")["cmdstat_evalsha"]["calls"] - before >= 20, "it made no write"


class Recorder:
    """Notes the commands that the store sends for scripts, and sends them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[Command] = []
        run = RedisClient.run_pipeline

        async def noted(client: RedisClient, commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
            self.commands += [command for command in commands if command[0] == "EVALSHA"]
            return await run(client, commands, timeout_seconds)

        monkeypatch.setattr(RedisClient, "run_pipeline", noted)


def _ask(node: Node, *command: object, first: str = "ASKING") -> Any:
    """Send a command behind ASKING, as a client does that follows ASK. Returns the reply, or the error."""
    with node.client() as client, client.pipeline(transaction=False) as pipeline:
        pipeline.execute_command(first)
        pipeline.execute_command(*command)
        return pipeline.execute(raise_on_error=False)[1]


def _migrate(source: Node, target: Node, *moved: bytes | str) -> None:
    with source.client() as client:
        client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *moved)


async def test_while_the_slot_of_the_core_is_moved_nothing_runs_and_no_second_log_begins(
    cluster: PrivateCluster, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, (core, target, _) = await opened(), cluster.primaries()
    uid, request = await People(store).user("Ann"), IdempotencyKey.generate()
    await store.statuses.create(uid, StatusDraft(message="before"), request)
    head, fork = await store.log.head(), Recorder(monkeypatch)

    async def assert_refused() -> None:
        refused: list[Callable[[], Awaitable[object]]] = [
            lambda: People(store).user("Bob"),
            lambda: People(store).status(uid),
            lambda: store.statuses.create(uid, StatusDraft(message="before"), request),  # a repetition
            lambda: store.statuses.get(uid, str(head.status_number)),
            lambda: store._scripts.call("job_claim", keys.META, most=10),
        ]
        for call in refused:
            with pytest.raises(Unavailable) as failure:
                await call()
            assert type(failure.value) is Unavailable

    cluster.open_slot(CORE_SLOT, core, target)
    await assert_refused()
    assert target.run("CLUSTER", "COUNTKEYSINSLOT", CORE_SLOT) == 0
    _check_control(target, fork.commands[0], [script.text for script in store._scripts._scripts.values()])
    with monkeypatch.context() as patch:  # without the key that never exists, a repetition and a job go on
        patch.setattr(scripts_module, "CORE_KEYS", (keys.META,))
        await store.statuses.create(uid, StatusDraft(message="before"), request)
        job = store._scripts.call_command(keys.META, scripts_module.ScriptCall("job_claim", {"most": 10}))
        (reply,) = await store._redis.run_pipeline([job], PATIENCE)
        assert not isinstance(reply, AskError | TryAgainError)
    _migrate(core, target, keys.META)
    await assert_refused()
    _migrate(core, target, *core.run("CLUSTER", "GETKEYSINSLOT", CORE_SLOT, 1000))
    await assert_refused()
    assert int(_ask(target, "HGET", keys.META, "n")) == head.n
    assert _ask(target, "XLEN", keys.LOG) == 1

    core.run("CLUSTER", "SETSLOT", CORE_SLOT, "STABLE")
    _migrate(target, core, *target.run("CLUSTER", "GETKEYSINSLOT", CORE_SLOT, 1000))
    cluster.close_slot(CORE_SLOT)
    await People(store).status(uid, "after")
    assert [message for _, message in (await posts_at(cluster.url))[uid]] == ["before", "after"]


def _check_control(target: Node, sign_up: Command, texts: Sequence[str]) -> None:
    """Show what the declaration of three keys prevents: who follows ASK with one key begins a second log."""
    for text in texts:
        target.run("SCRIPT", "LOAD", text)
    assert sign_up[2] == 3
    assert isinstance(_ask(target, *sign_up), TryAgainError)
    assert target.run("CLUSTER", "COUNTKEYSINSLOT", CORE_SLOT) == 0
    _ask(target, *sign_up[:2], 1, sign_up[3], *sign_up[6:])
    assert _ask(target, "EXISTS", keys.META) == 1
    target.run("FLUSHALL")


@pytest.fixture
def writer(cluster: PrivateCluster) -> Iterator[LogWriter]:
    made = LogWriter(cluster.owner())
    yield made
    made.close()
    cluster.mend_replication(cluster.owner())


class HeldCanary:
    """Lets the canary wait for ``go_on`` before it looks whether the replica is behind."""

    def __init__(self, router: ReplicaRouter) -> None:
        self.is_held, self.go_on = asyncio.Event(), asyncio.Event()
        self._check = router.leave_if_behind
        router.leave_if_behind = self._wait_and_check  # type: ignore[method-assign]  # waits only

    async def _wait_and_check(self, heard_n: int) -> None:
        self.is_held.set()
        await self.go_on.wait()
        await self._check(heard_n)


async def test_a_replica_without_data_is_left_although_it_hears_the_bus(
    cluster: PrivateCluster, writer: LogWriter
) -> None:
    """What it lacks is read from the primary meanwhile. Elsewhere a replica that gets no data hears nothing."""
    replica = cluster.replicas(cluster.owner())[0]
    node = Feeding(cluster.url, replica_urls=f"redis+cluster://127.0.0.1:{replica.port}")
    await node.open()
    router = node.store.log.replica_router
    await eventually(lambda: not router.is_avoiding_replica, what="the replica in use")
    await eventually(lambda: replica.run("PUBSUB", "NUMSUB", "events:post")[1] == 1, what="the bus heard there")
    canary = HeldCanary(router)
    await canary.is_held.wait()
    writer.write()
    await node.expect_received(writer.positions())
    await eventually(lambda: _ask(replica, "XLEN", keys.LOG, first="READONLY") == 1, what="a copy")
    cluster.cut_replication(replica)
    writer.write()
    writer.write(published=False)
    writer.write()
    await node.expect_received(writer.positions())
    assert (_ask(replica, "XLEN", keys.LOG, first="READONLY"), router.is_avoiding_replica) == (1, False)
    page = await node.reader.read_page(writer.positions()[0], 10)
    assert [entry.position for entry in page.entries] == writer.positions()[1:]
    assert node.rechecks == 0
    canary.go_on.set()
    await eventually(lambda: router.is_avoiding_replica, what="the replica left")
    assert node.jumps == []
    await node.close()


async def test_a_replica_of_a_cluster_is_read_by_its_own_url_and_by_that_of_the_cluster(
    cluster: PrivateCluster, opened: Open
) -> None:
    replicas = cluster.replicas(cluster.owner())
    for url in (f"redis://127.0.0.1:{replicas[0].port}", f"redis+cluster://127.0.0.1:{replicas[0].port}", cluster.url):
        store = await opened(replica_urls=url)
        uid = await People(store).user(f"u{len(url)}x{url.count(':')}")
        await People(store).status(uid)
        router, head = store.log.replica_router, await store.log.head()
        await eventually(partial(_is_replica_used, router, head.n), what="the replica in use")
        assert (await store.log.read_back(head, 1))[-1].position == head
        with closing(await store.log.subscribe(lambda _: None)):
            assert router.current is not store._redis
    assert sum(node.info("commandstats").get("cmdstat_xrevrange", {"calls": 0})["calls"] for node in replicas) >= 3
    assert not any("MOVED" in _errors(node) for node in replicas)


async def _page(store: Store, uid: str, status: str) -> bytes | None:
    """Read a status as a request for a page does."""

    async def request() -> bytes | None:
        begin_reads()
        return await store.statuses.get(uid, status)

    return await asyncio.create_task(request())


async def _read_from_replica(cluster: PrivateCluster, store: Store, uid: str, status: str) -> None:
    """Wait until a page comes from a replica. The failure tells all states, as no log tells of one that is behind."""
    (replica,), core = store.replicas, cluster.owner()

    async def is_read() -> bool:
        before = replica.answered
        assert await _page(store, uid, status)
        return replica.answered > before

    try:
        await eventually(is_read)
    except AssertionError:
        states = [node.info() for node in (core, *cluster.replicas(core))]
        raise AssertionError(f"{replica.state}, refused {replica.refused} times: {states}") from None


@contextmanager
def _cut_off(replica: Node, cluster: PrivateCluster) -> Iterator[None]:
    """Cut the link of a replica to its primary. The cluster itself sees no fault."""
    replica.run("CONFIG", "SET", "masteruser", "nobody", "masterauth", "wrong")
    replica.run("CLIENT", "KILL", "TYPE", "master")
    try:
        yield
        assert replica.info()["master_link_status"] == "down"
    finally:
        replica.run("CONFIG", "SET", "masteruser", "", "masterauth", "")
        cluster.linked(replica)


async def test_pages_come_from_another_replica_if_one_stays_behind(cluster: PrivateCluster, opened: Open) -> None:
    store = await opened(replica_urls=cluster.url)
    people, guide = People(store), store.replicas[0].client._guide
    ann = await people.user("Ann")
    await _read_from_replica(cluster, store, ann, (await people.status(ann))["id"])
    assert guide is not None
    assert guide.address is not None
    (behind,) = [node for node in cluster.replicas(cluster.owner()) if node.port == guide.address[1]]
    with _cut_off(behind, cluster):
        await _read_from_replica(cluster, store, ann, (await people.status(ann))["id"])
        assert guide.address != ("127.0.0.1", behind.port)


async def test_the_log_comes_from_another_replica_if_one_stays_behind(cluster: PrivateCluster) -> None:
    behind, now = cluster.replicas(cluster.owner())[0], 0.0
    async with AsyncExitStack() as stack:
        primary, link = RedisClient(cluster.url, PATIENCE), RedisClient(cluster.url, PATIENCE, replica=True)
        for client in (primary, link):
            stack.push_async_callback(client.close)
        router = ReplicaRouter(primary, link, monotonic=lambda: now)
        while link._guide is None or link._guide.address != ("127.0.0.1", behind.port):
            link.leave_replica()
            await link.execute(("PING",))
        with _cut_off(behind, cluster):
            assert not await router.try_replica(0)
            now += RETRY_PAUSE_SECONDS[1]
            assert await router.try_replica(0)
            assert link._guide.address != ("127.0.0.1", behind.port)


async def test_a_page_lacks_nothing_that_has_moved_with_the_slot_of_the_core(
    cluster: PrivateCluster, opened: Open
) -> None:
    """A replica has the keys no more. That of a Redis says only that there are none, that of a Valkey refuses."""
    store = await opened(replica_urls=cluster.url)
    people, (core, other, *_) = People(store), cluster.primaries()
    ann, (replica,) = await people.user("Ann"), store.replicas
    status = (await people.status(ann))["id"]
    await _read_from_replica(cluster, store, ann, status)
    cluster.open_slot(CORE_SLOT, core, other)
    key = keys.key_for("status", status)
    core.run("MIGRATE", "127.0.0.1", other.port, key, 0, 5000)
    near = cluster.replicas(core)
    await eventually(lambda: 1 not in [_ask(each, "EXISTS", key, first="READONLY") for each in near], what="no copy")
    answered = replica.answered
    with pytest.raises(Unavailable):
        await _page(store, ann, status)
    assert replica.answered == answered
    cluster.close_slot(CORE_SLOT)


async def test_nothing_can_be_written_until_the_owner_of_the_core_is_known(cluster: PrivateCluster) -> None:
    store = Store(cluster.url, timeout_seconds=PATIENCE)
    try:
        assert store.cluster_fault == NOT_OWNED
        await store.open()
        assert (store.cluster_fault, [*store.unreachable_nodes]) == ("", [])
    finally:
        await store.close()


async def test_nothing_can_be_written_while_the_core_is_moved_online(cluster: PrivateCluster) -> None:
    core, other, *_ = cluster.primaries()
    async with open_store(cluster.url) as store:
        guard = WriteGuard(store.state, 0, lambda *_: None)
        cluster.open_slot(CORE_SLOT, core, other)
        for _ in range(FAULTY_CHECKS):
            assert guard.fault == ""
            await guard.check()
        assert (guard.fault, guard.is_refusing) == (CORE_OPEN, True)
        cluster.close_slot(CORE_SLOT)
        await guard.check()
        assert (guard.fault, guard.is_refusing) == ("", False)


async def test_the_user_of_servers_has_all_rights_that_a_cluster_needs(cluster: PrivateCluster) -> None:
    for node in cluster.nodes:
        node.run("ACL", "SETUSER", "srv", "reset", "on", ">secret", *redis_acl.RULES_BY_ROLE["server"])
        node.run("ACL", "LOG", "RESET")
    url = cluster.url.replace("//", "//srv:secret@")
    async with open_store(url, replica_urls=url) as store:
        ann, bob = [await People(store).user(login) for login in ("Ann", "Bob")]
        await store.follows.follow(bob, ann, new_key())
        await People(store).status(ann)
        router, head = store.log.replica_router, await store.log.head()
        await eventually(partial(_is_replica_used, router, head.n), what="the replica in use")
        assert (await store.log.read("0-0", 10))[-1].position == head
        assert store.cluster_fault == ""
    assert [node.run("ACL", "LOG") for node in cluster.nodes] == [[]] * len(cluster.nodes)


async def _is_replica_used(router: ReplicaRouter, head_n: int) -> bool:
    return await router.try_replica(head_n) or not router.is_avoiding_replica


async def test_a_url_of_the_wrong_kind_is_refused_in_one_sentence(cluster: PrivateCluster) -> None:
    node = Store(f"redis://127.0.0.1:{cluster.nodes[-1].port}", timeout_seconds=PATIENCE)
    with pytest.raises(UnusableRedis, match=r"^the Redis is a node of a cluster: name it by redis\+cluster://"):
        await node.open()
    await node.close()
    with private_redis(port=0) as plain:
        store = Store(f"redis+cluster://127.0.0.1:{plain.port}", timeout_seconds=PATIENCE)
        with pytest.raises(UnusableRedis, match=r"^the Redis is not in a cluster: name it by redis://"):
            await store.open()
        await store.close()
