"""Addresses that people try, and the pages that they mean.

The one rule: **a page has no slash at its end, and what people write below or behind it leads to it.** Programs get no
such help for the API: their clients follow no redirect, and the refusal says what is wrong.
"""

from aiohttp import hdrs, web

from stream_server.web.http.app_keys import FIXED_PATHS, STATIC_FILES
from stream_server.web.route import Request

DOCS, CONSOLE = "/docs", "/console"

SITE = "/docs/site/"
"""The folder of the documentation, where it is installed."""


def find_page(request: Request) -> str | None:
    """Return the path of the page that a request for an unknown path means; None if it means none."""
    if request.method not in {"GET", "HEAD"} or "//" in request.path:  # clients resolve `..` behind `//` in two ways
        return None
    path = request.path.removesuffix("/")
    if path == CONSOLE:
        return "/"
    if path.startswith(f"{DOCS}/"):
        name = path.removeprefix(f"{DOCS}/").removesuffix(".md").removesuffix(".html")
        in_site = f"{SITE}docs/{name}.html", f"{SITE}README.html"  # else the contents, else the page of the API
        return next((page for page in in_site if page in request.app[STATIC_FILES]), DOCS)
    is_page = path.count("/") == 1 and "GET" in request.app[FIXED_PATHS].get(path, ())
    return path if is_page and path != request.path else None


def redirect(request: Request, path: str) -> web.Response:
    """Return a redirect to a path of this server.

    Its target is relative to the request's (RFC 9110 section 10.2.2), because a proxy may serve all paths below another
    one. A browser asks again each time: the documentation may be installed later.
    """
    steps = "../" * (request.rel_url.raw_path.count("/") - 1) or "./"
    return web.Response(
        status=302, headers={hdrs.LOCATION: steps + path.removeprefix("/"), hdrs.CACHE_CONTROL: "no-cache"}
    )
