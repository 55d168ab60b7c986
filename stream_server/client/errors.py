"""The exceptions of the SDK.

ClientFailure
├── RequestRefused   the server answered with an error; ``status`` and ``code`` say which
├── Unreachable      there was no answer: no connection, or a broken one
├── StreamEnded      the server ended the stream, and a reconnect would not help
└── Malformed        the received bytes are not a stream or an answer of this server
"""

import json
from typing import Any

MAX_ERROR_MESSAGE_CHARS = 300
"""Most bytes quoted from an error page that this server did not write, such as a proxy's."""


class ClientFailure(Exception):
    """Base class of every exception that ends a call or a stream. Its text is a sentence for people."""


class RequestRefused(ClientFailure):
    """The server answered with an error.

    Attributes:
        status: The HTTP status.
        code: The error code of the API, such as ``invalid_parameter``. Empty if a proxy answered.
        message: The server's explanation, for people.
        param: The parameter, member or header at fault, or None.
        retry_after: Seconds after which to try again, or None.
    """

    def __init__(
        self, status: int, code: str, message: str, *, param: str | None = None, retry_after: float | None = None
    ) -> None:
        """Build the exception from the parts of an error answer."""
        about = f"{code} ({param})" if param else code
        super().__init__(f"{status} {about}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.retry_after = retry_after

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later: the status is 429, 502, 503 or 504."""
        return self.status in {429, 502, 503, 504}


class Unreachable(ClientFailure):
    """The server did not answer: no connection, a timeout, or a broken connection."""


class StreamEnded(ClientFailure):
    """The server ended the stream with a ``goodbye`` that tells the client not to reconnect.

    Attributes:
        code: Why the stream ended, for programs, such as ``token_revoked``.
        reason: Why the stream ended, for people.
    """

    def __init__(self, code: str, reason: str) -> None:
        """Build the exception from the members of a ``goodbye``."""
        super().__init__(f"the stream ended: {reason or code}")
        self.code = code
        self.reason = reason


class Malformed(ClientFailure):
    """The received bytes are not messages or an answer of this server, or one message exceeds the size limit."""


def parse_refusal(status: int, retry_after: str | None, body: bytes) -> RequestRefused:
    """Build the exception for an error answer from its status, its ``Retry-After`` header and its body."""
    error = _parse_error(body)
    seconds = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
    text = str(
        error.get("message") or body[:MAX_ERROR_MESSAGE_CHARS].decode(errors="replace").strip() or "no reason given"
    )
    return RequestRefused(status, str(error.get("code") or ""), text, param=error.get("param"), retry_after=seconds)


def _parse_error(body: bytes) -> dict[str, Any]:
    """Return the ``error`` object of an answer, or an empty dict if the body is not this server's."""
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}
