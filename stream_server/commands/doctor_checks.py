"""The single checks of ``doctor``. Each returns a result: good, advice or broken, with one sentence."""

import os
import resource
import shutil
import sys
import time
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from filters.registry import PluginError, Registry
from stream_server.client import ApiClient, ClientFailure, RequestRefused
from stream_server.config.settings import Config, InvalidSetting
from stream_server.downloads import native
from stream_server.errors import ApiError
from stream_server.events import language
from stream_server.runtime.embedded_redis import EmbeddedRedisError, find_redis_binary
from stream_server.security.tokens import TokenAuthority, load_or_create_secret
from stream_server.store import keys
from stream_server.store.redis.address import parse_sentinel_url
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.replica_router import ReplicaRouter
from stream_server.store.redis.sentinel import Sentinels
from stream_server.store.redis.server_info import parse_info
from stream_server.store.store import MIN_REDIS_VERSION

MIN_PYTHON = (3, 11)
"""Oldest supported version of Python."""

MIN_DESCRIPTORS = 4096
"""Number of open files below which ``doctor`` gives advice, because one process can serve more streams."""

MAX_CLOCK_SKEW_SECONDS = 2.0
"""Accepted difference of the clocks in seconds. Ids and times use Redis' clock, tokens use the server's."""

MIN_PUBSUB_BUFFER_BYTES = 64 * 2**20
"""Least output buffer. With a smaller one, Redis may disconnect a process that was busy for a moment."""

MIN_FREE_BYTES = 2**30
"""Free bytes on the disk below which ``doctor`` gives advice."""

MIN_SENTINELS = 3
"""Least number of Sentinels that can still agree when one is gone."""


class CheckState(Enum):
    """The state of a check. Only ``BROKEN`` makes the command fail."""

    GOOD = "good"
    ADVICE = "advice"
    BROKEN = "broken"


class CheckResult(NamedTuple):
    """The result of one check, as a sentence."""

    state: CheckState
    sentence: str


def good(sentence: str) -> CheckResult:
    """Return a result that needs no action."""
    return CheckResult(CheckState.GOOD, sentence)


def advice(sentence: str) -> CheckResult:
    """Return a result that works but could be better."""
    return CheckResult(CheckState.ADVICE, sentence)


def broken(sentence: str) -> CheckResult:
    """Return a result that does not work."""
    return CheckResult(CheckState.BROKEN, sentence)


REPLICA_KEEPS_UP = good("the replica to read from keeps up")
"""Result for a usable replica."""
REPLICA_UNUSABLE = advice(
    "the replica to read from is unreachable, behind, or of another primary: streams use the primary meanwhile"
)
"""Result for a replica from which the server cannot read now."""


def check_python() -> CheckResult:
    """Check the version of Python."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < MIN_PYTHON:
        return broken(f"Python {version} is too old: 3.11 or newer is needed")
    return good(f"Python {version}")


def check_redis_binary(*, needed: bool) -> CheckResult:
    """Check whether an embedded Redis can start.

    Without ``needed``, because a Redis is given, a failure is only advice.
    """
    try:
        binary = find_redis_binary()
    except EmbeddedRedisError as error:
        return broken(str(error)) if needed else advice(str(error))
    return good(f"redis-server {'.'.join(map(str, binary.version))} for the embedded Redis: {binary.path}")


def languages() -> CheckResult:
    """Check whether the server can detect the language of posts."""
    if language.library() is not None:
        return good("CLD2 detects the languages of posts")
    fetch = "`stream-server fetch cld2` gets it" if native.offered(native.CLD2) else "not available for this platform"
    return advice(f"posts whose author gives no language stay `und`, because CLD2 is missing: {fetch}")


def check_filters() -> CheckResult:
    """Check that all installed filters can be loaded, and name them."""
    try:
        registry = Registry.from_entry_points()
        registry.all()
    except PluginError as error:
        return broken(str(error))
    return good(f"filters: {registry.summary()}")


def check_descriptors() -> CheckResult:
    """Check how many connections a process may hold."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < MIN_DESCRIPTORS:
        return advice(f"a process may open {soft} files, so about that many streams: raise it (`ulimit -n {hard}`)")
    return good(f"a process may open {soft} files")


def check_data_folder(path: str) -> list[CheckResult]:
    """Check whether the data folder is writable, only by its owner, and has free space."""
    if not path:
        return [good("no --data-dir: the data are in a temporary folder and are deleted when the server stops")]
    folder = Path(path).expanduser()
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return [broken(f"the data folder {folder} cannot be written")]
    found = [good(f"the data folder {folder} can be written")]
    if folder.exists() and folder.stat().st_mode & 0o022:
        found.append(advice(f"others can write into {folder}: `chmod 700` it"))
    if shutil.disk_usage(existing).free < MIN_FREE_BYTES:
        found.append(advice(f"less than 1 GiB is free for {folder}: a full disk stops all writes"))
    return found


def check_token_key(config: Config) -> CheckResult:
    """Check whether the settings' key can verify tokens."""
    try:
        is_kept = bool(config.data_dir) and (Path(config.data_dir) / "jwt.secret").exists()
        secret = "" if config.jwt_secret else load_or_create_secret(config.data_dir if is_kept else "")
        TokenAuthority(config, secret)
    except InvalidSetting as error:
        return broken(str(error))
    if config.jwt_secret or config.jwt_algorithm != "HS256":
        return good(f"the key of {config.jwt_algorithm} tokens is usable")
    return good("the key of tokens is " + ("kept in the data folder" if is_kept else "created at the first start"))


def no_server_running(data_dir: str) -> CheckResult:
    """Return the result for a data folder without a running server."""
    return advice(f"no server runs on {data_dir}")


async def check_server(url: str) -> CheckResult:
    """Check whether a server answers at ``url`` and is ready."""
    try:
        async with ApiClient(url, attempts=1, seconds=3) as api:
            await api.request("GET", "/readyz")
    except RequestRefused as refused:
        return broken(f"the server at {url} is not ready ({refused.status}): events would not arrive")
    except ClientFailure:
        return advice(f"no server answers at {url}")
    return good(f"the server at {url} is ready")


async def check_redis(url: str, timeout_seconds: float) -> list[CheckResult]:
    """Check the Redis at ``url``: version, clock and configuration. The sentences never contain its credentials."""
    link = RedisClient(url, timeout_seconds)
    try:
        started = time.time()
        info, clock = await link.execute(("INFO",), ("TIME",))
        found = [
            _check_version(parse_info(info)),
            _check_clock_skew(float(clock[0]) + float(clock[1]) / 1e6, started, time.time()),
        ]
        found += await _check_configuration(link, parse_info(info))
    except ApiError:
        return [broken("Redis cannot be reached, or refuses to answer")]
    finally:
        await link.close()
    return found


async def check_sentinels(url: str, timeout_seconds: float) -> list[CheckResult]:
    """Check whether the Sentinels in the URL answer and agree; return no result for any other URL."""
    service = parse_sentinel_url(url)
    if service is None:
        return []
    sentinels = Sentinels(service, timeout_seconds)
    states = await sentinels.fetch_states()
    await sentinels.close()
    answers = [state for state in states if state is not None]
    if not answers:
        return [broken("no Sentinel answers, or none monitors this service")]
    found = [advice(f"{len(states) - len(answers)} of {len(states)} Sentinels do not answer")] if None in states else []
    if len({(state["ip"], state["port"]) for state in answers}) > 1:
        return [*found, broken("the Sentinels do not agree on the primary: one may be cut off from the others")]
    if len(states) < MIN_SENTINELS:
        found.append(advice("fewer than three Sentinels are named: two must agree when the third is gone"))
    return [*found, good("the Sentinels that answer agree on the primary")]


async def check_replicas(config: Config, url: str) -> list[CheckResult]:
    """Check whether the replica to read from is usable, and whether enough replicas exist for ``--write-replicas``."""
    primary, near = RedisClient(url, config.redis_timeout_seconds), None
    found = []
    try:
        answers, n = await primary.execute(("INFO", "replication"), ("HGET", keys.META, "n"))
        if config.redis_read:
            near = ReplicaRouter(primary, RedisClient(config.redis_read, config.redis_timeout_seconds, replica=True))
            found.append(REPLICA_KEEPS_UP if await near.try_replica(int(n or 0)) else REPLICA_UNUSABLE)
        connected = int(parse_info(answers).get("connected_slaves", 0))
        if config.write_replicas > connected:
            found.append(broken(f"writes wait for {config.write_replicas} replicas, but only {connected} are there"))
        elif config.write_replicas:
            found.append(good(f"{connected} replicas are connected; writes wait for {config.write_replicas}"))
    except ApiError:
        return found  # another check already reports that Redis does not answer
    finally:
        if near is not None:
            await near.close()
        await primary.close()
    return found


async def _check_configuration(link: RedisClient, info: dict[str, str]) -> list[CheckResult]:
    """Check the configuration of Redis."""
    names = ("appendonly", "appendfsync", "maxmemory-policy", "client-output-buffer-limit")
    try:
        answers = await link.execute(*(("CONFIG", "GET", name) for name in names))
    except ApiError:
        return [advice("Redis does not show its settings (CONFIG is forbidden), so they were not checked")]
    settings = {pair[0].decode(): pair[1].decode() for pair in answers if pair}
    return [
        *_check_persistence(settings, info),
        _check_eviction(settings.get("maxmemory-policy", "")),
        _check_pubsub_buffer(settings.get("client-output-buffer-limit", "")),
    ]


def _check_version(info: dict[str, str]) -> CheckResult:
    """Check the version of Redis."""
    version = info.get("redis_version", "0.0")
    if tuple(int(part) for part in version.split(".")[:2]) < MIN_REDIS_VERSION:
        return broken(f"Redis {version} is too old: 6.2 or newer is needed")
    return good(f"Redis {version} answers")


def _check_clock_skew(theirs: float, started: float, ended: float) -> CheckResult:
    """Check the clock of Redis. The skew is how far its time lies outside the time span of the request."""
    skew = max(started - theirs, theirs - ended, 0.0)
    if skew > MAX_CLOCK_SKEW_SECONDS:
        return advice(f"the clocks of Redis and this machine differ by {skew:.1f} s: run NTP on both")
    return good("the clocks of Redis and this machine agree")


def _check_persistence(settings: dict[str, str], info: dict[str, str]) -> list[CheckResult]:
    """Check whether Redis loses acknowledged writes at a crash."""
    if settings.get("appendonly") != "yes":
        return [advice("Redis has appendonly off: what was written since its last snapshot is lost when it restarts")]
    if settings.get("appendfsync") != "always":
        return [advice("appendfsync is not `always`: a crash loses as much as the disk is behind, 2 s and more")]
    # Redis 7 counts its rewrites. In 6.2 the duration of the last rewrite is -1 before the first.
    if info.get("aof_rewrites", "1") == "0" or info.get("aof_last_rewrite_time_sec") == "-1":
        return [
            good("everything is on disk before it is answered"),
            advice(
                "after each start of Redis run BGREWRITEAOF: a tail torn by a power cut otherwise costs "
                "an entry at the start after the next"
            ),
        ]
    return [good("everything is on disk before it is answered")]


def _check_eviction(policy: str) -> CheckResult:
    """Check that Redis does not evict data."""
    if policy != "noeviction":
        return broken(f"maxmemory-policy is {policy}: Redis would drop data when memory is short; set noeviction")
    return good("Redis drops nothing when memory is short (noeviction)")


def _check_pubsub_buffer(limits: str) -> CheckResult:
    """Check the output buffer for subscribers.

    The setting has the form ``normal 0 0 0 … pubsub <hard> <soft> <seconds>``.
    """
    words = limits.split()
    soft = int(words[words.index("pubsub") + 2]) if "pubsub" in words else 0
    if 0 < soft < MIN_PUBSUB_BUFFER_BYTES:
        return advice(
            f"client-output-buffer-limit pubsub is {soft >> 20} MiB, so a busy worker may be cut: "
            "set `pubsub 256mb 64mb 60`"
        )
    return good("Redis waits for a busy worker (client-output-buffer-limit pubsub)")
