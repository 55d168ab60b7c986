"""The console's files in memory: read once at start, and served with an entity tag and the headers of a safe page.

A request names a file by a key of the table, so no path of a request reaches the file system.
"""

from hashlib import sha256
from importlib.resources.abc import Traversable
from typing import NamedTuple

from aiohttp import ETag, hdrs, web

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ts": "text/plain; charset=utf-8",  # types, for those who copy client.js
}
"""The media type of each kind of file. A file of another kind fails the start of the server."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Content Security Policy of the pages: scripts, styles and connections of this server only, and no HTML from text."""

PAGE_HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    # A new version must not meet the scripts of the old one, so a browser asks each time; the answer is mostly 304.
    hdrs.CACHE_CONTROL: "no-cache",
}
"""Headers of every file of the console, besides those of every answer."""


class StaticFile(NamedTuple):
    """A file in memory: its bytes, its media type, and the SHA-256 of the bytes as the entity tag."""

    body: bytes
    media_type: str
    tag: str


def load_files(folder: Traversable, prefix: str = "") -> dict[str, StaticFile]:
    """Return the files below ``folder`` by their path with slashes. Raises ValueError for a file of an unknown kind.

    Hidden files are left out: editors and file managers put theirs there.
    """
    found: dict[str, StaticFile] = {}
    for entry in folder.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            found |= load_files(entry, f"{prefix}{entry.name}/")
        else:
            found[prefix + entry.name] = _load_file(entry)
    return found


def _load_file(file: Traversable) -> StaticFile:
    suffix = file.name[file.name.rfind(".") :]
    if suffix not in MEDIA_TYPES:
        raise ValueError(f"{file.name} is no file for a browser: known are {', '.join(MEDIA_TYPES)}")
    body = file.read_bytes()
    return StaticFile(body, MEDIA_TYPES[suffix], sha256(body).hexdigest()[:32])


def file_response(request: web.Request, file: StaticFile) -> web.Response:
    """Return the answer with a file: 304 without a body if the client has these bytes (RFC 9110 §13.1.2), else 200."""
    known = ",".join(request.headers.getall(hdrs.IF_NONE_MATCH, []))
    is_known = f'"{file.tag}"' in known or known.strip() == "*"  # no tag can have a quotation mark within
    response = web.Response(status=304) if is_known else web.Response(body=file.body)
    response.etag = ETag(file.tag)
    response.headers.update(PAGE_HEADERS)
    if not is_known:
        response.headers[hdrs.CONTENT_TYPE] = file.media_type
    return response
