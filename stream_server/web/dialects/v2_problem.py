"""Refusals as v2 tells them: problems (RFC 9457) with the types, titles and members that its clients know."""

from http import HTTPStatus

import msgspec
from aiohttp import hdrs, web

from stream_server.errors import ApiError, BadRequest
from stream_server.store.connects import Allowance
from stream_server.web.answers import HEADERS, REALM
from stream_server.web.dialects.admission import TooOften
from stream_server.web.dialects.words import Json

PROBLEMS = "https://api.twitter.com/2/problems/"
"""Where the names of problems begin; clients compare them as they are."""

MEDIA_TYPE = "application/problem+json"

NO_RULES: Json = {
    "title": "ConnectionException",
    "detail": "You must define rules using the POST /2/tweets/search/stream/rules endpoint before connecting.",
    "connection_issue": "RuleConfigurationIssue",
    "type": PROBLEMS + "streaming-connection",
}
"""409 to who connects to the stream of rules without having any."""

_INVALID = "One or more parameters to your request was invalid."


class InvalidValue(BadRequest):
    """A parameter of the query that cannot be so; its name and value are repeated, with what is wrong."""

    def __init__(self, name: str, value: str, why: str) -> None:
        self.value = value[:64]
        super().__init__(f"The `{name}` query parameter value [{self.value}] {why}", param=name)


def refusal(error: ApiError) -> web.Response:
    """The answer for ``error``; who connected too often hears when they may again."""
    response = told(problem(error), _status(error))
    if error.status == 401:
        response.headers[hdrs.WWW_AUTHENTICATE] = f'Bearer realm="{REALM}"'
    if error.retry_after is not None:
        response.headers[hdrs.RETRY_AFTER] = str(round(error.retry_after) or 1)
    if isinstance(error, TooOften):
        response.headers.update(left(error.allowance))
    return response


def told(body: Json, status: int) -> web.Response:
    """A problem as an answer."""
    return web.Response(
        body=msgspec.json.encode(body), status=status, headers={**HEADERS, hdrs.CONTENT_TYPE: MEDIA_TYPE}
    )


def left(allowance: Allowance) -> dict[str, str]:
    """What is left of the window, and when the next begins (seconds since 1970), in the headers of v2."""
    return {
        "x-rate-limit-limit": str(allowance.most),
        "x-rate-limit-remaining": str(allowance.left),
        "x-rate-limit-reset": str(allowance.reset),
    }


def problem(error: ApiError) -> Json:
    """The body for ``error``."""
    if error.error_code == "too_many":
        return {"title": "RulesCapProblem", "detail": error.message, "type": PROBLEMS + "rule-cap"}
    if _status(error) == 400:
        return _invalid_request(error)
    title = HTTPStatus(error.status).phrase
    return {"title": title, "detail": error.message, "type": "about:blank", "status": error.status}


def _status(error: ApiError) -> int:
    """v2 has no words for what is too large or of another type: such a request is invalid."""
    return 400 if error.status in {406, 413, 415} else error.status


def _invalid_request(error: ApiError) -> Json:
    values = [error.value] if isinstance(error, InvalidValue) else []
    parameters = {} if error.param is None else {error.param: values}
    return {
        "errors": [{"parameters": parameters, "message": error.message}],
        "title": "Invalid Request",
        "detail": _INVALID,
        "type": PROBLEMS + "invalid-request",
    }
