"""Cross-origin requests (the Fetch standard): pages of the origins in the settings may read and write.

A page needs this if it comes from another origin than the server. Tokens are in a header, never in a cookie, so a page
without a token can do no more than any stranger.
"""

import re
from collections.abc import Mapping, MutableMapping

from aiohttp import hdrs, web

from stream_server.config.origins import ANY_ORIGIN
from stream_server.web.http.app_keys import CONFIG
from stream_server.web.route import AppValues, Request

MAX_AGE_SECONDS = 600
"""Seconds for which a browser may remember what it may send."""


def answer_preflight(request: Request) -> web.StreamResponse | None:
    """Answer the question of a browser whether a page of another origin may send a request. None if it is no such.

    A page of an allowed origin may send any header: libraries add headers for tracing and caching to each request. The
    answer repeats the names that the browser asks for, because ``*`` does not stand for ``Authorization``.
    """
    if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
        allowed = cors_headers(request)
        if hdrs.ACCESS_CONTROL_ALLOW_ORIGIN in allowed:
            asked = ",".join(request.headers.getall(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, []))
            is_list = re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z, -]{1,4096}", asked) is not None
            more: dict[str, str] = {
                hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, HEAD, POST, PUT, PATCH, DELETE",
                **({hdrs.ACCESS_CONTROL_ALLOW_HEADERS: asked} if is_list else {}),
                hdrs.ACCESS_CONTROL_MAX_AGE: str(MAX_AGE_SECONDS),
                hdrs.VARY: hdrs.ACCESS_CONTROL_REQUEST_HEADERS,  # the middleware adds `Origin`
            }
            return web.Response(status=204, headers={**allowed, **more})
    return None


def cors_headers(request: Request) -> dict[str, str]:
    """Return the headers that let a page of the request's origin read the answer; none if it may not."""
    if not request.app[CONFIG].cors_origins:
        return {}
    vary: dict[str, str] = {hdrs.VARY: hdrs.ORIGIN}
    origin = request_origin(request)
    if origin is not None and allows_origin(request.app, origin):
        return {
            **vary,
            hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin,
            hdrs.ACCESS_CONTROL_EXPOSE_HEADERS: (
                "Location, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, X-Request-Id"
            ),
        }
    return vary


def request_origin(request: Request) -> str | None:
    """Return the origin of the page that sent the request, or None if no page did.

    A browser sends one origin, or ``null`` (RFC 6454 §7). The result is empty for an empty header and for several: no
    setting allows that.
    """
    origins = request.headers.getall(hdrs.ORIGIN, [])
    return (origins[0] if len(origins) == 1 else "") if origins else None


def allows_origin(app: AppValues, origin: str) -> bool:
    """Return whether the settings allow pages of this origin."""
    origins = app[CONFIG].cors_origins
    return bool(origin) and (origins == ANY_ORIGIN or origin in origins.split(","))


def add_cors_headers(request: Request, headers: MutableMapping[str, str]) -> None:
    """Put `cors_headers` among the headers of an answer, beside what its own `Vary` names already."""
    merge_cors_headers(headers, cors_headers(request))


def merge_cors_headers(headers: MutableMapping[str, str], more: Mapping[str, str]) -> None:
    """Put the headers ``more`` of `cors_headers` among those of an answer, as `add_cors_headers` does."""
    own_vary = headers.get(hdrs.VARY)
    headers.update(more)
    if own_vary is not None and headers[hdrs.VARY] != own_vary:
        headers[hdrs.VARY] += f", {own_vary}"
