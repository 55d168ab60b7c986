"""Typed keys of the values that the aiohttp app and each request carry."""

import asyncio
from collections.abc import Callable, Collection, Mapping

import msgspec
from aiohttp import web

from stream_server.config.settings import Config
from stream_server.errors import RateLimited
from stream_server.feed.stream_directory import StreamDirectory
from stream_server.feed.token_validity_cache import TokenValidityCache
from stream_server.hub.disconnect import ReconnectSpread
from stream_server.hub.hub import Hub
from stream_server.hub.visibility.viewer import Viewer
from stream_server.monitoring.history import HistoryRecorder
from stream_server.monitoring.metrics import Metrics
from stream_server.monitoring.operations import Operations
from stream_server.monitoring.tracing import Tracing
from stream_server.runtime.fair_queue import Slot
from stream_server.security.claims import Claims
from stream_server.security.key_set import RemoteKeySet
from stream_server.security.passwords import Passwords
from stream_server.security.tokens import TokenAuthority
from stream_server.store.jobs.upkeep import LogTrimmer
from stream_server.store.store import Store
from stream_server.store.write_guard import WriteGuard
from stream_server.trends.counter import TrendCounter
from stream_server.web.http.opening import Opening
from stream_server.web.http.static_files import StaticFile
from stream_server.web.route import Route
from stream_server.web.streaming.acks import Acks
from stream_server.web.streaming.leases import Leases
from stream_server.web.webhooks.sender import Sender

CONFIG = web.AppKey("config", Config)
STORE = web.AppKey("store", Store)
HUB = web.AppKey("hub", Hub)
ACKS = web.AppKey("acks", Acks)
LEASES = web.AppKey("leases", Leases)
LOG_TRIMMER = web.AppKey("log_trimmer", LogTrimmer)
STREAMS = web.AppKey("streams", StreamDirectory)
AUTH = web.AppKey("auth", TokenAuthority)
SENDER = web.AppKey("sender", Sender)
"""Sends requests to the endpoints of webhooks."""

PASSWORDS = web.AppKey("passwords", Passwords)
METRICS = web.AppKey("metrics", Metrics)
HISTORY = web.AppKey("history", HistoryRecorder)
OPERATIONS = web.AppKey("operations", Operations)
ROUTES: web.AppKey[Mapping[web.AbstractRoute, Route]] = web.AppKey("routes")
FIXED_PATHS: web.AppKey[Mapping[str, Collection[str]]] = web.AppKey("fixed_paths")
"""The methods of each path without parameters. Such a path is no object of a route with a parameter in its place."""

TOKEN_VALIDITY_CACHE = web.AppKey("token_validity_cache", TokenValidityCache)
KEY_SET = web.AppKey("key_set", RemoteKeySet)
"""Public keys that verify tokens, fetched from a URL. Present only if the settings name such a URL."""

ReadinessCheck = Callable[[], tuple[bool, dict[str, object]]]
"""A function that returns whether the server is ready, and details as members of a JSON object."""

TRACING = web.AppKey("tracing", Tracing)
"""Traces of write requests. Absent unless the settings ask for traces."""
STATIC_FILES: web.AppKey[Mapping[str, StaticFile]] = web.AppKey("static_files")
"""The files of the console and the documentation, by their URL path."""

TRENDS = web.AppKey("trends", TrendCounter)
"""The counts of tags and words of this process."""

READINESS_CHECK: web.AppKey[ReadinessCheck] = web.AppKey("readiness")
"""A function that returns whether this server would deliver an event written now, and the details for `/readyz`."""

WRITE_GUARD = web.AppKey("write_guard", WriteGuard)
"""Says whether writes are refused, because Redis is nearly full or has too few replicas."""

SUBJECTS: web.AppKey[dict[str, str]] = web.AppKey("subjects")
"""The user ids of those users of another issuer who were seen lately, by the issuer's ids."""

SHUTDOWN = web.AppKey("shutdown", ReconnectSpread)
"""Gives each client its own reconnect delay while the server shuts down, so that not all return at once."""

UNPROVEN: web.AppKey[set[Callable[[], None]]] = web.AppKey("unproven")
"""Functions that close the WebSockets of this server process that have not sent a valid token yet."""

BODY = web.RequestKey("body", bytes)
"""The body of a request that the connection has read by itself. Absent if aiohttp reads it."""

CLAIMS = web.RequestKey("claims", Claims)
"""Claims of the request's token. Present on every route that needs a token."""

WAIVED = web.RequestKey("waived", RateLimited)
"""The refusal by a limit of bytes that a write for safety did not get. Absent if no such limit is reached."""

TURN = web.RequestKey("turn", Slot)
"""The request's turn among those of its address. Absent if the route or the server has no limits."""

OPENING = web.RequestKey("opening", Opening)
"""The opening of a stream or a long poll: what its code may wait for. Present on every route that is streaming."""

VIEWER_READ: "web.RequestKey[asyncio.Future[Viewer | None]]" = web.RequestKey("viewer_read")
"""The reading of the caller's relations, which keeps them in memory until a stream has them. Absent if they were."""

QUERY = web.RequestKey("query", msgspec.Struct)
"""The parsed query, an instance of the route's query struct. Absent if the handler reads the query itself."""

REQUEST_ID = web.RequestKey("request_id", str)
"""The request's id: the client's `X-Request-Id` if it is valid, else a random one."""
