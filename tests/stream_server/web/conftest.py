"""The routes on a real store and a real socket, with a hub without a feed."""

import asyncio
import logging
import math
import random
import socket
from collections.abc import AsyncIterator, Iterator
from importlib import resources
from typing import Any

import aiohttp
import pytest
import requests
from aiohttp import web

from filters.registry import installed_registry
from stream_server.config.settings import Config
from stream_server.events.language import detect_language
from stream_server.feed.stream_directory import StreamDirectory
from stream_server.feed.token_validity_cache import TokenValidityCache
from stream_server.hub.disconnect import ReconnectSpread
from stream_server.monitoring.history import HistoryRecorder
from stream_server.monitoring.incidents import RecentErrors
from stream_server.monitoring.metrics import Metrics
from stream_server.monitoring.operations import Operations
from stream_server.monitoring.worker_sockets import WorkerSockets
from stream_server.security.clock_check import ClockCheck
from stream_server.security.passwords import Passwords
from stream_server.security.tokens import TokenAuthority
from stream_server.store.jobs.upkeep import LogTrimmer
from stream_server.store.log.retention import RetentionLimits
from stream_server.store.store import Store
from stream_server.store.write_guard import WriteGuard
from stream_server.trends.counter import TrendCounter
from stream_server.web import routes
from stream_server.web.api.server import load_pages
from stream_server.web.http import app_keys
from stream_server.web.http.connection_timeouts import ConnectionTimeouts
from stream_server.web.http.front_door import FrontDoor
from stream_server.web.http.request_limits import LIMITS, RequestLimits
from stream_server.web.streaming.acks import Acks
from stream_server.web.streaming.leases import Leases
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER, SubscriptionParser
from stream_server.web.webhooks.sender import Sender
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
    usual = {"webhook_networks": "127.0.0.0/8", "webhook_timeout_seconds": PATIENCE}
    return tokens.config(password_memory_kib=8, redis_timeout_seconds=PATIENCE, **usual | settings)


@pytest.fixture
async def app(config: Config, redis_url: str) -> AsyncIterator[web.Application]:
    """The app, wired as the server does it."""
    store = Store(redis_url, timeout_seconds=config.redis_timeout_seconds, detect_language=detect_language)
    await store.open()
    passwords = Passwords(config.password_memory_kib)
    app = web.Application()
    app[app_keys.CONFIG], app[app_keys.STORE], app[app_keys.AUTH] = config, store, TokenAuthority(config)
    app[app_keys.PASSWORDS], app[app_keys.METRICS] = passwords, Metrics()
    app[LIMITS] = RequestLimits(config, store.rate_counters)
    app[app_keys.HUB] = hub_world.World().hub
    app[app_keys.OPERATIONS] = Operations(
        app[app_keys.METRICS], app[app_keys.HUB], lambda: True, app[LIMITS].hits, RecentErrors(), WorkerSockets()
    )
    app[app_keys.HISTORY] = HistoryRecorder(
        app[app_keys.METRICS], app[app_keys.HUB], store.operation_samples, "this server"
    )
    app[app_keys.TRENDS] = TrendCounter(app[app_keys.HUB])
    app[app_keys.LOG_TRIMMER] = LogTrimmer(store.retention, RetentionLimits(7 * 86400, 0), store.subscriptions)
    app[app_keys.ACKS] = Acks(store.subscriptions)
    app[app_keys.LEASES] = Leases(store.shared_subscriptions)
    app[app_keys.SENDER] = Sender(config.webhook_networks, config.webhook_timeout_seconds)
    app[app_keys.STREAMS] = StreamDirectory(app[app_keys.HUB], store.open_streams, lambda: config.streams_per_user)
    app[app_keys.TOKEN_VALIDITY_CACHE] = TokenValidityCache(store.sessions, lambda: -math.inf, 0.0)  # hears no log
    app[app_keys.WRITE_GUARD], app[app_keys.SUBJECTS] = WriteGuard(store.state, 0, ClockCheck().compare), {}
    app[app_keys.READINESS_CHECK], app[app_keys.SHUTDOWN] = _well, ReconnectSpread(5.0, random.Random(1))
    app[app_keys.STATIC_FILES] = load_pages(resources.files("stream_server"))
    app[SUBSCRIPTION_PARSER] = SubscriptionParser(installed_registry())
    routes.add_routes(app)
    acks = asyncio.create_task(app[app_keys.ACKS].run())
    yield app
    acks.cancel()
    passwords.close()
    await app[app_keys.SENDER].close()
    app[SUBSCRIPTION_PARSER].thread.close()
    await store.close()


def _well() -> tuple[bool, dict[str, object]]:
    return True, {"lag_ms": 0}


@pytest.fixture
def header_seconds() -> float:
    """The deadline of a request head. Tests of the deadline override it with a short one."""
    return PATIENCE


@pytest.fixture
async def address(app: web.Application, header_seconds: float) -> AsyncIterator[tuple[str, int]]:
    """The address of the app, behind the connections that the server uses."""
    timeouts = ConnectionTimeouts(header_seconds=header_seconds)
    door = FrontDoor(app, timeouts=timeouts, shutdown_seconds=0.5)
    await door.open([socket.create_server(("127.0.0.1", 0))])
    yield door.addresses[0][:2]
    await door.close()


@pytest.fixture
def url(address: tuple[str, int]) -> str:
    """The address of the app, for the client `session`."""
    return f"http://{address[0]}:{address[1]}"


@pytest.fixture
def session() -> Iterator[requests.Session]:
    """A client without asyncio, for tests in a thread."""
    with requests.Session() as kept:
        kept.trust_env = False  # no search for proxies and passwords before each request
        yield kept


@pytest.fixture
async def world(address: tuple[str, int], redis_server: RedisProcess) -> AsyncIterator[World]:
    """A client of the app, and a client of its Redis."""
    looking = redis_server.client()
    async with aiohttp.ClientSession(f"http://{address[0]}:{address[1]}") as session:
        yield World(session, looking)
    looking.close()


@pytest.fixture(autouse=True)
def _no_token_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No log line may have a token or a password of a test, redacted or not."""
    caplog.set_level(logging.DEBUG)
    yield
    for record in caplog.get_records("call"):
        line = logging.Formatter().format(record)
        assert "eyJ" not in line
        assert "correct horse" not in line
