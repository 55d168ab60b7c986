"""Several Redis servers: what a failover loses, which clients learn of it, and a replica that falls silent."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.end_to_end.api import mint
from tests.end_to_end.consumer import number
from tests.end_to_end.random_faults import blind_canary
from tests.end_to_end.random_faults.clients import Client, Leaving, Listener, Poller, Sse
from tests.end_to_end.random_faults.site import Site
from tests.end_to_end.random_faults.world import ALL, FLAGS, World, kill_left, populated
from tests.end_to_end.server import Server
from tests.redis_process import RedisProcess, binaries, newest
from tests.stream_server.store.replicas import entries, linked, replication, run, servers
from tests.stream_server.store.sentinels import Watch, watch
from tests.tiers import each_engine
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

SEED = 3
LOST = 20
COPIES = ("-psync", "-sync", "-replconf")
"""Commands that replication needs. Without them no write leaves the primary."""


@asynccontextmanager
async def _world(redis: RedisProcess, folder: Path, *flags: Sequence[str]) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        variables = {blind_canary.VARIABLE: str(folder / "blind")}
        made = [
            Server(folder / str(at), *FLAGS, *more, module=blind_canary.__name__, variables=variables)
            for at, more in enumerate(flags)
        ]
        for server in made:
            stack.callback(kill_left, server)
            await asyncio.to_thread(server.start)
        yield await stack.enter_async_context(populated(redis, made, SEED))


@asynccontextmanager
async def _watched(binary: Path, folder: Path, *flags: str) -> AsyncIterator[tuple[World, Watch]]:
    """Start three Sentinels and two servers. The second server listens to a replica."""
    with watch(binary) as watched:
        await watched.settled()
        both = ("--redis", watched.url, *flags)
        near = ("--redis-read", watched.servers[2].url)
        async with _world(watched.servers[0], folder, both, (*both, *near)) as made:
            yield made, watched


def _add_clients(made: World) -> list[Client]:
    """Add one client that stays on each server, and some that leave and return. Return those that stay."""
    authors = made.people.writers
    sites = [Site([server]) for server in made.site.servers]
    staying = [made.add(Sse, site=site, firehose="true", kinds=ALL) for site in sites]
    made.add(Leaving, firehose="true", kinds=ALL)
    made.add(Poller, track="storm,night gull")
    made.add(Listener, follow=f"{authors[0]},{authors[3]}", kinds=ALL)
    made.add(Listener, own="true", kinds=ALL)
    return staying


async def _goes_on(made: World, count: int) -> None:
    before = made.ledger.count("written")
    enough = before + count
    await eventually(lambda: made.ledger.count("written") > enough, seconds=2 * PATIENCE, what="writes acknowledged")


async def _isolate(primary: RedisProcess) -> None:
    """Stop the replication without an error that the servers would notice."""
    run(primary, "ACL", "SETUSER", "default", *COPIES)
    run(primary, "CLIENT", "KILL", "TYPE", "replica")  # none, if the link broke just before; no new one is allowed
    await eventually(lambda: replication(primary)["connected_slaves"] == 0, what="a primary alone")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", each_engine())
async def test_a_failover_under_load_loses_nothing_that_a_replica_has(tmp_path: Path, engine: str) -> None:
    """Writers are refused while there is no primary, then continue. Every acknowledged write arrives everywhere once.

    A client that received a write which was not acknowledged may get a gap for it.
    """
    async with _watched(binaries()[engine], tmp_path, "--write-replicas", "1") as (made, watched):
        _add_clients(made)
        await made.begun()
        made.write()
        await _goes_on(made, 100)
        unavailable = made.site.answers[503]
        watched.servers[0].kill()
        made.redis = await watched.failed_over()
        await _goes_on(made, 100)
        await made.finish()
        assert made.complaints(rolled_back=True) == []
        assert made.site.answers[503] > unavailable
        acknowledged = {name for name, _ in made.ledger.versions()}
        for client in made.clients:
            ghosts = [one for one in made.history.ghosts(client.record) if one.kind != "edit"]
            assert not [one for one in ghosts if one.subject in acknowledged]


@pytest.mark.timeout(900)
async def test_clients_that_saw_entries_lost_in_a_failover_get_a_gap(tmp_path: Path) -> None:
    """Only the old primary had acknowledged these writes, and clients saw them.

    A `gap` reports the loss, and nothing else is missing. This also holds on the server that listened to a replica,
    whether or not it listens to the primary by then.
    """
    async with _watched(newest(), tmp_path) as (made, watched):
        primary = watched.servers[0]
        stayed_there, elsewhere = _add_clients(made)
        await made.begun()
        made.write()
        await _goes_on(made, 60)
        await made.finish()
        before = entries(primary)
        await eventually(lambda: _copied(watched) == before, what="replicas with the whole log")
        await _isolate(primary)
        await _post_lost(made)
        await eventually(lambda: f"lost {LOST - 1}" in str(stayed_there.record.events[-1:]))
        assert _copied(watched) == before < entries(primary)
        primary.kill()
        made.redis = await watched.failed_over()
        made.write()
        await _goes_on(made, 60)
        await made.finish()
        assert made.complaints(rolled_back=True) == []
        ghosts = made.history.ghosts(stayed_there.record)
        assert [one.message["status"]["message"] for one in ghosts] == [f"lost {text}" for text in range(LOST)]
        (gap,) = [told for told in stayed_there.record.told if told.kind == "gap"]
        assert gap.message["reason"] == "rolled_back"
        assert number(gap.message["from"]) == number(ghosts[-1].cursor)
        assert number(gap.message["to"]) == number(ghosts[0].cursor) - 1
        told = [one.message for one in elsewhere.record.told if one.kind == "gap"]
        assert {one["reason"] for one in told} == {"rolled_back"}
        if not made.history.ghosts(elsewhere.record):
            assert {one["from"] for one in told} == {gap.message["to"]}


async def _post_lost(made: World) -> None:
    """Post as a user who is not a writer, so that the ledger does not expect these posts."""
    url, headers = made.site.servers[0].address, {"Authorization": f"Bearer {mint(made.people.reader)}"}
    async with made.site.session() as session:
        for text in range(LOST):
            body = {"message": f"lost {text}"}
            async with session.post(f"{url}/v1/statuses", json=body, headers=headers) as answer:
                assert answer.status == 201, await answer.text()


def _copied(watched: Watch) -> int:
    """Return the number of entries on the replica that is furthest."""
    return max(entries(replica) for replica in watched.servers[1:])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("blind", [False, pytest.param(True, marks=pytest.mark.nightly)])
async def test_a_server_leaves_a_disconnected_replica_for_the_primary(tmp_path: Path, *, blind: bool) -> None:
    """A replica without replication still answers, but its log stands still.

    With a blind canary, its clients get no events.
    """
    with servers(newest(), 2) as (primary, replica):
        replica.replica_of(primary)
        await linked(replica)
        one = ("--redis", primary.url)
        async with _world(primary, tmp_path, one, (*one, "--redis-read", replica.url, "--job-workers", "0")) as made:
            well, far = (Site([server]) for server in made.site.servers)
            healthy, cut_off = (made.add(Sse, site=site, firehose="true", kinds=ALL) for site in (well, far))
            await made.begun()
            made.site.servers = well.servers
            await eventually(lambda: _listeners(replica) > 0, what="a subscription on the replica")
            if blind:
                await _blind(tmp_path)
            await _cut_off(primary, replica)
            made.write()
            await _goes_on(made, 60)
            if blind:
                await made.finish(healthy)
                await _starves(made, cut_off)
            else:
                await made.finish()
                await _comes_back(made, primary, replica)


async def _starves(made: World, cut_off: Client) -> None:
    """Whether the client got heartbeats and no events."""
    seen = len(cut_off.record.told)
    await eventually(lambda: len(cut_off.record.told) > seen + 1, what="heartbeats")
    assert cut_off.record.events == []
    complaints = made.complaints()
    assert len(complaints) > 20
    assert all(cut_off.record.name in said for said in complaints)


async def _comes_back(made: World, primary: RedisProcess, replica: RedisProcess) -> None:
    """Restore replication. The server then listens to the replica again."""
    assert _listeners(replica) == 0
    run(primary, "ACL", "SETUSER", "default", *(right.replace("-", "+") for right in COPIES))
    await linked(replica)
    await eventually(lambda: _listeners(replica) > 0, seconds=2 * PATIENCE, what="a new subscription on the replica")
    made.write()
    await _goes_on(made, 30)
    await made.finish()
    assert made.complaints() == []


async def _blind(folder: Path) -> None:
    (folder / "blind").touch()
    await eventually((folder / "blind.seen").exists, what="the end of the canary")


async def _cut_off(primary: RedisProcess, replica: RedisProcess) -> None:
    await _isolate(primary)
    await eventually(lambda: replication(replica)["master_link_status"] == "down", what="a broken link")


def _listeners(server: RedisProcess) -> int:
    with server.client() as client:
        return len(client.client_list(_type="pubsub"))
