"""What an app and a request carry, by typed keys."""

from collections.abc import Callable, Mapping

import msgspec
from aiohttp import web

from stream_server.auth import Auth, Claims
from stream_server.config import Config
from stream_server.hub.closing import Shutdown
from stream_server.hub.hub import Hub
from stream_server.jwks import KeySet
from stream_server.metrics import Metrics
from stream_server.passwords import Passwords
from stream_server.store.store import Store
from stream_server.web.route import Route
from stream_server.web.subscriptions import Subscriptions

CONFIG = web.AppKey("config", Config)
STORE = web.AppKey("store", Store)
HUB = web.AppKey("hub", Hub)
SUBSCRIPTIONS = web.AppKey("subscriptions", Subscriptions)
AUTH = web.AppKey("auth", Auth)
KEY_SET = web.AppKey("key_set", KeySet)
"""There only where the settings name a key set's URL."""

PASSWORDS = web.AppKey("passwords", Passwords)
METRICS = web.AppKey("metrics", Metrics)

Readiness = Callable[[], tuple[bool, dict[str, object]]]
READINESS: web.AppKey[Readiness] = web.AppKey("readiness")
"""Whether events that are written now would arrive, and what is known about it."""

SHUTDOWN = web.AppKey("shutdown", Shutdown)

ROUTES: web.AppKey[Mapping[web.AbstractRoute, Route]] = web.AppKey("routes")

CLAIMS = web.RequestKey("claims", Claims)
"""The token's claims; there on every route that is not open."""

QUERY = web.RequestKey("query", msgspec.Struct)
"""The query as its row in the table says; there wherever the handler does not read it itself."""

REQUEST_ID = web.RequestKey("request_id", str)
