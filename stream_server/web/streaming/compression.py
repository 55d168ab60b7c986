"""Compresses streams with gzip, once for all clients that get the same bytes.

The body of a stream is one gzip member (RFC 1952): a header, then deflate blocks (RFC 1951). Each write is a run of
blocks by a compressor of its own. It refers to nothing before it, so it fits behind any bytes that a client has got. Or
it refers to the last bytes that all clients of a group have got (`SharedHistory`). In both cases the clients share it.
A write ends at a byte (a *sync flush*), so the client decodes it at once.

The trailer of gzip, a checksum of the whole body, is left out: it would be another one for each client. A stream ends
with a `goodbye` or with the connection, so programs that read streams do not miss it.
"""

import zlib
from functools import cache

from stream_server.errors import NotAcceptable
from stream_server.hub.messages import IDENTITY, Framing, WrapAfter, WrapBytes
from stream_server.web.http.qualities import parse_qualities
from stream_server.web.streaming.framing import SSE

GZIP = "gzip"

GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""The header of a gzip member without name, time and flags (RFC 1952 §2.3)."""

MAX_CAREFUL_BYTES = 8192
"""Longest data compressed at level 6. More data compresses well anyway, and level 1 takes a third of the time."""

MEMORY_LEVEL = 6
"""Size of the compressor's tables. The default of zlib is 8, whose memory takes longer to prepare than a post."""


def deflate(data: bytes, earlier: bytes = b"") -> bytes:
    """Return ``data`` as deflate blocks that end at a byte. Call it with at least one byte.

    The blocks may refer to ``earlier``, the decoded bytes that the client has got directly before them.
    """
    level = 6 if len(data) <= MAX_CAREFUL_BYTES else 1
    compressor = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, earlier)
    return compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)


def compress_framing(framing: Framing, *, apart: bool = False) -> Framing:
    """Return a framing with the same messages, compressed with gzip.

    ``apart`` compresses each message by itself. So the length of a stream does not tell whether the texts of two
    messages are alike. Use it for streams that contain what only one user may read.
    """
    separator = (b"\n\n" if framing.name == SSE else b"\n") if apart else None
    wrap = _make_wrap(framing.wrap, separator)
    wrap_after = None if apart else _make_wrap_after(framing.wrap)
    return framing._replace(wrap=wrap, content_coding=GZIP, wrap_after=wrap_after)


@cache
def _make_wrap(wrap: WrapBytes, separator: bytes | None) -> WrapBytes:
    """Return a function that compresses, then wraps. Equal arguments give the same object: groups compare it."""

    def wrap_joined(data: bytes) -> bytes:
        return wrap(deflate(data))

    def wrap_apart(data: bytes) -> bytes:
        assert separator is not None
        parts = data.split(separator)  # JSON has no line breaks, so a separator ends a message
        return wrap(b"".join(deflate(part + separator) for part in parts if part))

    return wrap_joined if separator is None else wrap_apart


@cache
def _make_wrap_after(wrap: WrapBytes) -> WrapAfter:
    return lambda earlier, data: wrap(deflate(data, earlier))


def begin_body(data: bytes) -> bytes:
    """Return the first bytes of a compressed body: the header of gzip and the compressed ``data``.

    They are not in HTTP chunks yet.
    """
    return GZIP_HEADER + deflate(data)


def negotiate_content_coding(accept_encoding: str | None) -> str:
    """Return the content coding to send for an ``Accept-Encoding`` header (RFC 9110 §12.5.3), None if it is absent.

    Gzip is chosen unless the client prefers no coding. Raises NotAcceptable if the client accepts neither.
    """
    if accept_encoding is None:
        return IDENTITY
    qualities = {  # `x-gzip` is another name (RFC 9110 §8.4.1.3)
        GZIP if coding == "x-gzip" else coding: quality for coding, quality in parse_qualities(accept_encoding).items()
    }
    any_other = qualities.get("*")
    gzip = qualities.get(GZIP, any_other or 0.0)
    plain = qualities.get(IDENTITY, any_other)
    if gzip > 0 and gzip >= (plain or 0.0):
        return GZIP
    if plain == 0:
        raise NotAcceptable(f"available content codings: {GZIP}, {IDENTITY}", param="Accept-Encoding")
    return IDENTITY
