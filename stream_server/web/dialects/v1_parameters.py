"""Reads the token and the parameters of v1.1, and translates the parameters into those of ``/v1/stream``.

Errors have the texts and statuses of v1.1. Unknown names are ignored, because some clients misspell names. An empty
value counts as absent.
"""

import math
import re
from collections.abc import Collection, Mapping
from urllib.parse import unquote

from aiohttp import web

from filters.location import MAX_BOXES
from stream_server.errors import BadRequest, NotAcceptable
from stream_server.web.dialects.v1_framing import V1FramingOptions
from stream_server.web.streaming.parameters import read_stream_parameters
from stream_server.web.streaming.stream import supports_chunked

V1_PARAMETERS = web.RequestKey("v1_parameters", dict[str, str])
"""The request's parameters, read once. Authentication may need them before the handler, to find the token."""

FILTER_PARAMETERS = ("track", "follow", "locations")

LIST_SEPARATORS = dict.fromkeys((*FILTER_PARAMETERS, "language"), ",")
"""Parameters that a client may repeat, and the separator that joins their values."""

FILTER_LEVELS = {"none": False, "low": False, "medium": True}
"""Values of ``filter_level``, and whether the value excludes all statuses of this server."""

MAX_BACKFILL_COUNT = 150_000
"""Most earlier statuses that a client may request with ``count``."""

PUBLIC_KINDS = {"kinds": "post,delete"}
"""The kinds of entries that Twitter's public v1.1 streams send."""

TOKEN_PARAMETER = "oauth_token"  # noqa: S105 - the name of a parameter
"""Parameter of OAuth 1.0a (RFC 5849 §3.5) that carries an access token of this server, which is sufficient proof.

The server ignores the signature, because it never issues the two secrets that a signature proves.
"""

_HEADER_PARAMETER = re.compile(r'(?<![a-z_])([a-z_]{1,40})\s*=\s*"([^"]*)"')
_COUNT = re.compile(r"-?[0-9]{1,9}")
_IDS = re.compile(r"[0-9,\s]+")


async def read_v1_parameters(request: web.Request) -> dict[str, str]:
    """Return the nonempty parameters of the query and the form. Repeated list parameters are joined with commas."""
    if V1_PARAMETERS not in request:
        pairs = await read_stream_parameters(request, LIST_SEPARATORS)
        request[V1_PARAMETERS] = {name: value for name, value in pairs.items() if value}
    return request[V1_PARAMETERS]


def read_framing_options(request: web.Request, stream: str, parameters: Mapping[str, str]) -> V1FramingOptions:
    """Return the message format that the client requests. An option with an unknown value counts as off."""
    delimited = parameters.get("delimited", "").lower() == "length"
    stall_warnings = parameters.get("stall_warnings", "").lower() == "true"
    return V1FramingOptions(stream, delimited, stall_warnings, supports_chunked(request))


def read_predicates(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the filters track, follow and locations. Raises NotAcceptable if all are absent or one is invalid."""
    filters = {name: parameters[name] for name in FILTER_PARAMETERS if name in parameters}
    if not filters:
        raise NotAcceptable("No filter parameters found. Expect at least one parameter: follow track locations")
    if not _IDS.fullmatch(filters.get("follow", "0")):
        raise NotAcceptable("follow must be a list of numeric user ids", param="follow")
    _check_boxes(filters.get("locations", "").split(","))
    return filters


def common_filters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the filters of every v1.1 stream: the kinds ``post`` and ``delete``, and ``language`` if requested."""
    return PUBLIC_KINDS | ({"language": parameters["language"]} if "language" in parameters else {})


def excludes_all_statuses(parameters: Mapping[str, str]) -> bool:
    """Whether no status of this server has the ``filter_level``. Raises NotAcceptable if Twitter has no such level."""
    level = parameters.get("filter_level", "none").lower()
    if level not in FILTER_LEVELS:
        raise NotAcceptable(f"filter_level must be one of {', '.join(FILTER_LEVELS)}", param="filter_level")
    return FILTER_LEVELS[level]


def read_count(parameters: Mapping[str, str], scopes: Collection[str]) -> int:
    """Return the parameter ``count``, or 0 if absent. The stream starts ``abs(count)`` posts before the head.

    A stream with a negative count ends at the head. A count of 0 is no count: Twitter4J sends it with each filter.
    Raises BadRequest for another count that is out of bounds, or that comes with a token without the scope
    ``firehose``.
    """
    text = parameters.get("count", "0")
    count = int(text) if _COUNT.fullmatch(text) else None
    if count == 0:
        return 0
    if "firehose" not in scopes:
        raise BadRequest("count needs the scope firehose", param="count")
    if count is None or abs(count) > MAX_BACKFILL_COUNT:
        bounds = f"from 1 to {MAX_BACKFILL_COUNT}, or from -1 to -{MAX_BACKFILL_COUNT}"
        raise BadRequest(f"count must be a number {bounds}", param="count")
    return count


def _check_boxes(numbers: list[str]) -> None:
    """Raise NotAcceptable, as v1.1 does, if a box of ``locations`` has invalid degrees or crosses longitude 180."""
    if len(numbers) % 4 or len(numbers) > 4 * MAX_BOXES or not all(map(_is_number, numbers)):
        return
    for start in range(0, len(numbers), 4):
        box = ", ".join(number.strip() for number in numbers[start : start + 4])
        west, south, east, north = map(float, numbers[start : start + 4])
        if max(abs(west), abs(east)) > 180 or max(abs(south), abs(north)) > 90:
            raise NotAcceptable(f"Latitude/longitude are not valid: {box}", param="locations")
        if west >= east or south >= north:
            message = f"Bounding box is invalid: {box}. The first pair must be the SW corner of the box"
            raise NotAcceptable(message, param="locations")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def find_token(authorization: str, parameters: Mapping[str, str]) -> str | None:
    """Return the token in the Authorization header or, if that is absent, ``oauth_token``. None if both are absent."""
    scheme, _, credentials = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip() or None
    if scheme.lower() == "oauth":
        return _token_in_header(credentials) or None
    return None if scheme else parameters.get(TOKEN_PARAMETER) or None


def _token_in_header(credentials: str) -> str | None:
    """Return ``oauth_token`` from the ``name="value"`` pairs of an OAuth Authorization header, or None if absent."""
    pairs = _HEADER_PARAMETER.findall(credentials)
    return next((unquote(value) for name, value in pairs if name == TOKEN_PARAMETER), None)
