"""What a reload does to the objects that run: every setting that may change is looked at where it is used."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from stream_server.app import APPLY_SETTINGS, running_application
from stream_server.config.reload import ReloadOutcome, SettingsReloader
from stream_server.config.settings import SETTINGS, Config, InvalidSetting
from stream_server.hub.limits import HubLimits
from stream_server.runtime import logs
from stream_server.store.log.retention import RetentionLimits
from stream_server.web.http import app_keys
from stream_server.web.http.http_connection import HttpConnection, make_runner
from tests.stream_server import tokens
from tests.waiting import PATIENCE, eventually


@pytest.fixture
def config(redis_url: str) -> Config:
    """Settings of a server on the tests' Redis."""
    return tokens.config(redis=redis_url, redis_timeout_seconds=PATIENCE, password_memory_kib=8, password_rounds=1)


@pytest.fixture
async def app(config: Config) -> AsyncIterator[web.Application]:
    """The app as the server runs it, fed."""
    async with running_application(replace(config)) as running:
        yield running


@pytest.fixture(autouse=True)
def _level() -> Iterator[None]:
    """The level of the log is the process': it is as before afterwards."""
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


class Kept:
    """Those of the app's own objects that keep a setting, found where they run."""

    def __init__(self, app: web.Application) -> None:
        self.app = app
        self.hub = app[app_keys.HUB]
        tasks = {task.get_name(): task for task in asyncio.all_tasks()}
        self.feed = _owner(tasks["feed"])
        self.trimmer = _owner(tasks["trimmer"])

    @property
    def limits(self) -> HubLimits:
        return self.hub.limits

    @property
    def retention(self) -> RetentionLimits:
        limits: RetentionLimits = self.trimmer.limits
        return limits


def _owner(task: "asyncio.Task[Any]") -> Any:
    """The object whose method the task runs."""
    coroutine: Any = task.get_coro()
    return coroutine.cr_frame.f_locals["self"]


USED: dict[str, Callable[[Kept], object]] = {
    "heartbeat_seconds": lambda kept: kept.limits.heartbeat_seconds,
    "write_timeout_seconds": lambda kept: kept.limits.write_timeout_seconds,
    "behind_max_entries": lambda kept: kept.limits.far_behind_entries,
    "slow_window_seconds": lambda kept: kept.limits.slow_window_seconds,
    "client_buffer_bytes": lambda kept: (
        kept.hub.flusher._limits.max_bytes + kept.app[app_keys.CONFIG].send_buffer_bytes
    ),
    "ring_bytes": lambda kept: kept.hub.ring._max_bytes,
    "ring_seconds": lambda kept: kept.hub.ring._max_age_ms / 1000,
    "canary_seconds": lambda kept: kept.feed.canary_seconds,
    "log_max_seconds": lambda kept: kept.retention.max_seconds,
    "log_max_bytes": lambda kept: kept.retention.max_bytes,
    "retry_spread_seconds": lambda kept: kept.app[app_keys.SHUTDOWN].spread_seconds,
    "retry_ms": lambda kept: kept.app[app_keys.CONFIG].retry_ms,
    "limits": lambda kept: kept.app[app_keys.CONFIG].limits,
    "reconnect_limit": lambda kept: kept.app[app_keys.CONFIG].reconnect_limit,
    "log_level": lambda _: logging.getLevelName(logging.getLogger().level).lower(),
}
"""Where each setting that may change is used: the handlers read the app's settings at each request."""


def other(name: str, config: Config) -> Any:
    """Another value for this setting, which is allowed."""
    words = {"limits": "off", "log_level": "error"}
    return words.get(name) or getattr(config, name) * 2 + 1


@pytest.mark.parametrize("name", [s.name for s in SETTINGS if s.is_reloadable])
async def test_each_setting_that_may_change_takes_effect_where_it_is_used(
    app: web.Application, config: Config, name: str
) -> None:
    """It is the value at work from then on, and no other setting moves."""
    kept = Kept(app)
    logs.set_level(config.log_level)
    before = {row: used(kept) for row, used in USED.items()}
    assert before == {row: getattr(config, row) for row in USED}
    newer = replace(config, **{name: other(name, config)})
    outcome = SettingsReloader(config, lambda: newer).reload_now(app[APPLY_SETTINGS])
    assert {row: used(kept) for row, used in USED.items()} == before | {name: other(name, config)}
    assert outcome == ReloadOutcome([f"{name}: {getattr(config, name)} -> {other(name, config)}"], [])


async def test_a_connection_that_comes_after_a_reload_has_its_deadlines(app: web.Application, config: Config) -> None:
    """One that was there keeps what its socket was given."""
    runner = make_runner(app)
    await runner.setup()
    assert runner.server is not None
    before = runner.server()
    newer = replace(config, write_timeout_seconds=7.0, heartbeat_seconds=3.0)
    SettingsReloader(config, lambda: newer).reload_now(app[APPLY_SETTINGS])
    after = runner.server()
    assert isinstance(before, HttpConnection)
    assert isinstance(after, HttpConnection)
    assert (before._write_seconds, before._probe_seconds) == (config.write_timeout_seconds, config.heartbeat_seconds)
    assert (after._write_seconds, after._probe_seconds) == (7.0, 3.0)
    await runner.cleanup()


async def test_what_needs_a_restart_is_named_and_left(app: web.Application, config: Config) -> None:
    """Not its value: it may be a secret."""
    newer = replace(config, jwt_secret="hunter22" * 5, workers=3, retry_ms=1)
    outcome = SettingsReloader(config, lambda: newer).reload_now(app[APPLY_SETTINGS])
    assert outcome.sentences() == ["reloaded retry_ms: 2000 -> 1", "these settings need a restart: workers, jwt_secret"]
    assert app[app_keys.CONFIG].workers == config.workers
    assert app[app_keys.CONFIG].jwt_secret == config.jwt_secret


async def test_what_is_wrong_changes_nothing(config: Config) -> None:
    """The reason is told, and nobody is asked to change anything; what comes next counts again."""

    def wrong() -> Config:
        raise InvalidSetting("server.toml: retry_ms must be 0 ms or more")

    taken: list[Config] = []
    outcome = SettingsReloader(config, wrong).reload_now(taken.append)
    assert (taken, outcome.changed) == ([], [])
    assert outcome.sentences() == ["nothing was reloaded: server.toml: retry_ms must be 0 ms or more"]


async def test_a_reload_is_compared_with_the_one_before(config: Config) -> None:
    """What was taken once is no change the next time."""
    settings = [replace(config, retry_ms=1), replace(config, retry_ms=1), config]
    reload = SettingsReloader(config, lambda: settings.pop(0))
    told = [reload.reload_now(lambda _: None).sentences() for _ in range(3)]
    unchanged = ["reloaded: no setting changed"]
    assert told == [["reloaded retry_ms: 2000 -> 1"], unchanged, ["reloaded retry_ms: 1 -> 2000"]]


async def test_a_signal_before_anybody_reloads_is_not_lost(config: Config) -> None:
    """A server that starts is not ended by it either: it reloads once it serves."""
    reload = SettingsReloader(config, lambda: replace(config, retry_ms=1))
    os.kill(os.getpid(), signal.SIGHUP)
    taken: list[Config] = []
    told: list[ReloadOutcome] = []
    running = asyncio.create_task(reload.run(taken.append, told.append))
    await eventually(lambda: told)
    running.cancel()
    await asyncio.wait({running})
    asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
    assert [one.retry_ms for one in taken] == [1]
