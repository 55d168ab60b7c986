"""Every error that the API answers, as a tree of exceptions.

The body of the answer is ``{"error": {"code", "message", "param"?, "column"?, "retry_after"?}}``. Messages are for
people and never contain a Redis key, a path or an internal address.
"""

from typing import ClassVar

from stream_server.wire.errors import STATUS_BY_CODE


def reason_of(error: BaseException) -> str:
    """Return why ``error`` came, for the log: the message of :func:`first_cause`, or the name of a type without one."""
    cause = first_cause(error)
    return str(cause) or ("no answer in time" if isinstance(cause, TimeoutError) else type(cause).__name__)


def first_cause(error: BaseException) -> BaseException:
    """Return the error from which ``error`` came. That of a timeout is the timeout, and no cancelled task inside it."""
    while error.__cause__ is not None and not isinstance(error, TimeoutError):
        error = error.__cause__
    return error


class ApiError(Exception):
    """An error that the API reports to the caller. ``class NotFound(ApiError, code="not_found")`` sets a default code.

    Attributes:
        error_code: A key of :data:`STATUS_BY_CODE`.
        status: The HTTP status.
        param: Name of the wrong query parameter, body member or header; None if there is none.
        column: Column of the fault in a rule, in code points from 1; None for other errors.
        retry_after: Seconds after which the caller may try again; None if that is unknown.
    """

    code: ClassVar[str] = "internal"

    def __init_subclass__(cls, *, code: str = "") -> None:
        cls.code = code or cls.code

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = code or self.code
        self.status = STATUS_BY_CODE[self.error_code]
        self.param = param
        self.retry_after = retry_after
        self.column = column

    def body(self) -> dict[str, dict[str, object]]:
        """Return the JSON of the answer: the member ``error`` with ``code``, ``message`` and the known details."""
        optional = {"param": self.param, "column": self.column, "retry_after": self.retry_after}
        given = {name: value for name, value in optional.items() if value is not None}
        return {"error": {"code": self.error_code, "message": self.message, **given}}


class BadRequest(ApiError, code="invalid_parameter"):
    """The request is invalid, so the same request would fail again."""


class InvalidCursor(BadRequest, code="invalid_cursor"):
    """The value of ``since`` or a cursor is invalid, or the cursor is from another log or another list of results."""


class Unauthorized(ApiError, code="invalid_token"):
    """The request has no valid token. The answer carries ``WWW-Authenticate`` (RFC 6750)."""


class Forbidden(ApiError, code="insufficient_scope"):
    """The token is valid but does not allow this request."""


class NotFound(ApiError, code="not_found"):
    """The object does not exist, or the caller may not see it."""


class MethodNotAllowed(ApiError, code="method_not_allowed"):
    """The path exists, but not with this method."""


class NotAcceptable(ApiError, code="not_acceptable"):
    """The server has no answer in a media type that the header ``Accept`` allows."""


class Conflict(ApiError, code="duplicate"):
    """Another account has this login or email, or the object exists already."""


class TooLarge(ApiError, code="too_large"):
    """The body has too many bytes, or a list has too many items."""


class UnsupportedMediaType(ApiError, code="unsupported_media_type"):
    """The server does not read bodies of this media type."""


class UpgradeRequired(ApiError, code="upgrade_required"):
    """The server does not speak this version of WebSocket. The answer names the version that it speaks."""


class RateLimited(ApiError, code="rate_limited"):
    """The caller sent too many requests. ``retry_after`` is the number of seconds to wait.

    ``limit`` is the name of the limit for the operator: that of its setting, or of what it limits.
    """

    def __init__(self, message: str, *, limit: str, retry_after: float) -> None:
        super().__init__(message, retry_after=retry_after)
        self.limit = limit


class InternalError(ApiError, code="internal"):
    """The server failed because of a fault of its own. Its log has the details."""


class Unavailable(ApiError, code="unavailable"):
    """The server cannot handle the request now, usually because Redis does not answer. The request wrote nothing."""


class OutcomeUnknown(ApiError, code="outcome_unknown"):
    """Redis did not confirm the write in time, so the server may or may not have written the data."""
