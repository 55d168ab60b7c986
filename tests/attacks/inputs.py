"""The worst bytes for each function that reads a request before anybody has proved who sends it.

Each row fills what the function reads: 64 KiB of a request line or a body, the 15 KiB of one header field, or as much
as the server lets in. The rows were found by measuring: for each function the text that took longest.
"""

import asyncio
from base64 import urlsafe_b64encode
from typing import NamedTuple

from tests.waiting import PATIENCE

FIELD_BYTES, LINE_BYTES, BODY_BYTES = 15 * 1024, 63 * 1024, 64 * 1024
FRAMES = 128
"""Frames of a WebSocket: four times as many as are read before a pause."""

SOCKET = (
    "Connection: close, Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)  # fmt: skip
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


class Input(NamedTuple):
    """One attack: its name, the bytes to send, and the status that answers them."""

    name: str
    request: bytes
    status: int


def fill(unit: str, size: int = FIELD_BYTES) -> str:
    """Return as many repetitions of ``unit`` as fit into ``size`` characters."""
    return unit * (size // len(unit))


def head(target: str, *fields: str, method: str = "GET", close: str = "Connection: close") -> bytes:
    """Return a request without a body. Its characters are bytes."""
    return "\r\n".join((f"{method} {target} HTTP/1.1", "Host: a", close, *fields, "", "")).encode("latin-1")


def post(path: str, body: str, media_type: str = JSON) -> bytes:
    """Return a request with a body."""
    data = body.encode("latin-1")
    return head(path, f"Content-Type: {media_type}", f"Content-Length: {len(data)}", method="POST") + data


def chunked(path: str, chunks: str) -> bytes:
    """Return a request with these chunks."""
    return head(path, f"Content-Type: {JSON}", "Transfer-Encoding: chunked", method="POST") + chunks.encode()


def socket(*fields: str, frames: bytes = b"") -> bytes:
    """Return the handshake of a WebSocket, the frames of its client, and a close frame."""
    return head("/v1/stream", *SOCKET[1:], *fields, close=SOCKET[0]) + frames + frame(8, b"\x03\xe8")


def frame(opcode: int, payload: bytes) -> bytes:
    """Return one masked frame of a client. The mask is zero."""
    size = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2)
    return bytes([0x80 | opcode]) + size + b"\0\0\0\0" + payload


def bearer(header: str, payload: str = "{}") -> bytes:
    """Return a request with a token of this header and payload, and without a signature."""
    parts = [urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in (header, payload)]
    return head("/v1/users/me", f"Authorization: Bearer {'.'.join(parts)}.AAAA")


def _content_types() -> list[Input]:
    junk = {"quotes": '"', "brackets": "(", "semicolons": ";", "pairs": "a=b;", "escapes": '\\"', "extended": "x*1*=a;"}
    paths = {"/v1/users": 415, "/v1/sessions": 415, "/1.1/statuses/filter.json": 406, "/v1/ingest": 401}
    return [
        Input(f"Content-Type, {name}, {path}", post(path, "{}", f"{JSON}; x={fill(text)}"), status)
        for name, text in junk.items()
        for path, status in paths.items()
    ]


def _targets() -> list[Input]:
    paths = {
        "slashes": fill("/", LINE_BYTES), "folders": fill("/a", LINE_BYTES), "parents": fill("/a/..", LINE_BYTES),
        "escaped slashes": "/" + fill("%2F", LINE_BYTES), "percents": "/" + fill("%", LINE_BYTES),
        "a login": "/v1/users/by-login/" + fill("%41", LINE_BYTES), "fragment": "/" + fill("#", LINE_BYTES),
        "a file": "/console/" + fill("a/", LINE_BYTES), "host": f"http://xn--{fill('a', LINE_BYTES)}/a/a",
        "a deep path behind a host": "http://a" + fill("/a", LINE_BYTES),
    }  # fmt: skip
    status = {"fragment": 400}
    found = [Input(f"path, {name}", head(path), status.get(name, 404)) for name, path in paths.items()]
    found.append(Input("path, OPTIONS", head(paths["folders"], method="OPTIONS"), 404))
    found.append(Input("path, Expect", head(paths["folders"], "Expect: 100-continue", method="POST"), 100))
    return found


def _queries() -> list[Input]:
    texts = {
        "percents": "%",
        "escapes": "%41",
        "escapes apart": "%41a",
        "no UTF-8": "%ff",
        "pairs": "a&",
        "equals": "=",
    }
    paths = {"/v1/users": 400, "/v1/stream": 401, "/healthz": 400, "/1.1/statuses/filter.json": 401, "/nowhere": 404}
    faults = {("/v1/stream", "no UTF-8"): 400, ("/v1/stream", "pairs"): 400}
    faults |= {("/1.1/statuses/filter.json", name): 406 for name in ("no UTF-8", "pairs")}
    found = [
        Input(f"query, {name}, {path}", head(f"{path}?{fill(text, LINE_BYTES)}"), faults.get((path, name), status))
        for path, status in paths.items()
        for name, text in texts.items()
    ]
    pairs = "&".join(f"a{number}={'%41' * 100}" for number in range(199))
    return [*found, Input("query, 199 pairs", head(f"/v1/users?{pairs}"), 400)]


def _headers() -> list[Input]:
    etags, accept = fill('"a",'), fill("text/html;q=0.5,")
    origins = {"combining marks": "a" + fill("\xcc\x81\xcc\xa7"), "colons": fill(":"), "numbers": "a:" + fill("1")}
    return [
        Input("If-None-Match", head("/docs", *[f"If-None-Match: {etags}"] * 7), 200),
        Input("If-Modified-Since", head("/docs", f"If-Modified-Since: {fill('1')}"), 200),
        Input("Range", head("/docs", f"Range: bytes={fill('0-1,')}"), 200),
        Input("Accept", head("/", *[f"Accept: {accept}"] * 7), 200),
        Input("Cookie", head("/", *[f"Cookie: {fill('a=b; ')}"] * 7), 200),
        Input("X-Forwarded-For", head("/", *[f"X-Forwarded-For: {fill(',')}"] * 7), 200),
        Input("Forwarded", head("/", *[f"Forwarded: {fill('for=')}"] * 7), 200),
        Input("many fields", head("/", *(f"h{number}: {'x' * 500}" for number in range(120))), 200),
        Input("too many fields", head("/", *["a:"] * 40_000), 413),
        Input("Connection", head("/", close=f"Connection: {fill('close,')}close"), 200),
        Input("Content-Length", post("/v1/users", "{}").replace(b"Length: 2", b"Length: " + b"0" * 9000 + b"2"), 400),
        Input("Content-Encoding", post("/v1/users", "{}", f"{JSON}\r\nContent-Encoding: {fill('gzip,')}"), 415),
        *(Input(f"Origin, {name}", socket(f"Origin: http://{text}"), 403) for name, text in origins.items()),
        Input("Sec-WebSocket-Extensions", socket(*[f"Sec-WebSocket-Extensions: {fill(';')}"] * 6), 101),
        Input("Sec-WebSocket-Protocol", socket(f"Sec-WebSocket-Protocol: {fill('a,')}"), 101),
        Input("Sec-WebSocket-Key", head("/v1/stream", *SOCKET[1:3], f"Sec-WebSocket-Key: {fill('A')}", close=SOCKET[0]),
              400),
    ]  # fmt: skip


def _tokens() -> list[Input]:
    oauth = {"letters": fill("a"), "pairs": fill('a="b",'), "open": 'oauth_token="' + fill("a"), "blanks": fill(" ")}
    return [
        Input("Bearer, dots", head("/v1/users/me", f"Authorization: Bearer {fill('.')}"), 401),
        Input("Bearer, deep header", bearer('{"alg":' + "[" * 5000), 401),
        Input("Bearer, large number", bearer('{"alg":"HS256","a":' + "1" * 5000 + "}"), 401),
        Input("Bearer, deep payload", bearer('{"alg":"HS256","typ":"JWT"}', "[" * 5000), 401),
        *(
            Input(f"OAuth, {name}", head("/1.1/statuses/sample.json", f"Authorization: OAuth {text}"), 401)
            for name, text in oauth.items()
        ),
    ]


def _bodies() -> list[Input]:
    bodies = {
        "open lists": fill("[", BODY_BYTES), "lists": "[" * 32_000 + "]" * 32_000, "objects": fill('{"a":', BODY_BYTES),
        "a number": '{"login":' + "1" * 65_000 + "}", "an exponent": '{"login":1e' + "9" * 4000 + "}",
        "escapes": '{"login":"' + fill("\\u0041", 65_000) + '"}',
        "keys": '{"login":"a",' + fill('"login":"a",', 65_000),
        "e-mail": '{"login":"a","name":"a","password":"12345678","email":"' + fill("a@", 65_000) + '"}',
        "name": '{"login":"a","password":"12345678","email":"a@b.c","name":"' + fill("\\u0301\\u0327", 65_000) + '"}',
    }  # fmt: skip
    return [
        *(Input(f"JSON, {name}", post("/v1/users", body), 400) for name, body in bodies.items()),
        Input("JSON, v1.1", post("/1.1/statuses/filter.json", '{"track":[' + "1," * 125_000 + "1]}"), 401),
        Input("form, v1.1", post("/1.1/statuses/filter.json", fill("%41a", 256 * 1024), FORM), 401),
        Input("chunks", chunked("/v1/users", fill("1\r\n \r\n", BODY_BYTES) + "0\r\n\r\n"), 400),
        Input("chunk extensions", chunked("/v1/users", f"1;{fill('a=b;', BODY_BYTES)}\r\n \r\n0\r\n\r\n"), 400),
        Input("chunks, no route", chunked("/nowhere", fill("1\r\n \r\n", BODY_BYTES) + "0\r\n\r\n"), 404),
        Input("blank lines", fill("\r\n", 4 * BODY_BYTES).encode() + head("/healthz"), 200),
        # So few that they arrive together: the server closes behind its answer, and a reset could overtake the answer.
        Input("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(BODY_BYTES // 4), 400),
        Input("no HTTP", b"\x16\x03" + b"\xff" * (BODY_BYTES // 4), 400),
    ]


def _frames() -> list[Input]:
    return [
        Input("pings", socket(frames=frame(9, b"") * FRAMES), 101),
        Input("first message", socket(frames=frame(1, b'{"op":"token","token":"' + b"a" * 60_000 + b'"}')), 101),
        Input("first message, deep", socket(frames=frame(1, b"[" * 60_000)), 101),
        Input("messages", socket(frames=frame(1, b"{}") * FRAMES), 101),
    ]


HONEST = head("/healthz", close="Connection: keep-alive") * 99 + head("/healthz")
"""A hundred of the smallest requests, which a quick machine answers in about 5 ms: the measure of other inputs."""

INPUTS = [
    *_content_types(), *_targets(), *_queries(), *_headers(), *_tokens(), *_bodies(), *_frames(),
]  # fmt: skip
"""The table of attacks."""


async def exchange(address: str, request: bytes) -> bytes:
    """Send a request on a connection of its own. Return the whole answer, up to the end of the connection."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    finally:
        writer.close()
