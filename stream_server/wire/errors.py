"""The answer to a request that the server refuses, and every error code with its HTTP status."""

from typing import Annotated, ClassVar

from msgspec import Meta

from stream_server.wire.objects import Answer

STATUS_BY_CODE: dict[str, int] = {
    code: status
    for status, codes in {
        400: "invalid_parameter unknown_parameter missing_parameter conflicting_parameters malformed_body "
        "invalid_cursor",
        401: "invalid_token token_expired token_revoked account_deleted",
        403: "insufficient_scope not_yours suspended unanswered wrong_password origin_not_allowed too_late",
        404: "not_found",
        405: "method_not_allowed",
        406: "not_acceptable",
        409: "login_taken email_taken duplicate not_reading",
        413: "too_large too_many",
        415: "unsupported_media_type",
        426: "upgrade_required",
        429: "rate_limited",
        500: "internal",
        503: "unavailable outcome_unknown",
    }.items()
    for code in codes.split()
}
"""Every error code of the API with its HTTP status."""


class ErrorDetail(Answer, frozen=True, omit_defaults=True):
    """One error. Programs read ``code``, people ``message``. ``param`` names the wrong parameter, member or header."""

    left_out: ClassVar[frozenset[str]] = frozenset({"param", "column", "retry_after"})

    code: Annotated[str, Meta(extra_json_schema={"enum": list(STATUS_BY_CODE)})]
    message: str
    param: Annotated[str, Meta(description="a query parameter, a body member or a header")] | None = None
    column: Annotated[int, Meta(description="where in a rule, in code points", extra_json_schema={"minimum": 1})] | (
        None
    ) = None
    retry_after: (
        Annotated[float, Meta(description="seconds to wait before the next try", extra_json_schema={"minimum": 0})]
        | None
    ) = None


class ErrorResponse(Answer, frozen=True):
    """The body of every answer with a status other than 2xx."""

    error: ErrorDetail
