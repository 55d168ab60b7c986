"""The files of pages in memory: read once at start, and served with an entity tag and the headers of a safe page.

A request names a file by a key of the table, so no path of a request reaches the file system.
"""

import gzip
from functools import cached_property
from hashlib import sha256
from importlib.resources.abc import Traversable
from pathlib import PurePath

from aiohttp import ETag, hdrs, web

from stream_server.web.route import Request

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ts": "text/plain; charset=utf-8",  # types, for those who copy client.js
    ".png": "image/png",
    ".webp": "image/webp",
    **dict.fromkeys(("", ".json", ".md", ".txt", ".yaml", ".yml"), "text/plain; charset=utf-8"),
}
"""The media type of each kind of file. A file of another kind fails the start of the server."""

SITE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Content Security Policy of the documentation: scripts and styles in files of this server only, and no connection."""

PAGE_POLICY = f"{SITE_POLICY}; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"
"""That of the console, which connects to this server, and makes no HTML from text."""


class StaticFile:
    """A file in memory.

    Attributes:
        body: Its bytes.
        media_type: Its kind, one of :data:`MEDIA_TYPES`.
        tag: The start of the SHA-256 of the bytes, as the entity tag.
        policy: The Content Security Policy of a page.
    """

    def __init__(self, body: bytes, media_type: str, policy: str) -> None:
        self.body, self.media_type, self.policy = body, media_type, policy
        self.tag = sha256(body).hexdigest()[:32]

    @cached_property
    def zipped(self) -> bytes:
        """The bytes as one gzip member, made when they are first asked for."""
        return gzip.compress(self.body, mtime=0)


def load_files(folder: Traversable, prefix: str, policy: str) -> dict[str, StaticFile]:
    """Return the files below ``folder`` by their path with slashes behind ``prefix``.

    Hidden files are left out: editors and file managers put theirs there. Raises ValueError for one of an unknown kind.
    """
    found: dict[str, StaticFile] = {}
    for entry in folder.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            found |= load_files(entry, f"{prefix}{entry.name}/", policy)
        else:
            media_type = MEDIA_TYPES.get(PurePath(entry.name).suffix)
            if media_type is None:
                raise ValueError(f"{entry.name} is no file for a browser: known are {' '.join(MEDIA_TYPES)}")
            found[prefix + entry.name] = StaticFile(entry.read_bytes(), media_type, policy)
    return found


def file_response(request: Request, file: StaticFile, coding: str) -> web.Response:
    """Return the answer with a file: 304 without a body if the client has these bytes (RFC 9110 §13.1.2), else 200.

    ``coding`` is the content coding that the client accepts: `gzip` sends a text with it, under a tag of its own.
    """
    is_zipped = coding == "gzip" and not file.media_type.startswith("image/")
    tag = f"{file.tag}-gzip" if is_zipped else file.tag
    known = ",".join(request.headers.getall(hdrs.IF_NONE_MATCH, []))
    is_known = f'"{tag}"' in known or known.strip() == "*"  # no tag can have a quotation mark within
    response = web.Response(status=304) if is_known else web.Response(body=file.zipped if is_zipped else file.body)
    response.etag = ETag(tag)
    response.headers.update(
        {
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
            "Content-Security-Policy": file.policy,
            # A new version must not meet the scripts of the old one, so a browser asks each time. Mostly it gets 304.
            hdrs.CACHE_CONTROL: "no-cache",
            hdrs.VARY: hdrs.ACCEPT_ENCODING,
        }
    )
    if not is_known:
        response.headers[hdrs.CONTENT_TYPE] = file.media_type
        if is_zipped:
            response.headers[hdrs.CONTENT_ENCODING] = coding
    return response
