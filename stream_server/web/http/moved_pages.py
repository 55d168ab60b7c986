"""Addresses that people try, and the pages that they mean.

The one rule: **a page has no slash at its end, and what people write below or behind it leads to it.** Programs get no
such help for the API: their clients follow no redirect, and the refusal says what is wrong. A browser that asks for an
address without a meaning gets a page that leads to those that there are.
"""

from html import escape

from aiohttp import hdrs, web

from stream_server.web.http.app_keys import FIXED_PATHS, STATIC_FILES
from stream_server.web.http.qualities import prefers_html
from stream_server.web.http.static_files import SITE_POLICY
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
    location = _way_up(request) + path.removeprefix("/")
    return web.Response(status=302, headers={hdrs.LOCATION: location, hdrs.CACHE_CONTROL: "no-cache"})


def _way_up(request: Request) -> str:
    return "../" * (request.rel_url.raw_path.count("/") - 1) or "./"


MISSING = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Not found · stream-server</title>
<link rel="icon" href="{up}console/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{up}console/tokens.css">
<link rel="stylesheet" href="{up}console/app.css">
</head>
<body>
<main>
<h1>There is no such page</h1>
<p>The server says: {message}.</p>
<ul>
<li><a href="{up}">The console</a>: live columns of posts, people, and the view for operators.</li>
<li><a href="{up}docs">The API</a>, with forms that try each route.</li>
<li><a href="{up}openapi.json">The same for programs</a>, in OpenAPI.</li>
</ul>
</main>
</body>
</html>
"""
"""What a person gets for an address without a page; ``up`` leads to the address of the server."""


def missing_page(request: Request, message: str) -> web.Response | None:
    """Return the answer 404 with a page for a person. None if no browser asks. ``message`` is the one for programs."""
    if request.method not in {"GET", "HEAD"} or "//" in request.path:  # as above: relative links would lead elsewhere
        return None
    if not prefers_html(",".join(request.headers.getall(hdrs.ACCEPT, []))):
        return None
    text = MISSING.format(up=_way_up(request), message=escape(message))
    headers = {"Content-Security-Policy": SITE_POLICY, "Referrer-Policy": "no-referrer", hdrs.CACHE_CONTROL: "no-store"}
    response = web.Response(text=text, status=404, content_type="text/html", headers=headers)
    response.headers[hdrs.VARY] = hdrs.ACCEPT
    return response
