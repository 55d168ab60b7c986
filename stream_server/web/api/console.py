"""The console: the pages that a browser shows of this server, with their scripts and styles.

The files are package data, ES modules without a build step. They are read when the server starts.
"""

import re
from importlib import resources

from aiohttp import hdrs, web

from stream_server.errors import NotFound
from stream_server.web.api import server
from stream_server.web.http.app_keys import CONSOLE_FILES
from stream_server.web.http.static_files import StaticFile, file_response, load_files

CONSOLE_PAGE, DOCS_PAGE = "index.html", "docs.html"

MAX_ACCEPT_CHARS = 1000
"""Longest part of an Accept header that is read. Browsers send about 150 characters."""

_QUALITY = re.compile(r"q=([01](?:\.[0-9]{0,3})?)")


def load_console() -> dict[str, StaticFile]:
    """Return the console's files by their path. Raises ValueError if a file or one of the two pages is unusable."""
    files = load_files(resources.files("stream_server") / "console")
    missing = {CONSOLE_PAGE, DOCS_PAGE} - files.keys()
    if missing:
        raise ValueError(f"the console lacks {', '.join(sorted(missing))}: install the project again")
    return files


def prefers_html(accept: str) -> bool:
    """Return whether an Accept header names HTML and does not prefer JSON (RFC 9110 §12.5.1).

    ``*/*`` alone means a program such as curl, which gets JSON.
    """
    qualities: dict[str, float] = {}
    for part in accept[:MAX_ACCEPT_CHARS].split(","):
        media_type, *parameters = (piece.strip().lower() for piece in part.split(";"))
        found = next(filter(None, map(_QUALITY.fullmatch, parameters)), None)
        qualities[media_type] = float(found[1]) if found else 1.0
    html = qualities.get("text/html", 0.0)
    return html > 0 and html >= qualities.get("application/json", 0.0)


async def index(request: web.Request) -> web.Response:
    """``GET /``: open the console in a browser (`Accept: text/html`), or read the server's name and first requests."""
    if prefers_html(",".join(request.headers.getall(hdrs.ACCEPT, []))):
        response = file_response(request, request.app[CONSOLE_FILES][CONSOLE_PAGE])
    else:
        response = await server.describe(request)
    response.headers[hdrs.VARY] = hdrs.ACCEPT
    return response


async def docs(request: web.Request) -> web.Response:
    """``GET /docs``: open the documentation of the API in a browser."""
    return file_response(request, request.app[CONSOLE_FILES][DOCS_PAGE])


async def file(request: web.Request) -> web.Response:
    """``GET /console/{file}``: read a script, a style or a picture of the console."""
    return _answer(request, request.match_info["file"])


async def folder_file(request: web.Request) -> web.Response:
    """``GET /console/{folder}/{file}``: read a script or a style of one part of the console."""
    return _answer(request, f"{request.match_info['folder']}/{request.match_info['file']}")


def _answer(request: web.Request, path: str) -> web.Response:
    found = request.app[CONSOLE_FILES].get(path)
    if found is None:
        raise NotFound("the console has no such file")
    return file_response(request, found)
