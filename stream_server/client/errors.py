"""What can go wrong for a client, by whose fault it is.

ClientFailure
├── Refused       the server answered with an error; ``status`` and ``code`` say which
├── Unreachable   no answer: no connection, or one that broke
├── StreamEnded   the server said goodbye and that it is of no use to come back like this
└── Malformed     what came is no stream of this server
"""

import json
from typing import Any

MAX_ERROR_MESSAGE_CHARS = 300
"""As much of a foreign error page as a person wants to see."""


class ClientFailure(Exception):
    """Anything that ends a call or a stream; the text is a sentence for a person."""


class RequestRefused(ClientFailure):
    """The server's answer is an error.

    ``status`` is the HTTP status, ``code`` the error's name on the wire (``invalid_parameter`` …; empty where a proxy
    answered), ``param`` the parameter it is about, ``retry_after`` seconds or None.
    """

    def __init__(
        self, status: int, code: str, message: str, *, param: str | None = None, retry_after: float | None = None
    ) -> None:
        about = f"{code} ({param})" if param else code
        super().__init__(f"{status} {about}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.retry_after = retry_after

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later: too many requests, or the server or its proxy is unwell."""
        return self.status in {429, 502, 503, 504}


class Unreachable(ClientFailure):
    """There was no answer."""


class StreamEnded(ClientFailure):
    """The stream's ``goodbye`` said not to come back: its ``code`` and ``reason``."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"the stream ended: {reason or code}")
        self.code = code
        self.reason = reason


class Malformed(ClientFailure):
    """Bytes that are no Server-Sent Events or JSON lines of this server, or one message without an end."""


def parse_refusal(status: int, retry_after: str | None, body: bytes) -> RequestRefused:
    """The :class:`RequestRefused` of an answer: its status, ``Retry-After`` header (seconds) and body."""
    error = _parse_error(body)
    seconds = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
    text = str(
        error.get("message") or body[:MAX_ERROR_MESSAGE_CHARS].decode(errors="replace").strip() or "no reason given"
    )
    return RequestRefused(status, str(error.get("code") or ""), text, param=error.get("param"), retry_after=seconds)


def _parse_error(body: bytes) -> dict[str, Any]:
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}
