"""What an app and a request carry, by typed keys."""

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
STORE = web.AppKey("store", Store)
HUB = web.AppKey("hub", Hub)
AUTH = web.AppKey("auth", TokenAuthority)
KEY_SET = web.AppKey("key_set", RemoteKeySet)
"""There only where the settings name a key set's URL."""

PASSWORDS = web.AppKey("passwords", Passwords)
METRICS = web.AppKey("metrics", Metrics)

ReadinessCheck = Callable[[], tuple[bool, dict[str, object]]]
READINESS_CHECK: web.AppKey[ReadinessCheck] = web.AppKey("readiness")
"""Whether events that are written now would arrive, and what is known about it."""

SHUTDOWN = web.AppKey("shutdown", ReconnectSpread)

ROUTES: web.AppKey[Mapping[web.AbstractRoute, Route]] = web.AppKey("routes")

CLAIMS = web.RequestKey("claims", Claims)
"""The token's claims; there on every route that is not open."""

QUERY = web.RequestKey("query", msgspec.Struct)
"""The query as its row in the table says; there wherever the handler does not read it itself."""

REQUEST_ID = web.RequestKey("request_id", str)
