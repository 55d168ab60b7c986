"""A reload changes each reloadable setting of a running server, which reads it at each use."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from stream_server.app import running_application
from stream_server.config.reload import SettingsReloader
from stream_server.config.settings import SETTINGS, Config, InvalidSetting
from stream_server.runtime import logs
from stream_server.web.http import app_keys
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits.rate_limits import READS
from tests.stream_server import tokens
from tests.waiting import PATIENCE, eventually

RELOADABLE = {s.name for s in SETTINGS if s.is_reloadable}


@pytest.fixture
def config(redis_url: str) -> Config:
    return tokens.config(redis=redis_url, redis_timeout_seconds=PATIENCE, password_memory_kib=8)


@pytest.fixture
async def app(config: Config) -> AsyncIterator[web.Application]:
    async with running_application(replace(config)) as running:
        yield running


@pytest.fixture(autouse=True)
def _restore_log_level(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Restore the log level of this process."""
    before = logging.getLogger().level
    caplog.set_level(logging.INFO)
    yield
    logging.getLogger().setLevel(before)


def other_value(name: str, config: Config) -> Any:
    """Return another valid value for this setting."""
    words = {
        "limits": "reads=7", "log_level": "error", "operations": "token", "cors_origins": "*",
        "v1_url_credentials": "on",
    }  # fmt: skip
    return words.get(name) or getattr(config, name) * 2 + 1


async def test_a_running_server_takes_all_reloadable_settings_and_no_other(
    app: web.Application, config: Config
) -> None:
    """The objects that read them at each use have the same object with the settings as the application."""
    logs.set_level(config.log_level)
    newer = replace(config, **{s.name: other_value(s.name, config) for s in SETTINGS if s.name in RELOADABLE})
    SettingsReloader(config, lambda: replace(newer, workers=3)).reload_now(app[app_keys.CONFIG])
    assert app[app_keys.CONFIG] == newer
    limits = app[LIMITS]
    assert limits._config is limits.connections._config is app[app_keys.CONFIG]
    assert (limits.are_on, limits.maxima()[READS.name]) == (True, 7)
    assert logging.getLogger().level == logging.ERROR


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "stream_server.config.reload"]


async def test_a_setting_that_needs_a_restart_is_named_without_its_value(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    newer = replace(config, jwt_secret="hunter22" * 5, workers=3, streams_per_user=1)
    SettingsReloader(config, lambda: newer).reload_now(replace(config))
    restart = "these settings need a restart: workers, jwt_secret"
    assert messages(caplog) == [f"reloaded streams_per_user: 32 -> 1; {restart}"]


async def test_invalid_settings_change_nothing(config: Config, caplog: pytest.LogCaptureFixture) -> None:
    def wrong() -> Config:
        raise InvalidSetting("server.toml: retry_ms must be 0 ms or more")

    before = replace(config)
    assert not SettingsReloader(config, wrong).reload_now(config)
    assert config == before
    assert messages(caplog) == ["nothing was reloaded: server.toml: retry_ms must be 0 ms or more"]


async def test_a_reload_logs_changes_since_the_last_reload(config: Config, caplog: pytest.LogCaptureFixture) -> None:
    settings = [replace(config, streams_per_user=1), replace(config, streams_per_user=1), config]
    reload = SettingsReloader(config, lambda: settings.pop(0))
    for _ in range(3):
        reload.reload_now(replace(config))
    unchanged = "reloaded the settings: none has changed"
    assert messages(caplog) == ["reloaded streams_per_user: 32 -> 1", unchanged, "reloaded streams_per_user: 1 -> 32"]


async def test_a_hangup_signal_during_the_start_reloads_later(config: Config) -> None:
    reload = SettingsReloader(config, lambda: replace(config, streams_per_user=1))
    os.kill(os.getpid(), signal.SIGHUP)
    await asyncio.sleep(0.01)  # the loop takes the signal
    running = asyncio.create_task(reload.run(config))
    await eventually(lambda: config.streams_per_user == 1)
    running.cancel()
    await asyncio.wait({running})
    asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
