"""A server for a module, and an API session for a test."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

LONG = re.compile(
    r"test_(an_outage_is_waited_out|a_write_whose_outcome_is_unknown|a_redis_that_stands_still|a_slow_redis).*\[two "
    r"|test_listeners_that_are_thrown_out_miss_nothing\[two workers"
    r"|test_a_silent_link_is_told_while_it_lasts\[two "
    r"|test_signals_until_it_is_gone_change_nothing\[(SIGTERM-1|SIGINT-2|SIGHUP)"
    r"|test_(sigterm_during_the_start|sigterm_while_it_waits_for_redis_at_the_start|a_second_sigterm)\w*\[1\]"
    r"|test_(sigterm_ends_2000_streams|no_acknowledged_write_is_lost|a_thousand_open_and_abort|who_never_finishes)\w*\[1\]"
    r"|test_nothing_is_answered_before_the_feed_is_fed\[2\]"
    r"|test_who_vanishes_is_gone_in_time\[(half_open_replaying|never_reading_replaying|reset|half_closed)"
    r"|test_no_visit_misses_doubles_or_reorders_anything\[one worker"
    r"|test_without_the_canary_a_silent_link_starves_and_the_oracle_says_so"
    r"|test_counters_of_all_servers_agree_with_the_log\[links cut"
    r"|test_(since_goes|a_token_goes)\w*\[behind"
    r"|test_a_reload_reaches_open_streams_and_drops_none\[1"
    r"|test_the_clock_jumps\[2"
)
"""Further layouts and kinds of what another case shows as well; each starts servers, and all of them take minutes."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave those to ``--full``."""
    if config.getoption("--full"):
        return
    long = [item for item in items if LONG.match(item.name)]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One real server, whose heartbeats come often; at the end it must stop cleanly, without a traceback."""
    with Server(tmp_path_factory.mktemp("server"), "--heartbeat-seconds", "0.2") as running:
        yield running


@pytest.fixture
async def api(server: Server) -> AsyncIterator[Api]:
    """A session with that server."""
    async with Api(server) as session:
        yield session


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """A folder for a server that a test starts, kills and starts again itself."""
    return tmp_path / "own"
