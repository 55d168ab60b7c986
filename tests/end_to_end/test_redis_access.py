"""Servers, workers and listeners with the least rights in Redis, and a Redis behind TLS."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.command_line import clean_environment, run
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.redis_process import RedisProcess, binaries, free_port, newest
from tests.tiers import each_engine
from tests.tls import Authority, TlsProxy
from tests.waiting import PATIENCE

pytestmark = pytest.mark.extended


@pytest.fixture(params=each_engine())
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[RedisProcess, dict[str, str]]]:
    """A Redis with the users that the command prints, and the URL of each role."""
    made = run("redis-acl")
    assert made.code == 0, made
    file = tmp_path / "users.acl"
    file.write_text(made.out)
    server = RedisProcess(binaries()[request.param], "--aclfile", str(file), port=0)
    urls = dict(line.removeprefix("stream-server-").split(": ", 1) for line in made.err.splitlines())
    urls = {role: url.replace("HOST:6379", f"127.0.0.1:{server.port}") for role, url in urls.items()}
    server.start()
    yield server, urls
    server.stop()


async def test_each_role_can_do_its_work_and_nothing_else(
    tmp_path: Path, guarded: tuple[RedisProcess, dict[str, str]]
) -> None:
    _, urls = guarded
    with redis.Redis.from_url(urls["reader"]) as reader, redis.Redis.from_url(urls["server"]) as own:
        async with (
            Server(tmp_path / "server", variables={"STREAM_SERVER_REDIS": urls["server"]}) as server,
            Api(server) as api,
        ):
            await _use_everything(api)
            listener = reader.pubsub(ignore_subscribe_messages=True)
            listener.psubscribe("events:*")
            await api.post(api.admin, "heard")
            message = await asyncio.to_thread(_next_message, listener)
            assert b"heard" in message
            listener.close()
        worker = run("repair", env=clean_environment(STREAM_SERVER_REDIS=urls["worker"]))
        assert worker.code == 0, worker
        assert reader.xlen("{core}:log") > 0
        for client, command in (
            (reader, ("SET", "{core}:log", "x")), (reader, ("HGETALL", "{core}:emails")),
            (reader, ("PUBLISH", "events:post", "x")), (reader, ("EVAL", "return 1", "0")),
            (own, ("FLUSHALL",)), (own, ("CONFIG", "GET", "*")), (own, ("KEYS", "*")), (own, ("SET", "elsewhere", "x")),
            (own, ("ACL", "LIST")), (own, ("SAVE",)), (own, ("PUBLISH", "elsewhere", "x")),
        ):  # fmt: skip
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*command)


def _next_message(listener: "redis.client.PubSub") -> bytes:
    while (message := listener.get_message(timeout=PATIENCE)) is None:
        pass
    return bytes(message["data"])


async def _use_everything(api: Api) -> None:
    """Write and read across the API, and open a stream."""
    ann, bob = await api.user(), await api.user()
    await api.follow(bob, ann)
    stream = await api.stream({"follow": "@me", "track": "tea"}, uid=bob)
    post = await api.post(ann, "tea @nobody #tag")
    await stream.until(lambda s: s.events)
    await stream.close()
    for method, path, body in (
        ("GET", "/v1/timelines/home", None), ("PUT", f"/v1/users/me/likes/{post['id']}", None),
        ("POST", f"/v1/statuses/{post['id']}/comments", {"message": "yes"}), ("GET", "/v1/notifications", None),
        ("POST", "/v1/lists", {"name": "a"}), ("POST", "/v1/rules", {"rules": [{"rule": "tea"}]}),
        ("POST", "/v1/streams/ticket", None), ("GET", "/v1/streams", None), ("GET", "/v1/sessions", None),
        ("POST", "/v1/talks", {"people": [ann]}), ("GET", f"/v1/users/{ann}/statuses", None),
        ("DELETE", "/v1/sessions?all=true", None),
    ):  # fmt: skip
        answer = await api.call(method, path, token=mint(bob), **({"json": body} if body else {}))
        assert answer.status < 300, (path, answer)
    await api.delete(ann, post["id"])


async def test_a_server_uses_a_redis_behind_tls(tmp_path: Path) -> None:
    """Any engine will do here: the TLS ends in the test."""
    with RedisProcess(newest()) as target:
        async with TlsProxy(target.socket, Authority(tmp_path)) as proxy:
            await _serve_over_tls(tmp_path, proxy.address[1], proxy.ca)


async def test_a_server_uses_the_tls_of_redis(tmp_path: Path) -> None:
    found = next(filter(_has_tls, binaries().values()), None)
    if found is None:
        pytest.skip("needs an engine with TLS, as Debian's redis-server: the pinned Valkey is built without")
    authority, port = Authority(tmp_path), free_port()
    own = str(authority.certificate)
    options = ("--tls-port", str(port), "--tls-cert-file", own, "--tls-key-file", own)
    with RedisProcess(found, *options, "--tls-auth-clients", "no"):
        await _serve_over_tls(tmp_path, port, authority.ca)


def _has_tls(binary: Path) -> bool:
    """Return whether an engine knows the options of TLS. One without refuses them and ends."""
    command = [str(binary), "--port", "0", "--save", "", "--tls-port", str(free_port())]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    told = answer.stdout + answer.stderr
    return not any(text in told for text in ("Bad directive", "Failed finding TLS support"))  # of Redis; of Valkey


async def _serve_over_tls(folder: Path, port: int, certificate: Path) -> None:
    """Post through a server that trusts the certificate. A command that does not trust it must fail."""
    url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={certificate}"
    async with Server(folder / "trusting", "--redis", url) as server, Api(server) as api:
        stream = await api.stream({"follow": api.admin})
        posted = await api.post(api.admin, "over TLS")
        await stream.until(lambda s: s.received == [("post", posted["id"])])
        await stream.close()
    strange = await asyncio.to_thread(run, "repair", "--redis", f"rediss://127.0.0.1:{port}/0")
    assert strange.code == 3, "a certificate that nobody trusts"
