"""Errors of bytes that are not HTTP: the answers to them, and nothing that is kept of the bytes.

aiohttp's error has the bytes as text, of four characters each. Its traceback refers to aiohttp's record of the error: a
cycle, which would stay until a full garbage collection. A client could send any number of such bytes.
"""

from collections import deque
from http import HTTPStatus
from typing import Any

from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.http_parser import RawRequestMessage

from stream_server.errors import ApiError, BadRequest, InternalError, TooLarge


def connection_error(status: int, error: BaseException | None) -> ApiError:
    """Return what the client is told of an error outside the handlers. Forget the received bytes."""
    if isinstance(error, HttpProcessingError):
        _forget_bytes(error)
    if isinstance(error, LineTooLong):
        return TooLarge("the request line or a header field is too long")
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return BadRequest("the request is not valid HTTP", code="malformed_body")
    return InternalError("internal error; it was logged")


def shrink_last_error(messages: deque[Any]) -> bool:
    """Return whether the last message is aiohttp's record of an error. If so, forget the received bytes."""
    if not messages or isinstance(messages[-1][0], RawRequestMessage):
        return False
    record, payload = messages.pop()
    _forget_bytes(record.exc)
    messages.append((type(record)(record.status, record.exc, ""), payload))
    return True


def _forget_bytes(error: Any) -> None:
    error.__traceback__ = error.__context__ = error.__cause__ = None
    error.args, error.message = (), ""
