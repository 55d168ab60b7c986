"""Traces of writes: the spans of one request, as the collector gets them, and nothing without the setting."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from stream_server.config.config import load
from stream_server.config.settings import InvalidSetting
from stream_server.monitoring import tracing
from stream_server.monitoring.tracing import MAX_OPEN_TRACES, Tracing, make_provider, start_export
from stream_server.web.http import app_keys
from stream_server.web.http.middleware import CLIENT_LEFT
from tests.stream_server.hub.world import World
from tests.stream_server.web.running_server import RunningServer, running_server
from tests.waiting import PATIENCE, eventually

TRACE_ID, PARENT_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    yield exporter
    exporter.shutdown()


@pytest.fixture
async def server(
    redis_url: str, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RunningServer]:
    """A server whose spans stay in memory. Without `traceparent` no request is sampled."""

    def export(config: object, hub: Any, worker: int) -> Tracing:
        return Tracing(make_provider(SimpleSpanProcessor(spans), 0, worker), hub)

    monkeypatch.setattr("stream_server.app.start_export", export)
    async with running_server(redis_url, {"shutdown_seconds": 1.0}) as running:
        yield running


def named(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


async def test_a_post_is_traced_from_the_request_to_the_socket(
    server: RunningServer, spans: InMemorySpanExporter
) -> None:
    """The spans are children of the caller's span, in order, and the event arrives as it does without a trace."""
    async with server.session.get("/v1/stream?track=traced", headers=server.authorization) as stream:
        await eventually(lambda: server.app[app_keys.HUB].live.count == 1)
        headers = {**server.authorization, "traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01"}
        async with server.session.post("/v1/statuses", json={"message": "traced"}, headers=headers) as answer:
            assert answer.status == 201
        while b"traced" not in await stream.content.readline():
            pass
        await eventually(lambda: "flush" in named(spans))
    found = named(spans)
    request = found["POST /v1/statuses"]
    assert set(found) == {"POST /v1/statuses", "store", "publish", "feed", "flush"}
    assert {f"{span.context.trace_id:032x}" for span in found.values() if span.context} == {TRACE_ID}
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == PARENT_ID
    assert request.context is not None
    for name in ("store", "publish", "feed", "flush"):
        parent = found[name].parent
        assert parent is not None
        assert parent.span_id == request.context.span_id
    times = [(found[name].start_time or 0, found[name].end_time or 0) for name in ("publish", "feed", "flush")]
    assert all(start <= end for start, end in times)
    assert [end for _, end in times[:-1]] == [start for start, _ in times[1:]]
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 201
    assert request.resource.attributes["service.name"] == "stream-server"


async def test_what_is_not_sampled_has_no_span(server: RunningServer, spans: InMemorySpanExporter) -> None:
    """Reads, refused headers and writes that the caller does not sample leave nothing behind."""
    for traceparent in (f"00-{TRACE_ID}-{PARENT_ID}-00", "nonsense", ""):
        headers = {**server.authorization, "traceparent": traceparent}
        async with server.session.post("/v1/statuses", json={"message": "not traced"}, headers=headers) as answer:
            assert answer.status == 201
    sampled = {**server.authorization, "traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01"}
    async with server.session.get("/v1/users/me", headers=sampled) as answer:
        assert answer.status == 200
    assert named(spans) == {}
    assert server.app[app_keys.HUB].watch_entry is None


async def test_a_refused_write_has_its_status_and_no_delivery(
    server: RunningServer, spans: InMemorySpanExporter
) -> None:
    headers = {**server.authorization, "traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01"}
    async with server.session.post("/v1/statuses", json={"message": ""}, headers=headers) as answer:
        assert answer.status == 400
    found = named(spans)
    assert set(found) - {"store"} == {"POST /v1/statuses"}
    assert server.app[app_keys.HUB].watch_entry is None


async def test_the_trace_of_a_client_that_leaves_ends(server: RunningServer, spans: InMemorySpanExporter) -> None:
    """Else a hundred such clients would end all tracing, and each entry would be watched for nobody."""
    head = f"POST /v1/statuses HTTP/1.1\r\ntraceparent: 00-{TRACE_ID}-{PARENT_ID}-01\r\nContent-Length: 99"
    hub = server.app[app_keys.HUB]
    _, writer = await server.send_raw(head)
    await eventually(lambda: hub.watch_entry is not None)
    writer.close()
    await eventually(lambda: hub.watch_entry is None)
    attributes = named(spans)["POST /v1/statuses"].attributes
    assert attributes is not None
    assert attributes["http.response.status_code"] == CLIENT_LEFT


async def test_the_number_of_open_traces_is_bounded(spans: InMemorySpanExporter) -> None:
    world = World()
    tracing = Tracing(make_provider(SimpleSpanProcessor(spans), 1, 1), world.hub)
    begun = [tracing.begin("POST", "/v1/statuses", {}) for _ in range(MAX_OPEN_TRACES + 5)]
    assert sum(request is not None for request in begun) == MAX_OPEN_TRACES
    for request in begun:
        if request is not None:
            tracing.end(request, 201)
    assert world.hub.watch_entry is None
    assert tracing.begin("POST", "/v1/statuses", {}) is not None


async def test_an_entry_that_matches_nobody_has_no_flush(spans: InMemorySpanExporter) -> None:
    """The entry may also arrive before the request knows what it wrote."""
    world = World()
    tracing = Tracing(make_provider(SimpleSpanProcessor(spans), 1, 1), world.hub)
    request = tracing.begin("POST", "/v1/statuses", {})
    assert request is not None
    request.written = world.post("nobody listens").position
    tracing.end(request, 201)
    assert set(named(spans)) == {"POST /v1/statuses", "publish", "feed"}


async def test_an_entry_that_never_comes_is_not_awaited_for_ever(spans: InMemorySpanExporter) -> None:
    """Redis may lose what it acknowledged. Else each later entry would be watched, and the span kept, for nobody."""
    world = World()
    tracing = Tracing(make_provider(SimpleSpanProcessor(spans), 1, 1), world.hub)
    request = tracing.begin("POST", "/v1/statuses", {})
    assert request is not None
    lost = world.hub.head
    request.written = lost._replace(ms=lost.ms + 1, n=lost.n + 1)
    tracing.end(request, 201)
    watched = [world.hub.watch_entry is not None]
    world.post("what comes instead")
    watched.append(world.hub.watch_entry is not None)
    assert watched == [True, False]
    assert set(named(spans)) == {"POST /v1/statuses"}


@pytest.mark.parametrize(
    "endpoint", ["collector", "http://", "ftp://collector:4318", "http://collector:99999", "http://[::"]
)
def test_a_collector_without_a_url_is_refused_at_the_start(endpoint: str) -> None:
    """Else the log would tell it with every batch of traces, and never before the first."""
    with pytest.raises(InvalidSetting, match="otlp-endpoint must be a URL"):
        tracing.check_settings(load({}, {"STREAM_SERVER_OTLP_ENDPOINT": endpoint}))


async def test_without_the_extra_one_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    config = load({}, {"STREAM_SERVER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    advice = r'^otlp_endpoint needs .*: pip install "social-stream-server\[telemetry\]"$'
    with pytest.raises(InvalidSetting, match=advice):
        start_export(config, World().hub, 1)


async def test_the_traces_reach_a_collector_by_otlp(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter of the setting posts protobuf to the path of traces."""
    received: asyncio.Queue[bytes] = asyncio.Queue()

    async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()
        received.put_nowait(head)

    collector = await asyncio.start_server(collect, "127.0.0.1", 0)
    port = collector.sockets[0].getsockname()[1]
    variables = {"STREAM_SERVER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}/", "STREAM_SERVER_TRACE_RATIO": "1"}
    export = start_export(load({}, variables), World().hub, 1)
    assert export is not None
    request = export.begin("POST", "/v1/statuses", {})
    assert request is not None
    export.end(request, 201)
    await export.close()
    head = await asyncio.wait_for(received.get(), PATIENCE)
    assert head.startswith(f"POST {tracing.TRACES_PATH} HTTP/1.1\r\n".encode())
    assert b"application/x-protobuf" in head
    collector.close()
