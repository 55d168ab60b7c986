"""What a client of v1.1 asks for, as the parameters of ``/v1/stream``; what it may not ask is refused as it was there.

Names that are not known are passed over, since clients misspell some. An empty value is none.
"""

import math
import re
from collections.abc import Collection, Mapping

from aiohttp import web

from filters.location import MAX_BOXES
from stream_server.errors import BadRequest, NotAcceptable
from stream_server.web.dialects.v1_framing import V1FramingOptions
from stream_server.web.http.app_keys import CONFIG
from stream_server.web.streaming.parameters import read_stream_parameters
from stream_server.web.streaming.stream import STREAM_BODY_FACTOR, supports_chunked

V1_PARAMETERS = web.RequestKey("given", dict[str, str])
"""The parameters of the request, read once: the token may be among them."""

FILTER_PARAMETERS = ("track", "follow", "locations")

LIST_SEPARATORS = dict.fromkeys((*FILTER_PARAMETERS, "language"), ",")
"""Those that may be given in several pieces, and by what these are joined."""

FILTER_LEVELS = {"none": False, "low": False, "medium": True}
"""Of ``filter_level``, and whether that is more than any status here has."""

MAX_BACKFILL_COUNT = 150_000

PUBLIC_KINDS = {"kinds": "post,delete"}
"""Of all that happens, what v1.1 tells to everybody."""

_COUNT = re.compile(r"-?[0-9]{1,9}")
_IDS = re.compile(r"[0-9,\s]+")


async def read_v1_parameters(request: web.Request) -> dict[str, str]:
    """All parameters that have a value, from the query and from a form; a list that is given twice is a longer one."""
    if V1_PARAMETERS not in request:
        most_bytes = STREAM_BODY_FACTOR * request.app[CONFIG].body_max_bytes
        pairs = await read_stream_parameters(request, most_bytes, LIST_SEPARATORS)
        request[V1_PARAMETERS] = {name: value for name, value in pairs.items() if value}
    return request[V1_PARAMETERS]


def read_framing_options(request: web.Request, stream: str, parameters: Mapping[str, str]) -> V1FramingOptions:
    """How the client wants to be answered; what is neither of the documented values is off."""
    return V1FramingOptions(
        stream,
        delimited=parameters.get("delimited", "").lower() == "length",
        stall_warnings=parameters.get("stall_warnings", "").lower() == "true",
        chunked=supports_chunked(request),
    )


def read_predicates(parameters: Mapping[str, str]) -> dict[str, str]:
    """What ``statuses/filter`` asks for; raises NotAcceptable where that is nothing, or nothing that can be."""
    asked = {name: parameters[name] for name in FILTER_PARAMETERS if name in parameters}
    if not asked:
        raise NotAcceptable("No filter parameters found. Expect at least one parameter: follow track locations")
    if not _IDS.fullmatch(asked.get("follow", "0")):
        raise NotAcceptable("follow takes user ids, which are numbers", param="follow")
    _check_boxes(asked.get("locations", "").split(","))
    return asked


def common_filters(parameters: Mapping[str, str]) -> dict[str, str]:
    """What goes for all streams beside what they are of."""
    return PUBLIC_KINDS | ({"language": parameters["language"]} if "language" in parameters else {})


def excludes_all_statuses(parameters: Mapping[str, str]) -> bool:
    """Whether ``filter_level`` is higher than that of any status here; raises NotAcceptable for what is none."""
    asked = parameters.get("filter_level", "none").lower()
    if asked not in FILTER_LEVELS:
        raise NotAcceptable(f"filter_level is one of {', '.join(FILTER_LEVELS)}", param="filter_level")
    return FILTER_LEVELS[asked]


def read_count(parameters: Mapping[str, str], scopes: Collection[str]) -> int:
    """How many statuses from before are wanted first, below 0 if no others are; raises BadRequest naming it."""
    text = parameters.get("count")
    if text is None:
        return 0
    if "firehose" not in scopes:
        raise BadRequest("count needs the scope firehose", param="count")
    asked = int(text) if _COUNT.fullmatch(text) else 0
    if not 1 <= abs(asked) <= MAX_BACKFILL_COUNT:
        raise BadRequest(
            f"count is a number from 1 to {MAX_BACKFILL_COUNT}, or from -1 to -{MAX_BACKFILL_COUNT}", param="count"
        )
    return asked


def _check_boxes(numbers: list[str]) -> None:
    """A box over the date line is none there; all else that can be wrong with boxes is told by the filter."""
    if len(numbers) % 4 or len(numbers) > 4 * MAX_BOXES or not all(map(_is_number, numbers)):
        return
    for at in range(0, len(numbers), 4):
        told = ", ".join(number.strip() for number in numbers[at : at + 4])
        west, south, east, north = map(float, numbers[at : at + 4])
        if max(abs(west), abs(east)) > 180 or max(abs(south), abs(north)) > 90:
            raise NotAcceptable(f"Latitude/longitude are not valid: {told}", param="locations")
        if west >= east or south >= north:
            message = f"Bounding box is invalid: {told}. The first pair must be the SW corner of the box"
            raise NotAcceptable(message, param="locations")


def _is_number(text: str) -> bool:
    """More than the filter takes for one: what is none for it, it refuses."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
