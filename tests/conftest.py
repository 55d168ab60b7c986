"""Fixtures that every test may use: a private Redis, emptied before each test, and a real server for the session."""

import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings

from tests.cluster_in_place import ClusterInPlace, cluster_in_place, skip_left_out
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server
from tests.preloaded.launcher import ROOT, interpreter_of_workers, share_parent
from tests.redis_process import RedisProcess, binaries, newest
from tests.tiers import ALL, QUICK, each_engine

SLOW_SECONDS = 1.0
"""Goal for the time of a test of the first tier on a quiet machine. A test that takes longer is listed and passes."""

LISTED = 25

DEFAULT_TIMEOUT_SECONDS = 300
"""The ``timeout`` of pyproject.toml."""


def pytest_collection() -> None:
    """Collect no garbage while tests are collected.

    Thousands of them stay in memory. Full garbage collections would visit them again and again.
    """
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave the collected tests out of all later garbage collections."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--quick`` (first tier only), ``--full`` (more data, cases and seeds) and ``--seed`` (repeat a run)."""
    parser.addoption("--quick", action="store_true", help="run the first tier, with small budgets")
    parser.addoption("--full", action="store_true", help="run the long forms of the tests too")
    parser.addoption("--redis-cluster", action="store_true", help="run the store's tests on a Redis Cluster")
    parser.addoption("--seed", type=int, help="the chance of the tests of random faults")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the nightly tests without ``--full``, and the extended tests with ``--quick``."""
    if config.getoption("--redis-cluster"):
        skip_left_out(items)
    left = [] if config.getoption("--full") else ["nightly"]
    left += ["extended"] if config.getoption("--quick") else []
    later = {item for item in items if any(item.get_closest_marker(mark) for mark in left)}
    config.hook.pytest_deselected(items=[item for item in items if item in later])
    items[:] = _long_first([item for item in items if item not in later])


def _long_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Let each worker of xdist begin with its share of the tests that have a longer timeout than the others.

    Those of one file go to one worker. They share what takes long to make, and other workers would only wait for it.
    """
    timeouts = {item: item.get_closest_marker("timeout") for item in items}
    long = [item for item, mark in timeouts.items() if mark is not None and mark.args[0] > DEFAULT_TIMEOUT_SECONDS]
    files = [[*tests] for _, tests in groupby(long, lambda item: item.path)]
    begin = set(long)
    rest = iter([item for item in items if item not in begin])
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ordered: list[pytest.Item] = []
    for n in range(workers):
        ordered += chain.from_iterable(files[n::workers])
        end = len(items) * (n + 1) // workers  # where xdist divides them
        ordered += islice(rest, max(0, end - len(ordered)))
    return [*ordered, *rest]


def pytest_configure(config: pytest.Config) -> None:
    # A shell lets what it starts in the background ignore Ctrl-C, and each program that a test starts would too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # A busy machine is slow, not wrong.
    name = QUICK if config.getoption("--quick") else ALL
    settings.register_profile(name, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile(name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: Sequence[Any]) -> None:
    """Let the workers of a run share what they import: the server's code and the collected tests."""
    share_parent()
    if Path.cwd() == ROOT:
        interpreter = interpreter_of_workers([str(one) for one in config.invocation_params.args])
        for spec in specs:
            spec.python = interpreter


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the slow tests of the first tier."""
    reports = [one for one in terminalreporter.getreports("passed") if one.duration > SLOW_SECONDS]
    if reports and terminalreporter.config.getoption("--quick"):
        terminalreporter.section(f"{len(reports)} of the first tier over {SLOW_SECONDS:g} s, the slowest of them")
        for one in sorted(reports, key=lambda one: -one.duration)[:LISTED]:
            terminalreporter.write_line(f"{one.duration:6.1f} s  {one.when}  {one.nodeid}")


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether ``--full`` was given."""
    return bool(request.config.getoption("--full"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests marked ``every_redis`` on each engine. Only the newest is in the first tier."""
    if "redis_server" not in metafunc.fixturenames or not metafunc.definition.get_closest_marker("every_redis"):
        return
    if not metafunc.config.getoption("--redis-cluster"):
        metafunc.parametrize("redis_server", each_engine(), indirect=True, scope="session")


@pytest.fixture(scope="session")
def redis_servers() -> Iterator[dict[Path, RedisProcess]]:
    """The running engines by their programs."""
    running: dict[Path, RedisProcess] = {}
    yield running
    for server in running.values():
        server.stop()


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[ClusterInPlace]:
    """A cluster for the whole session, which ``--redis-cluster`` puts in place of its Redis."""
    with cluster_in_place() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def redis_server(request: pytest.FixtureRequest, redis_servers: dict[Path, RedisProcess]) -> RedisProcess:
    """A Redis of this machine for the whole session: the newest engine, or that of the test's parameter."""
    if request.config.getoption("--redis-cluster"):
        return cast(RedisProcess, request.getfixturevalue("redis_cluster"))
    binary = binaries()[request.param] if hasattr(request, "param") else newest()
    if binary not in redis_servers:
        redis_servers[binary] = RedisProcess(binary).start()
    return redis_servers[binary]


@pytest.fixture
def redis_url(redis_server: RedisProcess) -> str:
    """The URL of the session's Redis, after its data are deleted."""
    client = redis_server.client()
    client.flushall()
    client.close()
    return redis_server.url


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One real server with frequent heartbeats for the session. It must stop cleanly and without a traceback."""
    with Server(tmp_path_factory.mktemp("server"), "--heartbeat-seconds", "0.2") as running:
        yield running


@pytest.fixture
async def api(server: Server) -> AsyncIterator[Api]:
    async with Api(server) as session:
        yield session


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """A folder for a server that the test starts, kills and restarts itself."""
    return tmp_path / "own"
