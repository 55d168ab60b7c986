"""The head of a stream's response. It is encoded here, because `hello` leaves in the same write.

aiohttp would need two writes and eight times the work. A test compares the head with the one that aiohttp sends.
"""

from collections.abc import Mapping

from aiohttp import HttpVersion, hdrs, web

from stream_server.web.http.date_header import date_header


def encode_head(version: HttpVersion, headers: Mapping[str, str]) -> bytes:
    """Return the head of a response 200 in the request's version, with ``headers``, a date and the fields of its body.

    The connection ends with the response. Raises ValueError if a header has a line break, which would begin another.
    """
    fields = {**headers, hdrs.DATE: date_header()}
    if version >= (1, 1):
        fields |= {hdrs.TRANSFER_ENCODING: "chunked", hdrs.CONNECTION: "close"}
    lines = [f"HTTP/{version.major}.{version.minor} 200 OK", *map(": ".join, fields.items()), "", ""]
    head = "\r\n".join(lines)
    if not head.count("\r") == head.count("\n") == len(lines) - 1:
        raise ValueError("a header has a line break")
    return head.encode()


class OpenedStream(web.StreamResponse):
    """Stands for the response of a stream that has left the HTTP server, which must not touch it any more."""

    @property
    def prepared(self) -> bool:
        """Whether the head has been sent."""
        return True


OPENED = OpenedStream()
"""What the handler of a stream returns. It has no state, so all streams share it."""
