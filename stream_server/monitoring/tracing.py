"""Traces of write requests with OpenTelemetry: the request, its calls of Redis, the way of the entry to the sockets.

The spans of a trace:

- the request, a child of the caller's span if the request has the header ``traceparent`` (W3C Trace Context)
- ``store``: one for each round trip to Redis
- ``publish``: from the atomic step in Redis, by Redis' clock, to the moment when the feed of this process has the entry
- ``feed``: finding the matching clients and queuing the frames
- ``flush``: from then on, until the flush that contains the frames is written; left out if no flush was necessary

The entry carries nothing of the trace. So a trace shows the delivery in the process that took the request, and other
processes and the log have no cost. Without a setting nothing of this module runs.

`start_export` lets them be sent to a collector.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.hub import Hub
from stream_server.store.redis.timeout_budget import RequestTrace

if TYPE_CHECKING:
    from opentelemetry.trace import Span
import threading
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stream_server import __version__
from stream_server.build import full_version
from stream_server.config.settings import Config, InvalidSetting

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

MAX_OPEN_TRACES = 100
"""Most requests that are traced at the same time. A client can ask for a trace with ``traceparent``."""

MAX_REMEMBERED_ENTRIES = 1000
"""Most entries that wait for their request, or requests that wait for their entry."""

_Value = TypeVar("_Value")

TRACE_HEADERS = ("traceparent", "tracestate")


class _Delivery(NamedTuple):
    """The times of one entry in this process, in ns since 1970. ``flushed_ns`` is 0 if no flush was necessary."""

    logged_ns: int
    received_ns: int
    routed_ns: int
    flushed_ns: int


class TracedRequest(RequestTrace):
    """A request that is traced, with the span of the request."""

    __slots__ = ("span",)

    def __init__(self, span: "Span") -> None:
        super().__init__()
        self.span = span


class Tracing:
    """Traces the sampled write requests of this process, and the way of their entries through ``hub``.

    ``provider`` exports the spans.
    """

    def __init__(self, provider: "TracerProvider", hub: Hub) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("stream-server", __version__)
        self._hub = hub
        self._open_traces = 0
        self._delivered: OrderedDict[Position, _Delivery] = OrderedDict()
        self._waiting: OrderedDict[Position, Span] = OrderedDict()

    def begin(self, method: str, path: str, headers: Mapping[str, str]) -> TracedRequest | None:
        """Begin the span of a request to the route ``path``. Return None if the request is not sampled."""
        if self._open_traces >= MAX_OPEN_TRACES:
            return None
        from opentelemetry.trace import SpanKind  # noqa: PLC0415 - only with the extra, which tracing needs
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - see above
            TraceContextTextMapPropagator,
        )

        carrier = {name: headers[name] for name in TRACE_HEADERS if name in headers}
        attributes = {"http.request.method": method, "http.route": path}
        context = TraceContextTextMapPropagator().extract(carrier)
        span = self._tracer.start_span(f"{method} {path}", context, SpanKind.SERVER, attributes)
        if not span.is_recording():
            return None
        self._open_traces += 1
        self._hub.watch_entry = self._watch
        return TracedRequest(span)

    def end(self, request: TracedRequest, status: int) -> None:
        """End the span of a request, and add the spans of what it did. The entry may be delivered later."""
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - see `begin`

        for call in request.calls:
            self._add_span(request.span, "store", call.started_ns, call.ended_ns, commands=call.command_count)
        request.span.set_attribute("http.response.status_code", status)
        if status >= 500:
            request.span.set_status(Status(StatusCode.ERROR))
        request.span.end()
        self._open_traces -= 1
        if request.written is not None:
            delivery = self._delivered.pop(request.written, None)
            if delivery is not None:
                self._add_delivery(request.span, delivery)
            else:
                _remember(self._waiting, request.written, request.span)
        if not self._open_traces and not self._waiting:
            self._hub.watch_entry = None
            self._delivered.clear()

    async def close(self, *_: object) -> None:
        """Send the spans that wait, in a thread that does not keep the process from ending."""
        threading.Thread(target=self._provider.shutdown, name="last traces", daemon=True).start()

    def _watch(self, entry: Entry) -> Callable[[], None]:
        """Record when the hub gets an entry.

        Return a function to call when the entry's frames wait for their clients.
        """
        received_ns = time.time_ns()

        def routed() -> None:
            routed_ns = time.time_ns()

            def flushed() -> None:
                self._on_delivered(entry, received_ns, routed_ns, time.time_ns())

            if not self._hub.live.flusher.call_after_flush(flushed):
                self._on_delivered(entry, received_ns, routed_ns, 0)

        return routed

    def _on_delivered(self, entry: Entry, received_ns: int, routed_ns: int, flushed_ns: int) -> None:
        delivery = _Delivery(entry.position.ms * 1_000_000, received_ns, routed_ns, flushed_ns)
        span = self._waiting.pop(entry.position, None)
        if span is not None:
            self._add_delivery(span, delivery)
        elif self._open_traces:
            _remember(self._delivered, entry.position, delivery)
        for position in [one for one in self._waiting if one < entry.position]:
            del self._waiting[position]  # entries come in order, so its entry does not come: Redis has lost it
        if not self._open_traces and not self._waiting:
            self._hub.watch_entry = None

    def _add_delivery(self, parent: "Span", delivery: _Delivery) -> None:
        logged_ns = min(delivery.logged_ns, delivery.received_ns)  # the clocks of two machines may differ
        self._add_span(parent, "publish", logged_ns, delivery.received_ns)
        self._add_span(parent, "feed", delivery.received_ns, delivery.routed_ns)
        if delivery.flushed_ns:
            self._add_span(parent, "flush", delivery.routed_ns, delivery.flushed_ns)

    def _add_span(self, parent: "Span", name: str, started_ns: int, ended_ns: int, **attributes: int) -> None:
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415 - see `begin`

        context = set_span_in_context(parent)
        self._tracer.start_span(name, context, attributes=attributes, start_time=started_ns).end(ended_ns)


def _remember(memory: OrderedDict[Position, _Value], position: Position, value: _Value) -> None:
    memory[position] = value
    if len(memory) > MAX_REMEMBERED_ENTRIES:
        memory.popitem(last=False)


TRACES_PATH = "/v1/traces"


def make_provider(processor: "SpanProcessor", ratio: float, worker: int) -> "TracerProvider":
    """Return the OpenTelemetry provider that hands finished spans to ``processor``.

    Of the requests without a header ``traceparent`` it traces the share ``ratio``. ``worker`` is the number of the
    process.
    """
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - only with the extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - see above
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased  # noqa: PLC0415 - see above

    about = {"service.name": "stream-server", "service.version": full_version(), "service.instance.id": str(worker)}
    sampler = ParentBased(TraceIdRatioBased(ratio))
    provider = TracerProvider(sampler, Resource.create(about), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


def check_settings(config: Config) -> None:
    """Raise :class:`InvalidSetting` if the settings ask for traces, and its URL is invalid or a library is missing."""
    if not config.otlp_endpoint:
        return
    if not _is_http_url(config.otlp_endpoint):
        raise InvalidSetting("--otlp-endpoint must be a URL such as http://127.0.0.1:4318")
    try:
        import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError:
        message = 'otlp_endpoint needs the extra `telemetry`: pip install "social-stream-server[telemetry]"'
        raise InvalidSetting(message) from None


def _is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port above 65535, or an address that is none
        return False


def start_export(config: Config, hub: Hub, worker: int) -> Tracing | None:
    """Return the tracing with an export that the settings ask for, None without ``otlp_endpoint``.

    Raises :class:`InvalidSetting` as :func:`check_settings` does.
    """
    if not config.otlp_endpoint:
        return None
    check_settings(config)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - an extra

    endpoint = config.otlp_endpoint.rstrip("/")
    endpoint = endpoint if endpoint.endswith(TRACES_PATH) else endpoint + TRACES_PATH
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=5.0)  # a thread of its own waits for the collector
    return Tracing(make_provider(BatchSpanProcessor(exporter), config.trace_ratio, worker), hub)
