"""The Redis and Sentinel commands of ``deploy/compose`` start, and a server works with them by the URL of the file."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import redis

from tests.deploy.files import documents, text
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.redis_process import free_port
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

PASSWORD = "5a" * 32
REDIS = ("redis-1", "redis-2", "redis-3")
SENTINELS = ("sentinel-1", "sentinel-2", "sentinel-3")


@contextmanager
def _started(service: str, folder: Path, ports: dict[str, int]) -> Iterator[None]:
    """Run the command of a service in a folder of its own, with ports of this machine in the place of host names."""
    (script,) = documents("compose/compose.yaml")[0]["services"][service]["command"][2:]
    own = folder / service
    own.mkdir()
    script = script.replace("$$", "$").replace("/data", str(own)).replace("/run/secrets", str(folder))
    for name in REDIS:
        script = script.replace(f"{name} 6379", f"127.0.0.1 {ports[name]}").replace(name + '"', '127.0.0.1"')
    listens = f'"port {ports[service]}" "bind 127.0.0.1" "dir {own}"'
    script = script.replace(r"printf '%s\n' ", rf"printf '%s\n' {listens} ")
    script = script.replace("exec redis-sentinel", "exec redis-server --sentinel")
    script = re.sub(r"--sentinel (\S+)", r"\1 --sentinel", script)
    with (own / "said").open("wb") as said:
        process = subprocess.Popen(["sh", "-c", script], stdout=said, stderr=said, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)


def _url(ports: dict[str, int]) -> str:
    """Return the URL that the file's first lines make, with ports of this machine."""
    found = re.search(r"printf '(redis\+sentinel:\S+)'", text("compose/compose.yaml"))
    assert found is not None
    url = found[1].replace("%s", PASSWORD)
    for name in SENTINELS:
        url = url.replace(f"{name}:26379", f"127.0.0.1:{ports[name]}")
    return url


def _followers(port: int) -> int:
    """Return how many replicas of the Redis at ``port`` have its data and follow it. 0 while it starts."""
    with redis.Redis(port=port, password=PASSWORD) as client:
        try:
            rows = client.info("replication")
        except (redis.ConnectionError, redis.BusyLoadingError):
            return 0
    return sum(name.startswith("slave") and row["state"] == "online" for name, row in rows.items() if "_" not in name)


def _said(folder: Path, services: Sequence[str]) -> str:
    return "\n".join((folder / service / "said").read_text(errors="replace")[-800:] for service in services)


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="the files need redis-server 7 on PATH")
async def test_the_redis_and_the_sentinels_of_compose_serve_a_server(tmp_path: Path) -> None:
    """A write waits for one replica, so it shows that the replicas follow and that the passwords agree."""
    (tmp_path / "redis_password").write_text(PASSWORD)
    ports = {name: free_port() for name in (*REDIS, *SENTINELS)}
    with ExitStack() as stack:
        for service in (*REDIS, *SENTINELS):
            stack.enter_context(_started(service, tmp_path, ports))
        await eventually(lambda: _followers(ports[REDIS[0]]) == 2, what="replicas that have the data")
        (tmp_path / "redis_url").write_text(_url(ports))
        variables = {"STREAM_SERVER_REDIS_FILE": str(tmp_path / "redis_url")}
        server = Server(tmp_path / "server", "--write-replicas", "1", variables=variables)
        try:
            stack.enter_context(server)
        except TimeoutError as error:
            raise AssertionError(_said(tmp_path, (*REDIS, *SENTINELS))) from error
        async with Api(server) as api:
            uid = await api.user()
            body = {"message": "three machines"}
            assert (await api.call("POST", "/v1/statuses", token=mint(uid), json=body)).status == 201
