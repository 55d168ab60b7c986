"""The routes on a real store and a real socket, with a hub that nobody feeds: that is tested in rooms of its own."""

import logging
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from filters.registry import Registry
from stream_server.config.settings import Config
from stream_server.events.language import detect_language
from stream_server.hub.disconnect import ReconnectSpread
from stream_server.runtime.metrics import Metrics
from stream_server.security.passwords import Passwords
from stream_server.security.tokens import TokenAuthority
from stream_server.store.store import Store
from stream_server.web import routes
from stream_server.web.http import app_keys, middleware
from stream_server.web.http.http_connection import HttpRunner
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER, SubscriptionParser
from tests.redis_process import RedisProcess
from tests.stream_server import tokens
from tests.stream_server.hub import world as hub_world
from tests.stream_server.web.world import World
from tests.waiting import PATIENCE


@pytest.fixture
def settings() -> dict[str, Any]:
    """Settings that a test module may override."""
    return {}


@pytest.fixture
def config(settings: dict[str, Any]) -> Config:
    """The settings of the app under test."""
    return tokens.config(password_memory_kib=8, password_rounds=1, redis_timeout_seconds=PATIENCE, **settings)


@pytest.fixture
async def app(config: Config, redis_url: str) -> AsyncIterator[web.Application]:
    """The app, wired as the server does it."""
    store = Store(redis_url, timeout_seconds=config.redis_timeout_seconds, detect_language=detect_language)
    await store.open()
    passwords = Passwords(memory_kib=config.password_memory_kib, rounds=config.password_rounds)
    app = web.Application(middlewares=middleware.MIDDLEWARES)
    app[app_keys.CONFIG], app[app_keys.STORE], app[app_keys.AUTH] = config, store, TokenAuthority(config)
    app[app_keys.PASSWORDS], app[app_keys.METRICS] = passwords, Metrics()
    app[app_keys.HUB] = hub_world.World().hub
    app[app_keys.READINESS_CHECK], app[app_keys.SHUTDOWN] = _well, ReconnectSpread(5.0, random.Random(1))
    app[SUBSCRIPTION_PARSER] = SubscriptionParser(Registry.from_entry_points())
    routes.add_routes(app)
    yield app
    passwords.close()
    await store.close()


def _well() -> tuple[bool, dict[str, object]]:
    return True, {"lag_ms": 0}


@pytest.fixture
async def address(app: web.Application) -> AsyncIterator[tuple[str, int]]:
    """Where it listens: a free port of this machine, behind the connections that the server uses."""
    runner = HttpRunner(app, header_seconds=0.3, shutdown_seconds=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][:2]
    await runner.cleanup()


@pytest.fixture
async def world(address: tuple[str, int], redis_server: RedisProcess) -> AsyncIterator[World]:
    """A client of it, and a look into its Redis."""
    looking = redis_server.client()
    async with aiohttp.ClientSession(f"http://{address[0]}:{address[1]}") as session:
        yield World(session, looking)
    looking.close()


@pytest.fixture(autouse=True)
def _no_token_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test does, no token and no password of it stands in any log line, redacted or not."""
    caplog.set_level(logging.DEBUG)
    yield
    for record in caplog.get_records("call"):
        line = logging.Formatter().format(record)
        assert "eyJ" not in line
        assert "correct horse" not in line
