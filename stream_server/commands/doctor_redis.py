"""The checks of ``doctor`` for a Redis: whether it takes writes, its settings, Sentinels and replicas."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stream_server.commands.doctor_machine import CheckResult, advice, broken, good
from stream_server.errors import ApiError
from stream_server.security.clock_check import ClockCheck
from stream_server.store import keys
from stream_server.store.redis.address import parse_group_url
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_check import check_cluster
from stream_server.store.redis.cluster_topology import ClusterTopology
from stream_server.store.redis.engine import engine_of, is_cluster_node
from stream_server.store.redis.protocol import parse_info
from stream_server.store.redis.refusals import describe_for_operator
from stream_server.store.redis.replica_router import ReplicaRouter
from stream_server.store.redis.sentinel import Sentinels
from stream_server.store.write_guard import ALARM_SHARE, count_replicas, find_write_refusal, parse_state

MIN_PUBSUB_BUFFER_BYTES = 64 * 2**20
"""Least output buffer. With a smaller one, Redis may disconnect a process that was busy for a moment."""

SMALL_HASH = "hash-max-listpack-value"
"""Redis' setting for the longest value of a compact hash, in bytes."""

MIN_SMALL_HASH_BYTES = 1024

NODE_OF_A_CLUSTER = broken(
    "this Redis is a node of a cluster, and others have some of the keys: name the cluster, redis+cluster://host:port"
)


@asynccontextmanager
async def opened(url: str, timeout_seconds: float, *, replica: bool = False) -> AsyncIterator[RedisClient]:
    """Yield a client of the Redis at ``url``, or of a replica of it, and close it after the block."""
    client = RedisClient(url, timeout_seconds, replica=replica)
    try:
        yield client
    finally:
        await client.close()


async def check_redis(
    url: str, timeout_seconds: float, *, read_urls: str = "", write_replicas: int = 0
) -> list[CheckResult]:
    """Check the Redis at ``url``: version, clock, configuration, replicas. No result contains the URL's password.

    ``read_urls`` is the setting ``--redis-read``, and ``write_replicas`` is that setting.
    """
    async with opened(url, timeout_seconds) as client:
        try:
            started = time.time()
            answer, (seconds, micros) = await client.execute(("INFO",), ("TIME",))
            fault = ClockCheck().compare(float(seconds) + float(micros) / 1e6, started, time.time())
            skew = advice(fault) if fault else good("the clocks of Redis and this machine agree")
            info = parse_info(answer)
            engine = engine_of(info)
            found = [broken(engine.fault) if engine.fault else good(f"{engine} answers"), skew]
            if is_cluster_node(info) and client.topology is None:
                found.append(NODE_OF_A_CLUSTER)
            found += await _check_writes(client, info)
            found += await _check_configuration(client, info)
            found += await _check_read_replicas(client, read_urls.split(), timeout_seconds)
            replicas = count_replicas(info)
            if write_replicas > replicas:
                fault = f"writes wait for {write_replicas} replicas, but only {replicas} are connected"
                found.append(broken(f"{fault}: writes are refused"))
            elif write_replicas:
                found.append(good(f"{replicas} replicas are connected; writes wait for {write_replicas}"))
            (failure,) = await client.execute(("HGET", keys.key_for("expiry"), "failure"))
            if failure:  # of the last attempt to let old statuses leave
                found.append(broken(f"no status leaves because of its age: {failure.decode()}"))
        except ApiError as error:
            return [broken(f"Redis {describe_for_operator(error)}")]
    return found


async def _check_read_replicas(client: RedisClient, urls: list[str], timeout_seconds: float) -> list[CheckResult]:
    """Check whether each replica of ``--redis-read`` keeps up with the primary, ``client``. Several have numbers."""
    found: list[CheckResult] = []
    for number, url in enumerate(urls, start=1):
        replica = "the replica to read from" if len(urls) == 1 else f"replica {number} of {len(urls)} to read from"
        async with opened(url, timeout_seconds, replica=True) as near:
            (n,) = await client.execute(("HGET", keys.META, "n"))
            if await ReplicaRouter(client, near).try_replica(int(n or 0)):
                found.append(good(f"{replica} keeps up"))
            else:
                fault = f"{replica} is unreachable, behind, or of another primary"
                meanwhile = "all reads use the primary" if len(urls) == 1 else "no read uses it"
                found.append(advice(f"{fault}: {meanwhile} meanwhile"))
    return found


async def _check_writes(client: RedisClient, info: dict[str, str]) -> list[CheckResult]:
    """Check whether Redis takes writes now."""
    refusal = await find_write_refusal(client)
    if refusal:
        return [broken(f"Redis refuses writes: {refusal}")]
    share = parse_state(info).used_share
    if share >= ALARM_SHARE:
        return [broken(f"Redis uses {share:.0%} of its memory, so servers refuse writes: delete data or give it more")]
    return []


async def check_sentinels(url: str, timeout_seconds: float) -> list[CheckResult]:
    """Check whether the Sentinels of the Redis URL answer and agree on the primary. Return [] for a URL without any."""
    group = parse_group_url(url)
    if group is None or group.is_cluster:
        return []
    sentinels = Sentinels(group, timeout_seconds)
    states = await sentinels.fetch_states()
    await sentinels.close()
    answers = [state for state in states if state is not None]
    if not answers:
        return [broken("no Sentinel answers, or none monitors this service")]
    found = [advice(f"{len(states) - len(answers)} of {len(states)} Sentinels do not answer")] if None in states else []
    if len({(state["ip"], state["port"]) for state in answers}) > 1:
        return [*found, broken("the Sentinels do not agree on the primary: one may not reach the others")]
    if len(states) < 3:
        found.append(advice("fewer than three Sentinels are named: two must agree when the third is gone"))
    return [*found, good("the Sentinels that answer agree on the primary")]


async def _check_configuration(client: RedisClient, info: dict[str, str]) -> list[CheckResult]:
    names = ("appendonly", "appendfsync", "save", "maxmemory-policy", "client-output-buffer-limit", SMALL_HASH)
    try:
        answers = await client.execute(*(("CONFIG", "GET", name) for name in names))
    except ApiError:
        return [advice("Redis does not show its settings (CONFIG is forbidden), so they were not checked")]
    settings = {pair[0].decode(): pair[1].decode() for pair in answers if pair}
    found = _check_persistence(settings, info)
    if settings.get("save"):
        found.append(advice('Redis has `save` points: when a snapshot fails, it refuses all writes; set `save ""`'))
    policy = settings.get("maxmemory-policy", "")
    if policy == "noeviction":
        found.append(good("Redis drops nothing when memory is short (noeviction)"))
    else:
        danger = "Redis would drop data when memory is short"
        found.append(broken(f"maxmemory-policy is {policy}: {danger}; set noeviction"))
    words = settings.get("client-output-buffer-limit", "").split()  # normal 0 0 0 … pubsub <hard> <soft> <seconds>
    soft_bytes = int(words[words.index("pubsub") + 2]) if "pubsub" in words else 0
    if 0 < soft_bytes < MIN_PUBSUB_BUFFER_BYTES:
        fault = f"client-output-buffer-limit pubsub is {soft_bytes >> 20} MiB, so Redis may disconnect a busy worker"
        found.append(advice(f"{fault}: set `pubsub 256mb 64mb 60`"))
    else:
        found.append(good("Redis waits for a busy worker (client-output-buffer-limit pubsub)"))
    max_bytes = int(settings.get(SMALL_HASH, MIN_SMALL_HASH_BYTES))
    if max_bytes < MIN_SMALL_HASH_BYTES:
        found.append(advice(f"{SMALL_HASH} is {max_bytes}, so each status takes twice the memory: set 1024"))
    else:
        found.append(good(f"Redis stores statuses compactly ({SMALL_HASH})"))
    return found


def _check_persistence(settings: dict[str, str], info: dict[str, str]) -> list[CheckResult]:
    if settings.get("appendonly") != "yes":
        return [advice("Redis has appendonly off: what was written since its last snapshot is lost when it restarts")]
    if settings.get("appendfsync") != "always":
        return [advice("appendfsync is not `always`: a crash loses as much as the disk is behind, 2 s and more")]
    found = [good("everything is on disk before it is answered")]
    if info.get("aof_rewrites") == "0":
        danger = "a tail torn by a power cut otherwise costs an entry at the start after the next"
        found.append(advice(f"after each start of Redis run BGREWRITEAOF: {danger}"))
    return found


SET_UP_WELL = good("the cluster is set up well: the core is alone on its shard, and the nodes agree")


async def check_cluster_setup(url: str, timeout_seconds: float, write_replicas: int) -> list[CheckResult]:
    """Check the cluster of the Redis URL. Return [] for another URL. The results never contain its password."""
    group = parse_group_url(url)
    if group is None or not group.is_cluster:
        return []
    found = await check_cluster(ClusterTopology(group, timeout_seconds), write_replicas)
    return [(broken if finding.is_grave else advice)(finding.sentence) for finding in found] or [SET_UP_WELL]
