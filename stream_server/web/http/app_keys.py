"""Typed keys of the values that the aiohttp app and each request carry."""

from collections.abc import Callable, Mapping

import msgspec
from aiohttp import web

from stream_server.config.settings import Config
from stream_server.hub.disconnect import ReconnectSpread
from stream_server.hub.hub import Hub
from stream_server.runtime.metrics import Metrics
from stream_server.security.key_set import RemoteKeySet
from stream_server.security.passwords import Passwords
from stream_server.security.tokens import Claims, TokenAuthority
from stream_server.store.store import Store
from stream_server.web.route import Route

CONFIG = web.AppKey("config", Config)
"""The settings of this server."""

STORE = web.AppKey("store", Store)
"""Access to Redis."""

HUB = web.AppKey("hub", Hub)
"""The live clients and the matching of events."""

AUTH = web.AppKey("auth", TokenAuthority)
"""Signs and verifies access tokens."""

KEY_SET = web.AppKey("key_set", RemoteKeySet)
"""The key set at a URL. Present only if the settings name such a URL."""

PASSWORDS = web.AppKey("passwords", Passwords)
"""Hashes and verifies passwords."""

METRICS = web.AppKey("metrics", Metrics)
"""The counters and histograms that `/metrics` shows."""

ReadinessCheck = Callable[[], tuple[bool, dict[str, object]]]
"""A function that returns whether the server is ready, and details as JSON members."""

READINESS_CHECK: web.AppKey[ReadinessCheck] = web.AppKey("readiness")
"""Returns whether an event written now would be delivered, and the details that `/readyz` shows."""

SHUTDOWN = web.AppKey("shutdown", ReconnectSpread)
"""Spreads the reconnect delays that clients get while the server shuts down."""

ROUTES: web.AppKey[Mapping[web.AbstractRoute, Route]] = web.AppKey("routes")
"""The row of the URL table for each route that aiohttp knows."""

CLAIMS = web.RequestKey("claims", Claims)
"""Claims of the request's token. Present on every route that needs a token."""

QUERY = web.RequestKey("query", msgspec.Struct)
"""The parsed query, an instance of the route's query struct. Absent if the handler reads the query itself."""

REQUEST_ID = web.RequestKey("request_id", str)
"""The request's id: the client's `X-Request-Id` if it is valid, else a random one."""
