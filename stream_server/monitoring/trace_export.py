"""Sends the traces of this process to a collector of OpenTelemetry, by OTLP over HTTP, with the extra ``telemetry``."""

import threading
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stream_server import __version__
from stream_server.build import full_version
from stream_server.config.settings import Config, InvalidSetting
from stream_server.hub.hub import Hub
from stream_server.monitoring.tracing import Tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

EXPORT_SECONDS = 5.0
"""Longest time in seconds of one request to the collector. A thread of its own waits for it."""

EXPORTER_MODULE = "opentelemetry.exporter.otlp.proto.http.trace_exporter"

TRACES_PATH = "/v1/traces"

MISSING_EXTRA = 'otlp_endpoint needs the extra `telemetry`: pip install "stream-server[telemetry]"'


class TraceExport:
    """The tracing of one process, and the export of its spans. ``tracing`` observes the hub."""

    def __init__(self, provider: "TracerProvider", hub: Hub) -> None:
        self._provider = provider
        self.tracing = Tracing(provider.get_tracer("stream-server", __version__), hub)

    async def close(self, *_: object) -> None:
        """Send the spans that wait, in a thread that does not keep the process from ending."""
        threading.Thread(target=self._provider.shutdown, name="last traces", daemon=True).start()


def make_provider(processor: "SpanProcessor", ratio: float, worker: int) -> "TracerProvider":
    """Return the OpenTelemetry provider.

    It samples the share ``ratio`` of the requests without a header ``traceparent``.
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
        import_module(EXPORTER_MODULE)
    except ImportError:
        raise InvalidSetting(MISSING_EXTRA) from None


def _is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port above 65535, or an address that is none
        return False


def start_export(config: Config, hub: Hub, worker: int) -> TraceExport | None:
    """Return the export that the settings ask for, None without ``otlp_endpoint``.

    Raises :class:`InvalidSetting` as :func:`check_settings` does.
    """
    if not config.otlp_endpoint:
        return None
    check_settings(config)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - an extra

    endpoint = config.otlp_endpoint.rstrip("/")
    endpoint = endpoint if endpoint.endswith(TRACES_PATH) else endpoint + TRACES_PATH
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_SECONDS)
    return TraceExport(make_provider(BatchSpanProcessor(exporter), config.trace_ratio, worker), hub)
