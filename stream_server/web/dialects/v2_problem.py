"""Refusals as v2 tells them: problems (RFC 9457) with the types, titles and members that its clients know."""

from http import HTTPStatus

import msgspec
from aiohttp import hdrs, web

from stream_server.errors import ApiError, BadRequest
from stream_server.store.connect_rate_limiter import ConnectAllowance
from stream_server.web.dialects.connect_limit import TooManyConnects
from stream_server.web.dialects.status_text import Json
from stream_server.web.http.responses import JSON_HEADERS, SERVER_NAME

PROBLEM_TYPE_PREFIX = "https://api.twitter.com/2/problems/"
"""Where the names of problems begin; clients compare them as they are."""

MEDIA_TYPE = "application/problem+json"

NO_RULES_PROBLEM: Json = {
    "title": "ConnectionException",
    "detail": "You must define rules using the POST /2/tweets/search/stream/rules endpoint before connecting.",
    "connection_issue": "RuleConfigurationIssue",
    "type": PROBLEM_TYPE_PREFIX + "streaming-connection",
}
"""409 to who connects to the stream of rules without having any."""

_INVALID_REQUEST_DETAIL = "One or more parameters to your request was invalid."


class InvalidValue(BadRequest):
    """A parameter of the query that cannot be so; its name and value are repeated, with what is wrong."""

    def __init__(self, name: str, value: str, why: str) -> None:
        self.value = value[:64]
        super().__init__(f"The `{name}` query parameter value [{self.value}] {why}", param=name)


def error_response(error: ApiError) -> web.Response:
    """The answer for ``error``; who connected too often hears when they may again."""
    response = problem_response(render_problem(error), _v2_status(error))
    if error.status == 401:
        response.headers[hdrs.WWW_AUTHENTICATE] = f'Bearer realm="{SERVER_NAME}"'
    if error.retry_after is not None:
        response.headers[hdrs.RETRY_AFTER] = str(round(error.retry_after) or 1)
    if isinstance(error, TooManyConnects):
        response.headers.update(rate_limit_headers(error.allowance))
    return response


def problem_response(body: Json, status: int) -> web.Response:
    """A problem as an answer."""
    return web.Response(
        body=msgspec.json.encode(body), status=status, headers={**JSON_HEADERS, hdrs.CONTENT_TYPE: MEDIA_TYPE}
    )


def rate_limit_headers(allowance: ConnectAllowance) -> dict[str, str]:
    """What is left of the window, and when the next begins (seconds since 1970), in the headers of v2."""
    return {
        "x-rate-limit-limit": str(allowance.limit),
        "x-rate-limit-remaining": str(allowance.remaining),
        "x-rate-limit-reset": str(allowance.resets_at),
    }


def render_problem(error: ApiError) -> Json:
    """The body for ``error``."""
    if error.error_code == "too_many":
        return {"title": "RulesCapProblem", "detail": error.message, "type": PROBLEM_TYPE_PREFIX + "rule-cap"}
    if _v2_status(error) == 400:
        return _render_invalid_request(error)
    title = HTTPStatus(error.status).phrase
    return {"title": title, "detail": error.message, "type": "about:blank", "status": error.status}


def _v2_status(error: ApiError) -> int:
    """v2 has no words for what is too large or of another type: such a request is invalid."""
    return 400 if error.status in {406, 413, 415} else error.status


def _render_invalid_request(error: ApiError) -> Json:
    values = [error.value] if isinstance(error, InvalidValue) else []
    parameters = {} if error.param is None else {error.param: values}
    return {
        "errors": [{"parameters": parameters, "message": error.message}],
        "title": "Invalid Request",
        "detail": _INVALID_REQUEST_DETAIL,
        "type": PROBLEM_TYPE_PREFIX + "invalid-request",
    }
