"""Reads the query of a v2 request, and renders errors as v2 clients know them: problems (RFC 9457).

Unknown parameters are ignored, known ones are checked. The valid names of members of Tweets, users, places and media
are those of X's OpenAPI 2.167; other names are errors. A client may request a member that this server does not know.
Messages then lack it, as X's lack members without value.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import NamedTuple

from aiohttp import hdrs, web

from stream_server.errors import ApiError, BadRequest
from stream_server.events.one_line import encode_json
from stream_server.web.dialects.status_text import Json
from stream_server.web.http.query import query_of
from stream_server.web.http.responses import JSON_HEADERS, SERVER_NAME
from stream_server.web.limits.rate_limits import Allowance
from stream_server.web.route import Request

PROBLEM_TYPE_PREFIX = "https://api.twitter.com/2/problems/"
"""Prefix of all problem types. Clients compare the types as text."""

NO_RULES_PROBLEM: Json = {
    "title": "ConnectionException",
    "detail": "You must define rules using the POST /2/tweets/search/stream/rules endpoint before connecting.",
    "connection_issue": "RuleConfigurationIssue",
    "type": PROBLEM_TYPE_PREFIX + "streaming-connection",
}
"""Answer (with status 409) to a user who connects to the search stream without saved rules."""


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
    headers = {**JSON_HEADERS, hdrs.CONTENT_TYPE: "application/problem+json"}
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
        values = [error.value] if isinstance(error, InvalidValue) else []
        parameters = {} if error.param is None else {error.param: values}
        return {
            "errors": [{"parameters": parameters, "message": error.message}],
            "title": "Invalid Request",
            "detail": "One or more parameters to your request was invalid.",
            "type": PROBLEM_TYPE_PREFIX + "invalid-request",
        }
    title = HTTPStatus(error.status).phrase
    return {"title": title, "detail": error.message, "type": "about:blank", "status": error.status}


def _v2_status(error: ApiError) -> int:
    return 400 if error.status in {406, 413, 415} else error.status  # v2 does not have these three


def _split_names(names: str) -> frozenset[str]:
    return frozenset(names.split())


TWEET_FIELDS = _split_names(
    "article attachments author_id card_uri community_id context_annotations conversation_id created_at"
    " display_text_range edit_controls edit_history_tweet_ids entities geo id in_reply_to_user_id lang"
    " matched_media_notes media_metadata non_public_metrics note_request_suggestions note_tweet organic_metrics"
    " paid_partnership possibly_sensitive promoted_metrics public_metrics referenced_tweets reply_settings scopes"
    " source suggested_source_links suggested_source_links_with_counts text withheld"
)
USER_FIELDS = _split_names(
    "affiliation confirmed_email connection_status created_at description entities id is_identity_verified location"
    " most_recent_tweet_id name parody pinned_tweet_id profile_banner_url profile_image_url protected public_metrics"
    " receives_your_dm subscription subscription_type url username verified verified_followers_count verified_type"
    " withheld"
)
PLACE_FIELDS = _split_names("contained_within country country_code full_name geo id name place_type")
MEDIA_FIELDS = _split_names(
    "alt_text duration_ms height media_key non_public_metrics organic_metrics preview_image_url promoted_metrics"
    " public_metrics type url variants width"
)
POLL_FIELDS = _split_names("duration_minutes end_datetime id options voting_status")

DEFAULT_TWEET_FIELDS = frozenset({"id", "text", "edit_history_tweet_ids"})
DEFAULT_USER_FIELDS = frozenset({"id", "name", "username"})
DEFAULT_PLACE_FIELDS = frozenset({"id", "full_name"})
DEFAULT_MEDIA_FIELDS = frozenset({"media_key", "type"})

EXPANSIONS: dict[str, str] = {
    "article.cover_media": "article",
    "article.media_entities": "article",
    "attachments.media_keys": "attachments",
    "attachments.media_source_tweet": "attachments",
    "attachments.poll_ids": "attachments",
    "author_id": "author_id",
    "edit_history_tweet_ids": "edit_history_tweet_ids",
    "entities.mentions.username": "entities",
    "entities.note.mentions.username": "note_tweet",
    "geo.place_id": "geo",
    "in_reply_to_user_id": "in_reply_to_user_id",
    "referenced_tweets.id": "referenced_tweets",
    "referenced_tweets.id.attachments.media_keys": "referenced_tweets",
    "referenced_tweets.id.author_id": "referenced_tweets",
}
"""Each expansion and the Tweet's member that it expands. Requesting an expansion also requests that member."""


class FieldSelection(NamedTuple):
    """The requested members of Tweets, users, places and media. Equal selections share encoded messages."""

    tweet: frozenset[str] = DEFAULT_TWEET_FIELDS
    user: frozenset[str] = DEFAULT_USER_FIELDS
    place: frozenset[str] = DEFAULT_PLACE_FIELDS
    media: frozenset[str] = DEFAULT_MEDIA_FIELDS
    expansions: frozenset[str] = frozenset()


def read_fields(parameters: Mapping[str, str]) -> FieldSelection:
    """Return which members of Tweets, users, places and media the client asks for, with those that are always sent.

    Raises InvalidValue for an unknown name.
    """
    expansions = _read_names(parameters, "expansions", frozenset(EXPANSIONS))
    _read_names(parameters, "poll.fields", POLL_FIELDS)
    return FieldSelection(
        _read_names(parameters, "tweet.fields", TWEET_FIELDS)
        | DEFAULT_TWEET_FIELDS
        | {EXPANSIONS[expansion] for expansion in expansions},
        _read_names(parameters, "user.fields", USER_FIELDS) | DEFAULT_USER_FIELDS,
        _read_names(parameters, "place.fields", PLACE_FIELDS) | DEFAULT_PLACE_FIELDS,
        _read_names(parameters, "media.fields", MEDIA_FIELDS) | DEFAULT_MEDIA_FIELDS,
        expansions,
    )


def _read_names(parameters: Mapping[str, str], param: str, known: frozenset[str]) -> frozenset[str]:
    """Return the names in the comma-joined parameter ``param``. Raises InvalidValue for a name not in ``known``."""
    text = parameters.get(param)
    if text is None:
        return frozenset()
    names = frozenset(text.split(","))
    unknown = sorted(names - known)
    if unknown:
        raise InvalidValue(param, unknown[0], f"is not one of [{','.join(sorted(known))}]")
    return names


def read_v2_query(request: Request) -> dict[str, str]:
    """Return the query's parameters, each with its last value. Raises BadRequest for non-UTF-8 or over 200 pairs."""
    return dict(query_of(request).pairs)


def read_int(query_parameters: Mapping[str, str], name: str, default: int, minimum: int, maximum: int) -> int:
    """Return ``name`` as an integer, or ``default`` if absent. Raises InvalidValue if it is out of bounds."""
    text = query_parameters.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and minimum <= int(text) <= maximum):
        raise InvalidValue(name, text, f"is not between {minimum} and {maximum}")
    return int(text)


def read_bool(query_parameters: Mapping[str, str], name: str) -> bool:
    """Return the parameter ``name`` as a boolean, False if absent. Raises InvalidValue unless it is true or false."""
    text = query_parameters.get(name, "false").lower()
    if text not in {"true", "false"}:
        raise InvalidValue(name, text, "is not one of [true,false]")
    return text == "true"


PAGE_TOKEN_BYTES = 10
"""Bytes of a page token: 16 digits in base32hex, like Twitter's tokens."""


def encode_page_token(number: int) -> str:
    """Return the token of a page that goes on behind the id ``number``."""
    return base64.b32hexencode(number.to_bytes(PAGE_TOKEN_BYTES)).decode()


def decode_page_token(name: str, token: str) -> int:
    """Return the id behind which a page goes on. Raises InvalidValue, about ``name``, for another text."""
    try:
        number = base64.b32hexdecode(token)
    except (binascii.Error, ValueError):
        number = b""
    if len(number) != PAGE_TOKEN_BYTES:
        raise InvalidValue(name, token, "is not a valid pagination token")
    return int.from_bytes(number)


def read_time(query_parameters: Mapping[str, str], name: str) -> str:
    """Return the text of the parameter ``name``. Raises InvalidValue unless it is an ISO 8601 time in UTC."""
    text = query_parameters[name]
    is_time = re.fullmatch(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z", text, re.ASCII)
    try:
        datetime.fromisoformat(text if is_time else "no time")
    except ValueError:
        raise InvalidValue(name, text, "is not a time such as 2026-11-21T22:00:00Z") from None
    return text
