"""Writes that Redis could not keep are refused before. What frees memory, and log-ins, still work in a full one."""

import json
from pathlib import Path

import pytest
from redis.exceptions import OutOfMemoryError

from stream_server.store.write_guard import ALARM_SHARE
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.redis_process import newest
from tests.stream_server.store.replicas import linked, run, servers
from tests.waiting import eventually

pytestmark = pytest.mark.extended

BINARY = newest()

LEAST_REPLICAS = ("CONFIG", "SET", "min-replicas-to-write")


async def test_writes_are_refused_before_redis_is_full(tmp_path: Path) -> None:
    with Server(tmp_path, "--redis-memory-bytes", str(64 * 2**20)) as server, server.redis_client() as redis:
        assert int(redis.config_get("maxmemory")["maxmemory"]) == 64 * 2**20
        async with Api(server) as api:
            uid = await api.user()
            post = await api.post(uid, "before")
            stream = await api.stream({"follow": uid}, uid=uid)
            redis.setrange("ballast", 20 * 2**20, "x")  # so that what connections use and free makes no difference
            used = int(redis.info("memory")["used_memory"])
            redis.config_set("maxmemory", int(used / (ALARM_SHARE + 0.05)))
            await api.until_metric("memory_alarm", lambda value: value == 1)
            refused = await api.call("POST", "/v1/statuses", token=mint(uid), json={"message": "now"})
            assert refused.error == (503, "unavailable", None)
            assert int(refused.headers["Retry-After"]) >= 1
            login = {"login": "nobody", "password": "correct horse"}
            assert (await api.call("POST", "/v1/sessions", json=login)).status == 401
            await api.delete(uid, post["id"])
            await stream.until(lambda s: s.received[-1:] == [("delete", post["id"])])
            redis.config_set("maxmemory", 64 * 2**20)
            await api.until_metric("memory_alarm", lambda value: value == 0)
            await api.post(uid, "after")
            await stream.close()


async def test_writes_without_enough_replicas_are_refused_and_the_server_is_not_ready(tmp_path: Path) -> None:
    """The refused writes are not made. Nothing needs a restart when the replica is back."""
    with servers(BINARY, 2) as (primary, replica):
        replica.replica_of(primary)
        await linked(replica)
        async with Server(tmp_path, "--redis", primary.url, "--write-replicas", "1") as server, Api(server) as api:
            replica.kill()
            await api.until_metric("write_replicas_missing", lambda value: value == 1)
            lacking = "only 0 of the 1 replicas that must confirm a write are connected to Redis"
            ready = await api.call("GET", "/readyz")
            assert ready.status == 503
            assert ready.json["error"]["message"] == f"nothing can be written: {lacking}"
            await eventually(lambda: lacking in server.log)
            told = [line for line in server.log.splitlines() if lacking in line]
            assert len(told) == 1
            assert json.loads(told[0])["level"] == "error"
            users = len(run(primary, "KEYS", "*:user:*"))
            body = {"login": "ann", "name": "Ann", "email": "ann@example.com", "password": "correct horse"}
            refused = await api.call("POST", "/v1/users", json=body)
            assert refused.error == (503, "unavailable", None)
            assert "fewer replicas" in refused.json["error"]["message"]
            assert len(run(primary, "KEYS", "*:user:*")) == users
            replica.start()
            await api.until_metric("write_replicas_missing", lambda value: value == 0)
            assert (await api.call("GET", "/readyz")).status == 200
            assert (await api.call("POST", "/v1/users", json=body)).status == 201


@pytest.mark.parametrize(
    ("begin", "end", "code"),
    [
        ((*LEAST_REPLICAS, "1"), (*LEAST_REPLICAS, "0"), "NOREPLICAS"),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "READONLY"),
    ],
    ids=["no replicas", "a replica"],
)
async def test_a_server_whose_redis_refuses_writes_is_not_ready(
    tmp_path: Path, begin: tuple[str, ...], end: tuple[str, ...], code: str
) -> None:
    """Reads and streams go on. A load balancer prefers another server, and the operator reads why."""
    with servers(BINARY, 1) as (redis,):
        async with Server(tmp_path, "--redis", redis.url) as server, Api(server) as api:
            uid = await api.user()
            run(redis, *begin)
            await api.until_metric("ready", lambda value: value == 0)
            ready = await api.call("GET", "/readyz")
            assert ready.status == 503
            assert ready.json["error"]["message"].startswith(f"nothing can be written: Redis refuses writes: {code} ")
            await eventually(lambda: f"Redis refuses writes: {code} " in server.log)
            told = [line for line in server.log.splitlines() if f"Redis refuses writes: {code} " in line]
            assert len(told) == 1
            assert json.loads(told[0])["level"] == "error"
            refused = await api.call("POST", "/v1/statuses", token=mint(uid), json={"message": "now"})
            assert refused.error == (503, "unavailable", None)
            assert (await api.call("GET", f"/v1/users/{uid}/statuses", token=mint(uid))).status == 200
            run(redis, *end)
            await api.until_metric("ready", lambda value: value == 1)
            assert (await api.call("GET", "/readyz")).status == 200
            await api.post(uid, "after")
            await eventually(lambda: "Redis takes writes again" in server.log)
            assert server.log.count("Redis takes writes again") == 1


async def test_a_redis_that_is_full_leaves_the_server_ready(tmp_path: Path) -> None:
    """Deletes are still made, so a restart or another server would be no better."""
    with Server(tmp_path) as server, server.redis_client() as redis:
        async with Api(server) as api:
            uid = await api.user()
            redis.config_set("maxmemory", int(redis.info("memory")["used_memory"]) // 2)
            await api.until_metric("memory_alarm", lambda value: value == 1)
            with pytest.raises(OutOfMemoryError):
                redis.set("ballast", "x")
            checks = int(redis.info("stats")["total_commands_processed"])
            await eventually(lambda: int(redis.info("stats")["total_commands_processed"]) > checks + 100)
            assert (await api.call("GET", "/readyz")).status == 200
            assert (await api.call("GET", "/v1/users/me", token=mint(uid))).status == 200
