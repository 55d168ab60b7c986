"""A reload changes each reloadable setting where the running server uses it."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
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
from stream_server.web.http.front_door import make_front_door
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits.rate_limit import RATE_LIMITS
from tests.stream_server import tokens
from tests.waiting import PATIENCE, eventually


@pytest.fixture
def config(redis_url: str) -> Config:
    return tokens.config(redis=redis_url, redis_timeout_seconds=PATIENCE, password_memory_kib=8, password_rounds=1)


@pytest.fixture
async def app(config: Config) -> AsyncIterator[web.Application]:
    async with running_application(replace(config)) as running:
        yield running


@pytest.fixture(autouse=True)
def _restore_log_level() -> Iterator[None]:
    """Restore the log level of this process."""
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


class RunningParts:
    def __init__(self, app: web.Application) -> None:
        self.app = app
        self.hub = app[app_keys.HUB]
        tasks = {task.get_name(): task for task in asyncio.all_tasks()}
        self.feed = _task_owner(tasks["feed"])
        self.trimmer = _task_owner(tasks["trimmer"])

    @property
    def limits(self) -> HubLimits:
        return self.hub.limits

    @property
    def retention(self) -> RetentionLimits:
        limits: RetentionLimits = self.trimmer.limits
        return limits


def _task_owner(task: "asyncio.Task[Any]") -> Any:
    """Return the object whose method the task runs."""
    coroutine: Any = task.get_coro()
    return coroutine.cr_frame.f_locals["self"]


def _read_by_limits(name: str, parts: RunningParts) -> object:
    return getattr(parts.app[LIMITS]._config, name)


USED: dict[str, Callable[[RunningParts], object]] = {
    "operations": lambda parts: parts.app[app_keys.CONFIG].operations,
    "cors_origins": lambda parts: parts.app[app_keys.CONFIG].cors_origins,
    "v1_url_credentials": lambda parts: parts.app[app_keys.CONFIG].v1_url_credentials,
    "heartbeat_seconds": lambda parts: parts.limits.heartbeat_seconds,
    "write_timeout_seconds": lambda parts: parts.limits.write_timeout_seconds,
    "behind_max_entries": lambda parts: parts.limits.far_behind_entries,
    "slow_window_seconds": lambda parts: parts.limits.slow_window_seconds,
    "client_buffer_bytes": lambda parts: (
        parts.hub.flusher._limits.max_bytes + parts.app[app_keys.CONFIG].send_buffer_bytes
    ),
    "ring_bytes": lambda parts: parts.hub.ring._max_bytes,
    "ring_seconds": lambda parts: parts.hub.ring._max_age_ms / 1000,
    "canary_seconds": lambda parts: parts.feed.canary_seconds,
    "log_max_seconds": lambda parts: parts.retention.max_seconds,
    "log_max_bytes": lambda parts: parts.retention.max_bytes,
    "retry_spread_seconds": lambda parts: parts.app[app_keys.SHUTDOWN].spread_seconds,
    "retry_ms": lambda parts: parts.app[app_keys.CONFIG].retry_ms,
    "limits": lambda parts: "on" if parts.app[LIMITS].are_on else "off",
    **{
        name: partial(_read_by_limits, name)
        for name in (
            *(limit.setting for limit in RATE_LIMITS),
            "streams_per_user",
            "streams_per_address",
            "streams_max",
            "connections_per_address",
            "connections_max",
        )
    },
    "log_level": lambda _: logging.getLevelName(logging.getLogger().level).lower(),
}
"""Where each setting that may change is used: the handlers read the app's settings at each request."""


def other_value(name: str, config: Config) -> Any:
    """Return another valid value for this setting."""
    words = {
        "limits": "on", "log_level": "error", "operations": "token", "cors_origins": "*", "v1_url_credentials": "on"
    }  # fmt: skip
    return words.get(name) or getattr(config, name) * 2 + 1


@pytest.mark.parametrize("name", [s.name for s in SETTINGS if s.is_reloadable])
async def test_each_reloadable_setting_takes_effect_at_its_use(app: web.Application, config: Config, name: str) -> None:
    assert name in USED, f"USED has to say where the running server has the value of {name}"
    parts = RunningParts(app)
    logs.set_level(config.log_level)
    before = {row: used(parts) for row, used in USED.items()}
    assert before == {row: getattr(config, row) for row in USED}
    newer = replace(config, **{name: other_value(name, config)})
    outcome = SettingsReloader(config, lambda: newer).reload_now(app[APPLY_SETTINGS])
    assert {row: used(parts) for row, used in USED.items()} == before | {name: other_value(name, config)}
    assert outcome == ReloadOutcome([f"{name}: {getattr(config, name)} -> {other_value(name, config)}"], [])


async def test_connections_accepted_after_a_reload_have_the_new_timeouts(app: web.Application, config: Config) -> None:
    door = make_front_door(app, lambda _: False)
    await door.open([socket.create_server(("127.0.0.1", 0))])
    before = door._make_connection()
    newer = replace(config, write_timeout_seconds=7.0, heartbeat_seconds=3.0)
    SettingsReloader(config, lambda: newer).reload_now(app[APPLY_SETTINGS])
    after = door._make_connection()
    assert before._timeouts[:2] == (config.write_timeout_seconds, config.heartbeat_seconds)
    assert after._timeouts[:2] == (7.0, 3.0)
    await door.close()


async def test_a_setting_that_needs_a_restart_is_named_without_its_value(app: web.Application, config: Config) -> None:
    newer = replace(config, jwt_secret="hunter22" * 5, workers=3, retry_ms=1)
    outcome = SettingsReloader(config, lambda: newer).reload_now(app[APPLY_SETTINGS])
    assert outcome.sentences() == ["reloaded retry_ms: 2000 -> 1", "these settings need a restart: workers, jwt_secret"]
    assert app[app_keys.CONFIG].workers == config.workers
    assert app[app_keys.CONFIG].jwt_secret == config.jwt_secret


async def test_invalid_settings_change_nothing(config: Config) -> None:
    def wrong() -> Config:
        raise InvalidSetting("server.toml: retry_ms must be 0 ms or more")

    taken: list[Config] = []
    outcome = SettingsReloader(config, wrong).reload_now(taken.append)
    assert (taken, outcome.changed) == ([], [])
    assert outcome.sentences() == ["nothing was reloaded: server.toml: retry_ms must be 0 ms or more"]


async def test_a_reload_reports_changes_since_the_last_reload(config: Config) -> None:
    settings = [replace(config, retry_ms=1), replace(config, retry_ms=1), config]
    reload = SettingsReloader(config, lambda: settings.pop(0))
    reported = [reload.reload_now(lambda _: None).sentences() for _ in range(3)]
    unchanged = ["reloaded: no setting changed"]
    assert reported == [["reloaded retry_ms: 2000 -> 1"], unchanged, ["reloaded retry_ms: 1 -> 2000"]]


async def test_a_hangup_signal_during_the_start_reloads_later(config: Config) -> None:
    reload = SettingsReloader(config, lambda: replace(config, retry_ms=1))
    os.kill(os.getpid(), signal.SIGHUP)
    taken: list[Config] = []
    reported: list[ReloadOutcome] = []
    running = asyncio.create_task(reload.run(taken.append, reported.append))
    await eventually(lambda: reported)
    running.cancel()
    await asyncio.wait({running})
    asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
    assert [one.retry_ms for one in taken] == [1]
