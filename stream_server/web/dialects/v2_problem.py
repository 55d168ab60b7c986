"""Renders errors in v2 format: problems (RFC 9457) with the types, titles and members that v2 clients know."""

from http import HTTPStatus

from aiohttp import hdrs, web

from stream_server.errors import ApiError, BadRequest
from stream_server.events.one_line import encode_json
from stream_server.web.dialects.status_text import Json
from stream_server.web.http.responses import JSON_HEADERS, SERVER_NAME
from stream_server.web.limits.rate_limiter import Allowance

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
    """Raised for an invalid query parameter. The message has its name and the first 64 characters of its value."""

    def __init__(self, name: str, value: str, why: str) -> None:
        self.value = value[:64]
        super().__init__(f"The `{name}` query parameter value [{self.value}] {why}", param=name)


def error_response(error: ApiError) -> web.Response:
    """Return the HTTP response for ``error`` in v2 format."""
    response = problem_response(render_problem(error), _v2_status(error))
    if error.status == 401:
        response.headers[hdrs.WWW_AUTHENTICATE] = f'Bearer realm="{SERVER_NAME}"'
    if error.retry_after is not None:
        response.headers[hdrs.RETRY_AFTER] = str(round(error.retry_after) or 1)
    return response


def problem_response(body: Json, status: int) -> web.Response:
    """Return an HTTP answer with a problem (RFC 9457) as its body."""
    headers = {**JSON_HEADERS, hdrs.CONTENT_TYPE: MEDIA_TYPE}
    return web.Response(body=encode_json(body), status=status, headers=headers)


def rate_limit_headers(allowance: Allowance) -> dict[str, str]:
    """Return Twitter's rate limit headers: the limit, the requests left, and the Unix time of the next reset."""
    values = {"limit": allowance.limit, "remaining": allowance.remaining, "reset": int(allowance.ends_at)}
    return {f"x-rate-limit-{name}": str(value) for name, value in values.items()}


def render_problem(error: ApiError) -> Json:
    """Return the JSON body for ``error``: a problem (RFC 9457) with the title and type that v2 clients expect."""
    if error.error_code == "too_many":
        return {"title": "RulesCapProblem", "detail": error.message, "type": PROBLEM_TYPE_PREFIX + "rule-cap"}
    if _v2_status(error) == 400:
        return _render_invalid_request(error)
    title = HTTPStatus(error.status).phrase
    return {"title": title, "detail": error.message, "type": "about:blank", "status": error.status}


def _v2_status(error: ApiError) -> int:
    return 400 if error.status in {406, 413, 415} else error.status  # v2 does not have these three


def _render_invalid_request(error: ApiError) -> Json:
    """Return Twitter v2's problem for an invalid request, with the parameter and its value if they are known."""
    values = [error.value] if isinstance(error, InvalidValue) else []
    parameters = {} if error.param is None else {error.param: values}
    errors, problem_type = (
        [{"parameters": parameters, "message": error.message}],
        PROBLEM_TYPE_PREFIX + "invalid-request",
    )
    return {"errors": errors, "title": "Invalid Request", "detail": _INVALID_REQUEST_DETAIL, "type": problem_type}
