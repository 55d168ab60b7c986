"""The rate that a preview reports."""

from stream_server.events.position import EPOCH_MS, LOG_START
from stream_server.hub.look_back import PreviewResult
from stream_server.web.api.rules import TimeSpan, preview_answer

BASE = EPOCH_MS + 1_000_000


def test_the_rate_is_per_minute_of_the_scanned_time() -> None:
    counted = PreviewResult(6, 9, LOG_START, True, [], BASE)
    assert preview_answer(counted, TimeSpan(BASE, BASE + 120_000), complete=True)["per_minute"] == 3.0
    assert preview_answer(counted, TimeSpan(BASE, BASE), complete=True)["per_minute"] == 360_000.0
