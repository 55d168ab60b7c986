"""Addresses that people try, and the pages that they mean.

The one rule: **a page has no slash at its end, and what people write below or behind it leads to it.** Programs get no
such help for the API: their clients follow no redirect, and the refusal says what is wrong.
"""

from collections.abc import Mapping

from aiohttp import hdrs, web

from stream_server.web.http.app_keys import FIXED_PATHS, STATIC_FILES
from stream_server.web.http.static_files import StaticFile
from stream_server.web.route import Request

DOCS, CONSOLE = "/docs", "/console"

SITE = "/docs/site/"
"""The folder of the documentation, where it is installed."""

SITE_CONTENTS = f"{SITE}README.html"


def find_page(request: Request) -> str | None:
    """Return the path of the page that a request for an unknown path means; None if it means none."""
    if request.method not in {"GET", "HEAD"} or "//" in request.path:  # clients resolve `..` behind `//` in two ways
        return None
    path = request.path.removesuffix("/")
    if path == CONSOLE:
        return "/"
    if path.startswith(f"{DOCS}/"):
        return _find_in_site(path.removeprefix(f"{DOCS}/"), request.app[STATIC_FILES])
    is_page = path.count("/") == 1 and "GET" in request.app[FIXED_PATHS].get(path, ())
    return path if is_page and path != request.path else None


def _find_in_site(name: str, files: Mapping[str, StaticFile]) -> str:
    """Return the page with this name in the documentation, else its contents, else the page of the API."""
    page = f"{SITE}docs/{name.removesuffix('.md').removesuffix('.html')}.html"
    return next((path for path in (page, SITE_CONTENTS) if path in files), DOCS)


def redirect(request: Request, path: str) -> web.Response:
    """Return a redirect to a path of this server.

    Its target is relative to the request's (RFC 9110 section 10.2.2), because a proxy may serve all paths below another
    one. A browser asks again each time: the documentation may be installed later.
    """
    steps = "../" * (request.rel_url.raw_path.count("/") - 1) or "./"
    return web.Response(
        status=302, headers={hdrs.LOCATION: steps + path.removeprefix("/"), hdrs.CACHE_CONTROL: "no-cache"}
    )
