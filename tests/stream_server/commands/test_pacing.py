"""The times at which the statuses of a recording are due."""

import math

from stream_server.commands.replay import original_pace, steady_pace


def test_a_rate_spaces_statuses_evenly() -> None:
    assert steady_pace(50)(100, None) == 2.0
    assert steady_pace(math.inf)(99, 5.0) == 0.0


def test_a_speed_divides_the_times_of_the_recording() -> None:
    due = original_pace(60)
    assert [due(n, posted) for n, posted in enumerate((None, 1000.0, 4600.0, 900.0))] == [0.0, 0.0, 60.0, -100 / 60]
