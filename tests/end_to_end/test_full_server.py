"""A server whose places are all taken by streams: it refuses others, and still tells its operator how it is."""

from contextlib import AsyncExitStack
from pathlib import Path

from stream_server.web.limits.connections import OPERATOR_PATHS, OPERATOR_PLACES
from tests.end_to_end.api import Api
from tests.end_to_end.faults.clients import RawClient
from tests.end_to_end.server import Server
from tests.waiting import eventually

PLACES = 6


def get(path: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", "", ""]).encode()


async def test_a_full_server_serves_its_operator_and_refuses_others(tmp_path: Path) -> None:
    """A liveness probe that fails would make the supervisor kill the server, with all its streams."""
    fields = ("--limits", "off", "--connections-max", str(PLACES))
    async with AsyncExitStack() as streams:
        server = streams.enter_context(Server(tmp_path, *fields))
        api = await streams.enter_async_context(Api(server))
        for _ in range(PLACES):
            streams.push_async_callback((await api.stream({"track": "tea"})).close)
        silent = [await RawClient.connect(server.address) for _ in range(3 * OPERATOR_PLACES)]
        for client in silent:
            streams.push_async_exit(client)
        for path in OPERATOR_PATHS:  # silent connections have the operator's places, and make room
            async with await RawClient.connect(server.address) as probe:
                for _ in range(2):
                    await probe.send(get(path))
                    assert (await probe.read_until(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
        for other in (get("/"), get("/v1/stream?track=tea"), get("/healthz/x"), get("/metricsx")):
            async with await RawClient.connect(server.address) as client:
                await client.send(other)
                answer = await client.read_to_end()
                assert answer.startswith(b"HTTP/1.1 503 ")
                assert b"no room for another connection" in answer
        await eventually(lambda: "all 6 slots are taken" in server.log)
        assert server.log.count("all 6 slots are taken") == 1
