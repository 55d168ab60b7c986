"""Reads the parameters of a stream from the query, a form or a JSON object. Each parameter becomes one text."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from stream_server.errors import BadRequest, UnsupportedMediaType
from stream_server.web.http.authentication import TICKET_PARAMETER
from stream_server.web.http.body import MAX_BODY_BYTES, decode_object, read_body, read_content_type
from stream_server.web.http.query import parse_pairs, query_of
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.route import JSON_MEDIA_TYPE, Request

LAST_EVENT_ID_PARAMETER = "lastEventId"
"""Query parameter to which polyfills of EventSource append the cursor of the last event that they received."""

OF_ONE_REQUEST = frozenset({LAST_EVENT_ID_PARAMETER, TICKET_PARAMETER})
"""Parameters of a query that are no filters, and differ each time."""

FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"
T = TypeVar("T")


async def read_stream_parameters(
    request: Request, separators: Mapping[str, str], read: Callable[[dict[str, str]], T], *, in_turn: bool = False
) -> T:
    """Read all parameters of a stream's request, and return the result of ``read`` for them.

    The parameters of a POST are parsed and read in one turn of its sender, who pays for the time, when the body has
    come. With ``in_turn``, so are those of other methods. The ticket of a GET or HEAD request, and ``lastEventId`` in
    the query, are left out: other functions read them. ``separators`` maps each parameter that may be repeated to the
    text that joins its values.

    Raises BadRequest if another parameter is repeated, or if a value is neither text, number, boolean nor list. Raises
    UnsupportedMediaType for another body than a form or JSON, RateLimited if the turn does not come soon, and what
    ``read`` raises.
    """
    parse: Callable[[], dict[str, str]] = partial(read_query_parameters, request, separators)
    if request.method == "POST":
        parse = await _receive_parameters(request, separators)
    elif not in_turn:
        return read(parse())
    return await request.app[LIMITS].payer(request).run_in_turn(lambda: read(parse()))


def read_query_parameters(request: Request, separators: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a stream's GET or HEAD request, as `read_stream_parameters` does."""
    return join_parameters([pair for pair in query_of(request).pairs if pair[0] not in OF_ONE_REQUEST], separators)


def join_parameters(pairs: Sequence[tuple[str, str]], separators: Mapping[str, str]) -> dict[str, str]:
    """Return one text for each parameter. Raises BadRequest if one is repeated that has no separator."""
    parameters = dict(pairs)
    if len(parameters) == len(pairs):
        return parameters
    parameters.clear()
    for name, value in pairs:
        if name in parameters and name in separators:
            parameters[name] += separators[name] + value
            continue
        if name in parameters:
            raise BadRequest(
                "given more than once; join values with a comma", code="conflicting_parameters", param=name
            )
        parameters[name] = value
    return parameters


async def _receive_parameters(request: Request, separators: Mapping[str, str]) -> Callable[[], dict[str, str]]:
    """Read the body of a POST, if it has one. Return a function that parses the query and this form or JSON."""
    media_type, body = "", b""
    if request.body_exists:
        media_type = read_content_type(request).media_type
        if media_type not in {FORM_MEDIA_TYPE, JSON_MEDIA_TYPE}:
            raise UnsupportedMediaType(f"send {FORM_MEDIA_TYPE} or {JSON_MEDIA_TYPE}", param="Content-Type")
        body = await read_body(request, 4 * MAX_BODY_BYTES)  # more than a write's, because 5,000 ids take 90 KB

    def parse() -> dict[str, str]:
        pairs = [pair for pair in query_of(request).pairs if pair[0] != LAST_EVENT_ID_PARAMETER]
        if media_type == FORM_MEDIA_TYPE:
            try:
                pairs += parse_pairs(body.decode("utf-8-sig"))
            except UnicodeDecodeError:
                raise BadRequest("the form is not UTF-8", code="malformed_body") from None
        elif media_type:
            pairs += member_pairs(decode_object(body, "body"), separators)
        return join_parameters(pairs, separators)

    return parse


def member_pairs(members: Mapping[str, object], separators: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield the members of a decoded JSON object as parameters, without null members. Raises BadRequest for nesting."""
    for name, value in members.items():
        if value is not None:
            yield name, _to_parameter_text(name, value, separators.get(name, ","))


def _to_parameter_text(name: str, value: object, separator: str = ",") -> str:
    """Return a JSON value as a query parameter's text: ``["a", "b"]`` becomes ``a,b``. Nesting raises BadRequest."""
    if isinstance(value, list) and not any(isinstance(item, list | dict) for item in value):
        return separator.join(_to_parameter_text(name, item) for item in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise BadRequest("must be a string, a number, a boolean, or a list of these", param=name)
