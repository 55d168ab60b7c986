"""Parses a query string into a msgspec struct: each parameter known, at most once, and in UTF-8."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web
from msgspec import inspect

from stream_server.errors import BadRequest
from stream_server.web.http.app_keys import QUERY
from stream_server.web.http.validation import to_api_error
from stream_server.web.route import Route

QueryType = TypeVar("QueryType", bound=msgspec.Struct)
"""A struct that describes the parameters of a query."""

TOKEN_PARAMETERS = frozenset({"access_token", "token"})
"""Names under which clients have put tokens into URLs.

The server refuses them, because URLs end in logs and browser histories.
"""

_NUMBER_PATTERN = re.compile(r"[0-9]{1,9}")
_ID_PATTERN = re.compile(r"[0-9]{1,20}")


def query_pairs(request: web.Request) -> list[tuple[str, str]]:
    """Return the names and values of the query, in order. Raises BadRequest if they are not UTF-8 or more than 200."""
    return parse_pairs(request.rel_url.raw_query_string)


def parse_pairs(text: str) -> list[tuple[str, str]]:
    """Parse `name=value&…`, as in a query or a form.

    Raises BadRequest if it is not UTF-8 or has more than 200 parameters.
    """
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=200)
    except UnicodeDecodeError:
        message = "percent-encoded bytes are not UTF-8"
    except ValueError:
        message = "too many parameters"
    raise BadRequest(message, code="malformed_body")


def check_parameter_names(request: web.Request, route: Route) -> None:
    """Raise BadRequest for a token in the URL, an unknown parameter, or a repeated one.

    If the handler reads the query itself, check only for tokens.
    """
    if not request.rel_url.raw_query_string:
        return
    known = None if route.query is None else _parameter_readers(route.query)
    names = [name for name, _ in query_pairs(request)]
    for name in names:
        if name in TOKEN_PARAMETERS:
            raise _unknown_parameter(name, "a token goes into the Authorization header, never into a URL")
        if known is not None and name not in known:
            raise _unknown_parameter(name, "unknown parameter")
    if known is not None and len(set(names)) != len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise BadRequest("given more than once", param=repeated)


def _unknown_parameter(name: str, message: str) -> BadRequest:
    """Build the error for a parameter that the route does not accept; keep at most 64 characters of its name."""
    return BadRequest(message, code="unknown_parameter", param=name[:64])


def read_query(request: web.Request, query_type: type[QueryType]) -> QueryType:
    """Parse the query into a ``query_type``, after :func:`check_parameter_names` accepted its names.

    Raises an ApiError that names the parameter which is missing or invalid.
    """
    readers = _parameter_readers(query_type)
    parameters = {name: readers[name](name, text) for name, text in query_pairs(request)}
    for name in _required_parameters(query_type):
        if name not in parameters:
            raise _missing_parameter(name)
    try:
        return msgspec.convert(parameters, query_type)
    except msgspec.ValidationError as error:
        refusal = to_api_error(str(error), query_type)
        refusal.param = (refusal.param or "").partition("[")[0] or None  # name the list, not its item
        raise refusal from None


def parsed_query(request: web.Request, query_type: type[QueryType]) -> QueryType:
    """Return the request's parsed query.

    ``query_type`` must be the type that the route's row declares, else TypeError.
    """
    query = request[QUERY]
    if not isinstance(query, query_type):
        raise TypeError(f"the route declares the query {type(query).__name__}, its handler reads {query_type.__name__}")
    return query


def read_path_id(request: web.Request, name: str = "id") -> str:
    """Return the id at ``{name}`` in the path. Raises BadRequest unless it has 1 to 20 decimal digits."""
    text = request.match_info[name]
    if not _ID_PATTERN.fullmatch(text):
        raise BadRequest("an id is a decimal number; this path does not accept `me`", param=name)
    return text


ParameterReader = Callable[[str, str], Any]
"""Converts the text of a parameter to its type; takes name and text. Raises BadRequest if the text is invalid."""


@cache
def _parameter_readers(query_type: type[msgspec.Struct]) -> dict[str, ParameterReader]:
    """Return the reader of each parameter of ``query_type``, by the parameter's name."""
    shape = inspect.type_info(query_type)
    if not isinstance(shape, inspect.StructType):
        raise TypeError(f"{query_type.__name__} is not a msgspec.Struct")
    return {field.encode_name: _reader_for_type(field.type, required=field.required) for field in shape.fields}


@cache
def _required_parameters(query_type: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of the required parameters of ``query_type``.

    Cached, because msgspec's inspection leaves reference cycles behind.
    """
    return tuple(field.encode_name for field in msgspec.structs.fields(query_type) if field.required)


def _reader_for_type(type_: inspect.Type, *, required: bool) -> ParameterReader:
    """Return the reader for the type of a parameter.

    msgspec's own conversion from text would accept `null` and `5.0` as numbers.
    """
    read_list = _read_list if required else _read_optional_list
    readers: dict[type, ParameterReader] = {
        inspect.IntType: _read_number,
        inspect.BoolType: _read_bool,
        inspect.ListType: read_list,
    }
    return next((readers[type(leaf)] for leaf in _leaf_types(type_) if type(leaf) in readers), _read_text)


def _leaf_types(type_: inspect.Type) -> Iterator[inspect.Type]:
    """Yield the member types of a union, without optional metadata around them."""
    if isinstance(type_, inspect.Metadata):
        yield from _leaf_types(type_.type)
    elif isinstance(type_, inspect.UnionType):
        for member in type_.types:
            yield from _leaf_types(member)
    else:
        yield type_


def _read_number(name: str, text: str) -> int:
    """Parse a whole number of at most 9 digits."""
    if not _NUMBER_PATTERN.fullmatch(text):
        raise BadRequest("a whole number of at most 9 digits", param=name)
    return int(text)


def _read_bool(name: str, text: str) -> bool:
    """Parse `true` or `false`."""
    if text not in {"true", "false"}:
        raise BadRequest("true or false", param=name)
    return text == "true"


def _read_list(name: str, text: str) -> list[str]:
    """Split a comma-separated list. An empty text counts as a missing parameter."""
    if not text:
        raise _missing_parameter(name)
    return text.split(",")


def _read_optional_list(name: str, text: str) -> list[str]:
    """Split a comma-separated list. Raises BadRequest for an empty text."""
    if not text:
        raise BadRequest("empty; omit it instead", param=name)
    return text.split(",")


def _read_text(name: str, text: str) -> str:  # noqa: ARG001 - the signature of a ParameterReader
    """Return the text unchanged."""
    return text


def _missing_parameter(name: str) -> BadRequest:
    """Build the error for a required parameter that is absent."""
    return BadRequest("this parameter is required", code="missing_parameter", param=name)
