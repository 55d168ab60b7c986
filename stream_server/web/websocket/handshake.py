"""The opening handshake (RFC 6455 §4): checks a request for a WebSocket, and encodes the head of its answer.

Every refusal is an ordinary HTTP answer. A page of another origin may open a WebSocket only if the settings name its
origin, because browsers do not ask before, as they do for other requests.
"""

import binascii
from base64 import b64decode, b64encode
from hashlib import sha1
from urllib.parse import urlsplit

from aiohttp import hdrs

from stream_server.config.origins import DEFAULT_PORTS
from stream_server.config.public_url import split_public_url
from stream_server.errors import BadRequest, Forbidden, UpgradeRequired
from stream_server.web.http.app_keys import CONFIG, REQUEST_ID
from stream_server.web.http.authentication import TICKET_PARAMETER
from stream_server.web.http.cors import allows_origin, request_origin
from stream_server.web.http.query import query_of
from stream_server.web.http.request_limits import ALLOWANCE, limit_headers
from stream_server.web.http.responses import SERVER_NAME, WEBSOCKET_VERSION, X_REQUEST_ID, date_header
from stream_server.web.route import Request
from stream_server.web.websocket.deflate import ANSWER, accepts_deflate


def is_websocket_request(request: Request) -> bool:
    """Return whether a GET request asks for a WebSocket."""
    is_get = request.method == hdrs.METH_GET  # the handler of HEAD is the same
    return is_get and hdrs.UPGRADE in request.headers and _has_token(request, hdrs.UPGRADE, "websocket")


def has_credentials(request: Request) -> bool:
    """Return whether a request brings a token or a ticket. If not, a WebSocket may send a token later."""
    if hdrs.AUTHORIZATION in request.headers:
        return True
    return TICKET_PARAMETER in query_of(request).names


def check_handshake(request: Request) -> None:
    """Raise BadRequest, UpgradeRequired or Forbidden unless a WebSocket may be opened by this request."""
    if request.version < (1, 1):
        raise BadRequest("a WebSocket needs HTTP/1.1", param="Upgrade")
    if not _has_token(request, hdrs.CONNECTION, "upgrade"):
        raise BadRequest("send `Connection: Upgrade`; a proxy must pass it on", param="Connection")
    if request.headers.getall(hdrs.SEC_WEBSOCKET_VERSION, []) != [WEBSOCKET_VERSION]:
        raise UpgradeRequired(f"send version {WEBSOCKET_VERSION} of WebSocket", param="Sec-WebSocket-Version")
    keys = request.headers.getall(hdrs.SEC_WEBSOCKET_KEY, [])
    try:
        key = b64decode(keys[0].strip(), validate=True) if len(keys) == 1 else b""
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 16:
        raise BadRequest("send one key of 16 bytes in base64", param="Sec-WebSocket-Key")
    origin = request_origin(request)
    if origin is not None and not (_is_own_origin(request, origin) or allows_origin(request.app, origin)):
        message = "pages of this origin may not open a WebSocket (--cors-origins, --public-url)"
        raise Forbidden(message, code="origin_not_allowed", param="Origin")


def negotiate_deflate(request: Request) -> bool:
    """Return whether messages of this WebSocket are compressed: the client offers it, and the settings allow it."""
    if request.app[CONFIG].compress_streams == "off":
        return False
    return accepts_deflate(",".join(request.headers.getall(hdrs.SEC_WEBSOCKET_EXTENSIONS, [])))


def encode_head(request: Request, *, compresses: bool) -> bytes:
    """Return the head of status 101 for a checked request."""
    fields = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": accept_key(request.headers[hdrs.SEC_WEBSOCKET_KEY]),
        **({"Sec-WebSocket-Extensions": ANSWER} if compresses else {}),
        "Server": SERVER_NAME,
        X_REQUEST_ID: request[REQUEST_ID],
        **(limit_headers(request) if ALLOWANCE in request else {}),
        "Date": date_header(),
    }
    lines = ["HTTP/1.1 101 Switching Protocols", *map(": ".join, fields.items()), "", ""]
    return "\r\n".join(lines).encode()


def accept_key(key: str) -> str:
    """Return the value of ``Sec-WebSocket-Accept`` for the client's key (RFC 6455 §4.2.2)."""
    appended = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # by each server (RFC 6455 §1.3)
    return b64encode(sha1(key.strip().encode() + appended, usedforsecurity=False).digest()).decode()


def _has_token(request: Request, header: str, token: str) -> bool:
    values = ",".join(request.headers.getall(header, []))
    return token in {part.strip().lower() for part in values.split(",")}


def _is_own_origin(request: Request, origin: str) -> bool:
    """Whether the page comes from the host of the request, or from that of the setting ``public_url``.

    Only the host and the port are compared: behind a proxy with TLS the server does not see the scheme.
    """
    public = split_public_url(request.app[CONFIG].public_url).origin
    if public and origin == public:
        return True
    host = request.headers.get(hdrs.HOST, "")
    if max(len(origin), len(host)) > 300:  # a host has 253 characters at most, and parsing takes quadratic time
        return False
    try:
        page, own = urlsplit(origin), urlsplit(f"//{host}")
        default = DEFAULT_PORTS.get(page.scheme)
        same_port = (page.port or default) == (own.port or default)
    except ValueError:
        return False
    is_origin = page.scheme in DEFAULT_PORTS and origin == f"{page.scheme}://{page.netloc}" and "@" not in page.netloc
    return is_origin and bool(page.hostname) and page.hostname == own.hostname and same_port
