"""Every error that the API answers, as a tree of exceptions.

    ApiError
    ├── BadRequest 400        invalid_parameter unknown_parameter missing_parameter
    │                         conflicting_parameters malformed_body invalid_cursor
    ├── Unauthorized 401      invalid_token token_expired token_revoked
    ├── Forbidden 403         insufficient_scope not_yours suspended
    ├── NotFound 404          not_found (also: not visible to you)
    ├── MethodNotAllowed 405  method_not_allowed
    ├── NotAcceptable 406     not_acceptable
    ├── Conflict 409          login_taken email_taken duplicate
    ├── TooLarge 413          too_large too_many
    ├── UnsupportedMedia 415  unsupported_media_type
    ├── RateLimited 429       rate_limited
    ├── Internal 500          internal
    └── Unavailable 503       unavailable outcome_unknown

The answer has the status above and the JSON
``{"error": {"code", "message", "param"?, "column"?, "retry_after"?}}``. Messages are for people and never contain a
Redis key, a path or an internal address.
"""

from typing import ClassVar

STATUS_BY_CODE: dict[str, int] = {
    "invalid_parameter": 400,
    "unknown_parameter": 400,
    "missing_parameter": 400,
    "conflicting_parameters": 400,
    "malformed_body": 400,
    "invalid_cursor": 400,
    "invalid_token": 401,
    "token_expired": 401,
    "token_revoked": 401,
    "insufficient_scope": 403,
    "not_yours": 403,
    "suspended": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "login_taken": 409,
    "email_taken": 409,
    "duplicate": 409,
    "too_large": 413,
    "too_many": 413,
    "unsupported_media_type": 415,
    "rate_limited": 429,
    "internal": 500,
    "unavailable": 503,
    "outcome_unknown": 503,
}
"""Every error code of the API with its HTTP status."""


class ApiError(Exception):
    """An error that the API reports to the caller.

    Attributes:
        error_code: A key of :data:`STATUS_BY_CODE`.
        message: One sentence for a person.
        status: The HTTP status.
        param: Name of the wrong query parameter, body member or header; None if there is none.
        column: Column of the fault in a rule, in code points from 1; None for other errors.
        retry_after: Seconds after which the caller may try again; None if that is unknown.
    """

    code: ClassVar[str] = "internal"

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
        """Return the JSON object of the error, the same shape for all errors."""
        error: dict[str, object] = {"code": self.error_code, "message": self.message}
        if self.param is not None:
            error["param"] = self.param
        if self.column is not None:
            error["column"] = self.column
        if self.retry_after is not None:
            error["retry_after"] = self.retry_after
        return {"error": error}


class BadRequest(ApiError):
    """The request is wrong. The same request will fail again."""

    code = "invalid_parameter"


class InvalidCursor(BadRequest):
    """``since`` is not a possible position of this log."""

    code = "invalid_cursor"


class Unauthorized(ApiError):
    """The request has no valid token. The answer carries ``WWW-Authenticate`` (RFC 6750)."""

    code = "invalid_token"


class Forbidden(ApiError):
    """The token is valid but does not allow this request."""

    code = "insufficient_scope"


class NotFound(ApiError):
    """The object does not exist, or the caller may not see it."""

    code = "not_found"


class MethodNotAllowed(ApiError):
    """The path exists, but not with this method."""

    code = "method_not_allowed"


class NotAcceptable(ApiError):
    """The server cannot answer with any media type in ``Accept``."""

    code = "not_acceptable"


class Conflict(ApiError):
    """The login or email is taken, or the object already exists."""

    code = "duplicate"


class TooLarge(ApiError):
    """The body has too many bytes, or a list has too many items."""

    code = "too_large"


class UnsupportedMediaType(ApiError):
    """The server does not read bodies of this media type."""

    code = "unsupported_media_type"


class RateLimited(ApiError):
    """The caller sent too many requests; ``retry_after`` says when to try again."""

    code = "rate_limited"


class InternalError(ApiError):
    """The server failed. Its log has the details."""

    code = "internal"


class Unavailable(ApiError):
    """The server cannot do this now, usually because Redis does not answer. Nothing was written."""

    code = "unavailable"


class OutcomeUnknown(ApiError):
    """Redis did not confirm the write in time, so it may or may not have been written."""

    code = "outcome_unknown"
