"""The protocols of streams by the names of their framings, for the counts that an operator sees."""

from collections.abc import Mapping

from stream_server.hub.client_registry import POLL
from stream_server.web.streaming.framing import NDJSON, SSE

_PROTOCOL_BY_FRAMING = {SSE: "sse", NDJSON: "ndjson", "websocket": "websocket", "v1.1": "v1", "v2": "v2", POLL: "poll"}


def count_streams(open_by_framing: Mapping[str, int]) -> dict[str, int]:
    """Return the number of open streams of each protocol, also of those without a stream."""
    counts = dict.fromkeys(_PROTOCOL_BY_FRAMING.values(), 0)
    for framing, count in open_by_framing.items():
        counts[_PROTOCOL_BY_FRAMING[framing]] += count
    return counts
