"""Decides who may read operational data: metrics, details of the readiness, and the version.

By default anybody may read them if the server listens on this machine only and no proxy stands before it. Otherwise a
request needs a token: the setting ``operations_token``, or a token with the scope ``admin``.
"""

import hmac
import ipaddress

from aiohttp import hdrs, web

from stream_server.config.settings import Config
from stream_server.errors import ApiError, Forbidden, Unauthorized
from stream_server.web.http import authentication
from stream_server.web.http.app_keys import CONFIG, ROUTES

FORWARDING_HEADERS = ("Forwarded", "X-Forwarded-For", "Via")
"""Headers by which a proxy shows itself, beside the header of the settings.

Behind a proxy on this machine every client seems to be on this machine.
"""

ADMIN_SCOPE = "admin"


async def may_read(request: web.Request) -> bool:
    """Return whether :func:`require` lets the caller read health details, metrics and the like."""
    try:
        await require(request)
    except ApiError:
        return False
    return True


async def require(request: web.Request) -> None:
    """Raise Unauthorized or Forbidden unless the caller may read what concerns the operation of the server."""
    config = request.app[CONFIG]
    if config.operations == "open" or (config.operations == "auto" and _is_local(config, request)):
        return
    if hdrs.AUTHORIZATION not in request.headers:
        raise Unauthorized("this needs the operations token of the server, or a token with the scope admin")
    token = authentication.read_bearer_token(request)
    secret = config.operations_token
    if secret and hmac.compare_digest(token.encode(), secret.encode()):
        return
    claims = await authentication.authenticate(request, request.app[ROUTES][request.match_info.route])
    if ADMIN_SCOPE not in claims.scopes:
        raise Forbidden("the token lacks the scope admin")


def _is_local(config: Config, request: web.Request) -> bool:
    if any(name in request.headers for name in (config.forwarded_header, *FORWARDING_HEADERS)):
        return False
    try:
        return ipaddress.ip_address(config.host).is_loopback
    except ValueError:
        return config.host == "localhost"
