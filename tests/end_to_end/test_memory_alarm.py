"""Writes are refused before Redis is full; what frees memory, and log-ins, still work."""

from pathlib import Path

import pytest

from stream_server.jobs.memory_alarm import ALARM_SHARE
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended


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
