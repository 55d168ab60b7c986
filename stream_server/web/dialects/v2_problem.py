"""Renders errors in v2 format: problems (RFC 9457) with the types, titles and members that v2 clients know."""

from http import HTTPStatus

import msgspec
from aiohttp import hdrs, web

from stream_server.errors import ApiError, BadRequest
from stream_server.store.connect_rate_limiter import ConnectAllowance
from stream_server.web.dialects.connect_limit import TooManyConnects
from stream_server.web.dialects.status_text import Json
from stream_server.web.http.responses import JSON_HEADERS, SERVER_NAME

PROBLEM_TYPE_PREFIX = "https://api.twitter.com/2/problems/"
"""Prefix of all problem types. Clients compare the types as text."""

MEDIA_TYPE = "application/problem+json"

NO_RULES_PROBLEM: Json = {
    "title": "ConnectionException",
    "detail": "You must define rules using the POST /2/tweets/search/stream/rules endpoint before connecting.",
    "connection_issue": "RuleConfigurationIssue",
    "type": PROBLEM_TYPE_PREFIX + "streaming-connection",
}
"""Answer (with status 409) to a user who connects to the search stream without saved rules."""

_INVALID_REQUEST_DETAIL = "One or more parameters to your request was invalid."


class InvalidValue(BadRequest):
    """An invalid query parameter. The answer repeats its name and its value, up to 64 characters."""

    def __init__(self, name: str, value: str, why: str) -> None:
        self.value = value[:64]
        super().__init__(f"The `{name}` query parameter value [{self.value}] {why}", param=name)


def error_response(error: ApiError) -> web.Response:
    """Return the answer for ``error``. If the user connected too often, headers say when to retry."""
    response = problem_response(render_problem(error), _v2_status(error))
    if error.status == 401:
        response.headers[hdrs.WWW_AUTHENTICATE] = f'Bearer realm="{SERVER_NAME}"'
    if error.retry_after is not None:
        response.headers[hdrs.RETRY_AFTER] = str(round(error.retry_after) or 1)
    if isinstance(error, TooManyConnects):
        response.headers.update(rate_limit_headers(error.allowance))
    return response


def problem_response(body: Json, status: int) -> web.Response:
    """Return an answer with a problem as its body."""
    return web.Response(
        body=msgspec.json.encode(body), status=status, headers={**JSON_HEADERS, hdrs.CONTENT_TYPE: MEDIA_TYPE}
    )


def rate_limit_headers(allowance: ConnectAllowance) -> dict[str, str]:
    """Return v2's rate limit headers: the limit, the connects left, and the time of the reset in seconds since 1970."""
    return {
        "x-rate-limit-limit": str(allowance.limit),
        "x-rate-limit-remaining": str(allowance.remaining),
        "x-rate-limit-reset": str(allowance.resets_at),
    }


def render_problem(error: ApiError) -> Json:
    """Return the body of the answer for ``error``."""
    if error.error_code == "too_many":
        return {"title": "RulesCapProblem", "detail": error.message, "type": PROBLEM_TYPE_PREFIX + "rule-cap"}
    if _v2_status(error) == 400:
        return _render_invalid_request(error)
    title = HTTPStatus(error.status).phrase
    return {"title": title, "detail": error.message, "type": "about:blank", "status": error.status}


def _v2_status(error: ApiError) -> int:
    """Return v2's status for an error. v2 has no 406, 413 and 415; these become 400."""
    return 400 if error.status in {406, 413, 415} else error.status


def _render_invalid_request(error: ApiError) -> Json:
    """Return v2's problem for an invalid request, with the parameter and its value if they are known."""
    values = [error.value] if isinstance(error, InvalidValue) else []
    parameters = {} if error.param is None else {error.param: values}
    return {
        "errors": [{"parameters": parameters, "message": error.message}],
        "title": "Invalid Request",
        "detail": _INVALID_REQUEST_DETAIL,
        "type": PROBLEM_TYPE_PREFIX + "invalid-request",
    }
