"""The exceptions of the SDK, which are all a :class:`ClientFailure`."""

import html
import json
import re
from typing import Any

MAX_SUMMARY_CHARACTERS = 80

_TITLE = re.compile(r"<(title|h1)\b[^>]*>(.*?)</\1", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>?")


class ClientFailure(Exception):
    """Base class of all exceptions that end a call or a stream. The text of each is a sentence for people."""


class InvalidAddress(ClientFailure, ValueError):
    """The given URL is not the address of a server. A client raises it before it sends anything."""


class RequestRefused(ClientFailure):
    """The server answered with an error.

    Attributes:
        status: The HTTP status.
        code: The error code of the API, such as ``invalid_parameter``. Empty if a proxy answered.
        param: The parameter, member or header at fault, or None.
        column: Where in a rule the mistake is, in code points from 1, or None.
        retry_after: Seconds to wait before the next attempt, as the server asks, at most an hour; or None.
    """

    def __init__(
        self, status: int, code: str, message: str, *, param: str | None = None, column: int | None = None,
        retry_after: float | None = None,
    ) -> None:  # fmt: skip
        about = f"{code} ({param})" if param else code
        super().__init__(f"{status} {about}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.column = column
        self.retry_after = retry_after

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later: the status is 429, 502, 503 or 504."""
        return self.status in {429, 502, 503, 504}

    @property
    def may_have_happened(self) -> bool:
        """Whether a write that was answered so may still have happened. ``unavailable`` says that it did not."""
        return self.status in {500, 502, 504} or (self.status == 503 and self.code != "unavailable")

    @property
    def is_about_request(self) -> bool:
        """Whether the request itself is wrong, so that no attempt of it can have happened."""
        return self.status in {400, 405, 406, 415}


class Unreachable(ClientFailure):
    """The server did not answer: no connection, a timeout, or a broken connection.

    Attributes:
        may_have_happened: Whether the server may have got the request: false if there was no connection.
    """

    is_temporary = True
    is_about_request = False
    retry_after: float | None = None

    def __init__(self, sentence: str, *, may_have_happened: bool = True) -> None:
        super().__init__(sentence)
        self.may_have_happened = may_have_happened


class OutcomeUnknown(ClientFailure):
    """A write failed, but one of its attempts may have happened. Only a read, or a repetition with ``key``, can tell.

    Attributes:
        key: The ``Idempotency-Key`` of the write. Repeat the same call with ``key=`` to get its first answer.
        last: What ended the last attempt.
    """

    def __init__(self, key: str, last: "RequestRefused | Unreachable") -> None:
        super().__init__(f"the write may have happened; the last attempt ended with: {last}")
        self.key = key
        self.last = last


class StreamEnded(ClientFailure):
    """The server ended the stream with a ``goodbye`` that tells the client not to reconnect.

    Attributes:
        code: Machine-readable reason, such as ``token_revoked``.
        reason: The same reason as a sentence for people.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"the stream ended: {reason or code}")
        self.code = code
        self.reason = reason


class SessionLost(ClientFailure):
    """The log-in session cannot be renewed, because its refresh token is used up. Log in again."""


class Malformed(ClientFailure):
    """The client cannot parse the bytes that the server sent, or one message exceeds the size limit."""


def parse_refusal(status: int, retry_after: float | None, body: bytes) -> RequestRefused:
    """Build the exception for an error answer from its status, its delay in seconds and its body.

    The message of a body that is no error of this server is :func:`summary_of` the body.
    """
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        error = None
    text = summary_of(body) or "no reason given"
    return refusal_of(status, error if isinstance(error, dict) else {}, text, retry_after)


def refusal_of(status: int, error: dict[str, Any], text: str, retry_after: float | None) -> RequestRefused:
    """Build the exception for the object ``error`` of an answer. ``text`` stands for a message that is missing."""
    message, code = str(error.get("message") or text), str(error.get("code") or "")
    return RequestRefused(
        status, code, message, param=error.get("param"), column=error.get("column"), retry_after=retry_after
    )


def summary_of(body: bytes) -> str:
    """Return a line about a body that this server did not write: at most about 80 characters, without markup.

    It names the title or the heading of an HTML page, else the first line that has a text. It is empty if none has.
    """
    text = body[:4096].decode(errors="replace")  # an error page of a proxy may be long
    title = _TITLE.search(text)
    lines = [title[2]] if title else text.splitlines()
    line = next(filter(None, map(_plain, lines)), "")
    if len(line) > MAX_SUMMARY_CHARACTERS:
        line = f"{line[: MAX_SUMMARY_CHARACTERS - 1]}…"
    return f"another program answered, such as a proxy: {line}" if title else line


def _plain(line: str) -> str:
    """Return the text of a line of HTML without tags, control characters and repeated blanks."""
    words = " ".join(html.unescape(_TAG.sub(" ", line)).split())
    return "".join(filter(str.isprintable, words))
