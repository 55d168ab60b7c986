"""Every refusal of the server, split by whose fault it is.

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

On the wire each is ``{"error": {"code", "message", "param"?, "column"?, "retry_after"?}}`` with the same status.
The messages are for people and name no key, path or address of the inside.
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
"""Every code that may stand in an answer, with the one status it comes with."""


class ApiError(Exception):
    """A refusal that the caller is told about.

    ``code`` is a key of :data:`STATUS_BY_CODE`, ``param`` names the offending parameter (a query
    parameter, a body member, or a header), ``column`` says where in its text (from 1, in code points; of rules),
    ``retry_after`` is in seconds.
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
        """The one error shape of the wire."""
        error: dict[str, object] = {"code": self.error_code, "message": self.message}
        if self.param is not None:
            error["param"] = self.param
        if self.column is not None:
            error["column"] = self.column
        if self.retry_after is not None:
            error["retry_after"] = self.retry_after
        return {"error": error}


class BadRequest(ApiError):
    """The request itself is wrong; sending it again will not help."""

    code = "invalid_parameter"


class InvalidCursor(BadRequest):
    """``since`` names no position that this log can have had."""

    code = "invalid_cursor"


class Unauthorized(ApiError):
    """There is no valid token; the answer carries ``WWW-Authenticate`` (RFC 6750)."""

    code = "invalid_token"


class Forbidden(ApiError):
    """The token is valid and does not allow this."""

    code = "insufficient_scope"


class NotFound(ApiError):
    """It does not exist, or the caller may not know that it does."""

    code = "not_found"


class MethodNotAllowed(ApiError):
    """The path exists, not with this method."""

    code = "method_not_allowed"


class NotAcceptable(ApiError):
    """None of the media types in ``Accept`` can be given."""

    code = "not_acceptable"


class Conflict(ApiError):
    """Somebody was first."""

    code = "duplicate"


class TooLarge(ApiError):
    """A body over its bytes, or a list over its number."""

    code = "too_large"


class UnsupportedMediaType(ApiError):
    """The body's media type is none that is read here."""

    code = "unsupported_media_type"


class RateLimited(ApiError):
    """Too often; ``retry_after`` says when again."""

    code = "rate_limited"


class InternalError(ApiError):
    """Our own fault; the log has the rest."""

    code = "internal"


class Unavailable(ApiError):
    """Redis cannot be reached: nothing was written."""

    code = "unavailable"


class OutcomeUnknown(ApiError):
    """Redis was lost between the question and its answer: it may have been written."""

    code = "outcome_unknown"
