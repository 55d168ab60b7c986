"""The command ``doctor``: report faults of this machine, a Redis or a server, in plain sentences."""

import asyncio
import os
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from filters.registry import PluginError, Registry
from stream_server.client import Client, ClientFailure, RequestRefused
from stream_server.commands import server_access, setting_options
from stream_server.commands.check_result import CheckResult, CheckState, advice, broken, good
from stream_server.commands.doctor_cluster import check_cluster_setup
from stream_server.commands.exit_codes import FAILED, OK
from stream_server.commands.output import JSON_OPTION, print_json
from stream_server.config import config
from stream_server.config.settings import Config, InvalidSetting
from stream_server.downloads import native
from stream_server.errors import ApiError
from stream_server.events import language
from stream_server.runtime import run_file
from stream_server.runtime.embedded_redis import EmbeddedRedisError, find_redis_binary
from stream_server.security.signing_keys import load_or_create_secret
from stream_server.security.tokens import TokenAuthority
from stream_server.store import keys
from stream_server.store.redis.address import parse_cluster_url, parse_sentinel_url
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.refusals import describe_for_operator
from stream_server.store.redis.replica_router import ReplicaRouter
from stream_server.store.redis.replies import parse_info
from stream_server.store.redis.sentinel import Sentinels
from stream_server.store.store import MIN_REDIS_VERSION

MIN_PYTHON = (3, 11)
MIN_FREE_BYTES = 2**30
MIN_DESCRIPTORS = 4096
"""Number of open files below which ``doctor`` gives advice, because one process can serve more streams."""

MAX_CLOCK_SKEW_SECONDS = 2.0
"""Accepted difference of the clocks in seconds. Ids and times use Redis' clock, tokens use the server's."""

MIN_PUBSUB_BUFFER_BYTES = 64 * 2**20
"""Least output buffer. With a smaller one, Redis may disconnect a process that was busy for a moment."""

MIN_SENTINELS = 3
"""Least number of Sentinels that can still agree when one is gone."""


REPLICA_KEEPS_UP = good("the replica to read from keeps up")
REPLICA_UNUSABLE = advice(
    "the replica to read from is unreachable, behind, or of another primary: streams use the primary meanwhile"
)

SMALL_HASH = "hash-max-ziplist-value"
"""Redis' setting for the longest value of a compact hash, by its name in Redis 6.2. Redis 7 knows this name, too."""

MIN_SMALL_HASH_BYTES = 1024

NODE_OF_A_CLUSTER = broken(
    "this Redis is a node of a cluster, and others have some of the keys: name the cluster, redis+cluster://host:port"
)


MARKS = {
    CheckState.GOOD: ("✓", "ok", "green"),
    CheckState.ADVICE: ("!", "!!", "yellow"),
    CheckState.BROKEN: ("✗", "NO", "bold red"),
}

EPILOG = """
\b
Examples:
  stream-server doctor                             this machine, and a server on port 8000 if there is one
  stream-server doctor --data-dir ./data           that server, its folder and its embedded Redis
  stream-server doctor --redis redis://10.0.0.5    that Redis
  stream-server doctor --redis redis+sentinel://10.0.0.5,10.0.0.6,10.0.0.7/main --write-replicas 1
  stream-server doctor --redis redis+cluster://10.0.0.5,10.0.0.6,10.0.0.7
"""


@click.command(epilog=EPILOG)
@setting_options.URL_OPTION
@setting_options.options(*setting_options.ACCESS_SETTINGS, "redis_read", "write_replicas")
@JSON_OPTION
@click.pass_context
def doctor(context: click.Context, /, url: str | None, *, as_json: bool, **flags: Any) -> None:
    """Check this machine, a Redis and a running server.

    ✓ needs no action, ! could be better, ✗ is broken. The exit code is 1 if anything is broken.
    """
    settings = config.load(flags)
    results = asyncio.run(run_checks(settings, _server_url(url, settings)))
    if as_json:
        print_json([{"state": result.state.value, "sentence": result.sentence} for result in results])
    console = Console(highlight=False, soft_wrap=True)
    for result in () if as_json else results:
        console.print(_format_result(result, unicode=console.encoding.startswith("utf")))
    context.exit(FAILED if any(result.state is CheckState.BROKEN for result in results) else OK)


def _server_url(url: str | None, settings: Config) -> str | None:
    """Return the URL of the server to check.

    Returns None if there is no server: ``--data-dir`` is given without ``--url``, and no server uses this folder.
    """
    is_stopped = url is None and settings.data_dir and run_file.read(settings.data_dir) is None
    return None if is_stopped else server_access.server_address(url, settings)


async def run_checks(settings: Config, url: str | None) -> list[CheckResult]:
    """Run all checks: this machine, Redis, the server at ``url`` (None: no server runs). Return their results."""
    no_server = advice(f"no server runs on {settings.data_dir}")
    server = no_server if url is None else await check_server(url)
    redis_url = settings.redis or _embedded_redis_url(settings, server)
    return [
        check_python(),
        check_redis_binary(needed=not settings.redis),
        *([check_language_detection()] if settings.detect_language == "on" else []),
        check_filters(),
        check_descriptors(),
        *check_data_folder(settings.data_dir),
        check_token_key(settings),
        *(await _check_redis(settings, redis_url) if redis_url else []),
        server,
    ]


async def _check_redis(settings: Config, url: str) -> list[CheckResult]:
    seconds = settings.redis_timeout_seconds
    results = await check_sentinels(url, seconds) + await check_cluster_setup(url, seconds, settings.write_replicas)
    results += await check_redis(url, seconds)
    return results + await check_replicas(settings, url) + await check_expiry(url, seconds)


def _embedded_redis_url(settings: Config, server: CheckResult) -> str:
    """Return the URL of the embedded Redis of the server that uses the data folder; empty if no server answers."""
    running = run_file.read(settings.data_dir) if settings.data_dir else None
    return running.redis if running is not None and server.state is not CheckState.ADVICE else ""


def _format_result(result: CheckResult, *, unicode: bool) -> Text:
    mark, ascii_mark, style = MARKS[result.state]
    return Text.assemble((mark if unicode else ascii_mark, style), " ", result.sentence)


def check_python() -> CheckResult:
    """Check whether this version of Python is supported."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < MIN_PYTHON:
        return broken(f"Python {version} is too old: 3.11 or newer is needed")
    return good(f"Python {version}")


def check_redis_binary(*, needed: bool) -> CheckResult:
    """Check whether there is a usable ``redis-server``. If not: BROKEN if ``needed`` (no ``--redis``), else ADVICE."""
    try:
        binary = find_redis_binary()
    except EmbeddedRedisError as error:
        return broken(str(error)) if needed else advice(str(error))
    return good(f"redis-server {'.'.join(map(str, binary.version))} for the embedded Redis: {binary.path}")


def check_language_detection() -> CheckResult:
    """Check whether the server can detect the language of posts."""
    if language.library() is not None:
        return good("CLD2 detects the languages of posts")
    offered = native.offered(native.CLD2)
    fetch = "`stream-server fetch cld2` downloads it" if offered else "not available for this platform"
    return advice(f"posts whose author gives no language stay `und`, because CLD2 is missing: {fetch}")


def check_filters() -> CheckResult:
    """Check that all installed filters can be loaded. The result gives their names."""
    try:
        registry = Registry.from_entry_points()
        registry.all()
    except PluginError as error:
        return broken(str(error))
    return good(f"filters: {registry.summary()}")


def check_descriptors() -> CheckResult:
    """Check whether the limit of open files (``ulimit -n``) lets a process hold enough connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < MIN_DESCRIPTORS:
        return advice(f"a process may open {soft} files, so about that many streams: raise it (`ulimit -n {hard}`)")
    return good(f"a process may open {soft} files")


def check_data_folder(path: str) -> list[CheckResult]:
    """Check whether the data folder ``path`` is writable, not writable for other users, and has 1 GiB of free space."""
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


def check_token_key(settings: Config) -> CheckResult:
    """Check whether the key of tokens, from the settings or the data folder, is usable."""
    try:
        is_kept = bool(settings.data_dir) and (Path(settings.data_dir) / "jwt.secret").exists()
        secret = "" if settings.jwt_secret else load_or_create_secret(settings.data_dir if is_kept else "")
        TokenAuthority(settings, secret)
    except InvalidSetting as error:
        return broken(str(error))
    if settings.jwt_secret or settings.jwt_algorithm != "HS256":
        return good(f"the key of {settings.jwt_algorithm} tokens is usable")
    return good("the key of tokens is " + ("kept in the data folder" if is_kept else "created at the first start"))


async def check_server(url: str) -> CheckResult:
    """Check whether a server answers at ``url`` and is ready (``GET /readyz``)."""
    try:
        async with Client(url, attempts=1, seconds=3) as api:
            await api.request("GET", "/readyz")
    except RequestRefused as refused:
        return broken(f"the server at {url} is not ready ({refused.status}): events would not arrive")
    except ClientFailure:
        return advice(f"no server answers at {url}")
    return good(f"the server at {url} is ready")


async def check_redis(url: str, timeout_seconds: float) -> list[CheckResult]:
    """Check the Redis at ``url``: version, clock and configuration. The results never contain the URL's password."""
    client = RedisClient(url, timeout_seconds)
    try:
        started = time.time()
        answer, (seconds, micros) = await client.execute(("INFO",), ("TIME",))
        skew = _check_clock_skew(float(seconds) + float(micros) / 1e6, started, time.time())
        info = parse_info(answer)
        is_in_cluster = info.get("redis_mode") == "cluster"
        mode = [NODE_OF_A_CLUSTER] if is_in_cluster and parse_cluster_url(url) is None else []
        return [_check_version(info), skew, *mode, *await _check_configuration(client, info)]
    except ApiError as error:
        return [broken(f"Redis {describe_for_operator(error)}")]
    finally:
        await client.close()


async def check_sentinels(url: str, timeout_seconds: float) -> list[CheckResult]:
    """Check whether the Sentinels of the Redis URL answer and agree on the primary. Return [] for a URL without any."""
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
        return [*found, broken("the Sentinels do not agree on the primary: one may not reach the others")]
    if len(states) < MIN_SENTINELS:
        found.append(advice("fewer than three Sentinels are named: two must agree when the third is gone"))
    return [*found, good("the Sentinels that answer agree on the primary")]


async def check_expiry(url: str, timeout_seconds: float) -> list[CheckResult]:
    """Check whether old statuses could leave at the last attempt. Return [] if none failed."""
    client = RedisClient(url, timeout_seconds)
    try:
        (failure,) = await client.execute(("HGET", keys.key_for("expiry"), "failure"))
    except ApiError:
        return []  # another check already reports that Redis does not answer
    finally:
        await client.close()
    return [broken(f"no status leaves because of its age: {failure.decode()}")] if failure else []


async def check_replicas(settings: Config, url: str) -> list[CheckResult]:
    """Check if the replica of ``--redis-read`` works and the primary has at least ``--write-replicas`` replicas."""
    seconds = settings.redis_timeout_seconds
    primary, near = RedisClient(url, seconds), None
    found = []
    try:
        answers, n = await primary.execute(("INFO", "replication"), ("HGET", keys.META, "n"))
        if settings.redis_read:
            near = ReplicaRouter(primary, RedisClient(settings.redis_read, seconds, replica=True))
            found.append(REPLICA_KEEPS_UP if await near.try_replica(int(n or 0)) else REPLICA_UNUSABLE)
        connected = int(parse_info(answers).get("connected_slaves", 0))
        wanted = settings.write_replicas
        if wanted > connected:
            found.append(broken(f"writes wait for {wanted} replicas, but only {connected} are connected"))
        elif wanted:
            found.append(good(f"{connected} replicas are connected; writes wait for {wanted}"))
    except ApiError:
        return found  # another check already reports that Redis does not answer
    finally:
        if near is not None:
            await near.close()
        await primary.close()
    return found


async def _check_configuration(client: RedisClient, info: dict[str, str]) -> list[CheckResult]:
    names = ("appendonly", "appendfsync", "maxmemory-policy", "client-output-buffer-limit", SMALL_HASH)
    try:
        answers = await client.execute(*(("CONFIG", "GET", name) for name in names))
    except ApiError:
        return [advice("Redis does not show its settings (CONFIG is forbidden), so they were not checked")]
    settings = {pair[0].decode(): pair[1].decode() for pair in answers if pair}
    return [
        *_check_persistence(settings, info),
        _check_eviction(settings.get("maxmemory-policy", "")),
        _check_pubsub_buffer(settings.get("client-output-buffer-limit", "")),
        _check_small_hashes(int(settings.get(SMALL_HASH, MIN_SMALL_HASH_BYTES))),
    ]


def _check_version(info: dict[str, str]) -> CheckResult:
    version = info.get("redis_version", "0.0")
    if tuple(int(part) for part in version.split(".")[:2]) < MIN_REDIS_VERSION:
        return broken(f"Redis {version} is too old: 6.2 or newer is needed")
    return good(f"Redis {version} answers")


def _check_clock_skew(theirs: float, started: float, ended: float) -> CheckResult:
    """Compare the clocks: Redis was asked its time between ``started`` and ``ended``, and ``theirs`` is its answer."""
    skew = max(started - theirs, theirs - ended, 0.0)
    if skew > MAX_CLOCK_SKEW_SECONDS:
        return advice(f"the clocks of Redis and this machine differ by {skew:.1f} s: run NTP on both")
    return good("the clocks of Redis and this machine agree")


def _check_persistence(settings: dict[str, str], info: dict[str, str]) -> list[CheckResult]:
    if settings.get("appendonly") != "yes":
        return [advice("Redis has appendonly off: what was written since its last snapshot is lost when it restarts")]
    if settings.get("appendfsync") != "always":
        return [advice("appendfsync is not `always`: a crash loses as much as the disk is behind, 2 s and more")]
    found = [good("everything is on disk before it is answered")]
    # Redis 7 counts its rewrites. In 6.2 the duration of the last rewrite is -1 before the first.
    if info.get("aof_rewrites", "1") == "0" or info.get("aof_last_rewrite_time_sec") == "-1":
        danger = "a tail torn by a power cut otherwise costs an entry at the start after the next"
        found.append(advice(f"after each start of Redis run BGREWRITEAOF: {danger}"))
    return found


def _check_eviction(policy: str) -> CheckResult:
    if policy != "noeviction":
        return broken(f"maxmemory-policy is {policy}: Redis would drop data when memory is short; set noeviction")
    return good("Redis drops nothing when memory is short (noeviction)")


def _check_small_hashes(max_bytes: int) -> CheckResult:
    if max_bytes < MIN_SMALL_HASH_BYTES:
        return advice(f"{SMALL_HASH} is {max_bytes}, so each status takes 1.6 times the memory: set 1024")
    return good(f"Redis stores statuses compactly ({SMALL_HASH})")


def _check_pubsub_buffer(limits: str) -> CheckResult:
    # The setting has the form `normal 0 0 0 … pubsub <hard> <soft> <seconds>`.
    words = limits.split()
    soft = int(words[words.index("pubsub") + 2]) if "pubsub" in words else 0
    if 0 < soft < MIN_PUBSUB_BUFFER_BYTES:
        fault = f"client-output-buffer-limit pubsub is {soft >> 20} MiB, so Redis may disconnect a busy worker"
        return advice(f"{fault}: set `pubsub 256mb 64mb 60`")
    return good("Redis waits for a busy worker (client-output-buffer-limit pubsub)")
