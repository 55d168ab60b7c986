"""Reading a query as one of the shapes: nothing unknown, nothing twice, and only UTF-8 in it."""

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

TOKEN_PARAMETERS = frozenset({"access_token", "token"})
"""Names under which clients have put tokens into URLs, which end in logs and histories of browsers."""

_NUMBER_PATTERN = re.compile(r"[0-9]{1,9}")
_ID_PATTERN = re.compile(r"[0-9]{1,20}")


def query_pairs(request: web.Request) -> list[tuple[str, str]]:
    """The query's names and values; raises BadRequest where it is not UTF-8."""
    return parse_pairs(request.rel_url.raw_query_string)


def parse_pairs(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=200)
    except UnicodeDecodeError:
        message = "percent-encoded bytes are not UTF-8"
    except ValueError:
        message = "too many parameters"
    raise BadRequest(message, code="malformed_body")


def check_parameter_names(request: web.Request, route: Route) -> None:
    """Raises BadRequest for a parameter that the route does not know, or that is given twice."""
    if not request.rel_url.raw_query_string:
        return
    known = None if route.query is None else _parameter_readers(route.query)
    names = [name for name, _ in query_pairs(request)]
    for name in names:
        if name in TOKEN_PARAMETERS:
            raise _unknown_parameter(name, "a token goes into the Authorization header, never into a URL")
        if known is not None and name not in known:
            raise _unknown_parameter(name, "no such parameter here")
    if known is not None and len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadRequest("given twice", param=twice)


def _unknown_parameter(name: str, message: str) -> BadRequest:
    return BadRequest(message, code="unknown_parameter", param=name[:64])


def read_query(request: web.Request, query_type: type[QueryType]) -> QueryType:
    """The query, which :func:`check_parameter_names` has passed, as a ``query_type``; raises ApiError naming the parameter."""
    readers = _parameter_readers(query_type)
    parameters = {name: readers[name](name, text) for name, text in query_pairs(request)}
    for name in _required_parameters(query_type):
        if name not in parameters:
            raise _missing_parameter(name)
    try:
        return msgspec.convert(parameters, query_type)
    except msgspec.ValidationError as error:
        refused = to_api_error(str(error), query_type)
        refused.param = (refused.param or "").partition("[")[0] or None  # an item of a list is no parameter
        raise refused from None


def parsed_query(request: web.Request, query_type: type[QueryType]) -> QueryType:
    """The request's query; ``query_type`` is what its row in the table says."""
    query = request[QUERY]
    if not isinstance(query, query_type):
        raise TypeError(f"the row of this route says {type(query).__name__}, its handler {query_type.__name__}")
    return query


def read_path_id(request: web.Request, name: str = "id") -> str:
    """The id that stands for ``{name}`` in the path; raises BadRequest where it is none."""
    text = request.match_info[name]
    if not _ID_PATTERN.fullmatch(text):
        raise BadRequest("an id is a decimal number; `me` stands for one only where the path says so", param=name)
    return text


ParameterReader = Callable[[str, str], Any]
"""From a parameter's name and text to a value of its type; raises BadRequest where it is none."""


@cache
def _parameter_readers(query_type: type[msgspec.Struct]) -> dict[str, ParameterReader]:
    """How each parameter of a ``query_type`` is read."""
    shape = inspect.type_info(query_type)
    if not isinstance(shape, inspect.StructType):
        raise TypeError(f"{query_type.__name__} is no struct")
    return {field.encode_name: _reader_for_type(field.type, required=field.required) for field in shape.fields}


@cache
def _required_parameters(query_type: type[msgspec.Struct]) -> tuple[str, ...]:
    """The parameters that a ``query_type`` cannot do without; looked up once, as that leaves garbage in circles."""
    return tuple(field.encode_name for field in msgspec.structs.fields(query_type) if field.required)


def _reader_for_type(type_: inspect.Type, *, required: bool) -> ParameterReader:
    """By the type alone: left to itself, msgspec would take `null` and `5.0` for numbers too."""
    a_list = _read_list if required else _read_optional_list
    readers: dict[type, ParameterReader] = {
        inspect.IntType: _read_number,
        inspect.BoolType: _read_bool,
        inspect.ListType: a_list,
    }
    return next((readers[type(one)] for one in _leaf_types(type_) if type(one) in readers), _read_text)


def _leaf_types(type_: inspect.Type) -> Iterator[inspect.Type]:
    """The types of a union, and what metadata stands around."""
    if isinstance(type_, inspect.Metadata):
        yield from _leaf_types(type_.type)
    elif isinstance(type_, inspect.UnionType):
        for one in type_.types:
            yield from _leaf_types(one)
    else:
        yield type_


def _read_number(name: str, text: str) -> int:
    if not _NUMBER_PATTERN.fullmatch(text):
        raise BadRequest("a whole number of at most 9 digits", param=name)
    return int(text)


def _read_bool(name: str, text: str) -> bool:
    if text not in {"true", "false"}:
        raise BadRequest("true or false", param=name)
    return text == "true"


def _read_list(name: str, text: str) -> list[str]:
    if not text:
        raise _missing_parameter(name)
    return text.split(",")


def _read_optional_list(name: str, text: str) -> list[str]:
    if not text:
        raise BadRequest("empty: leave it out instead", param=name)
    return text.split(",")


def _read_text(name: str, text: str) -> str:  # noqa: ARG001 - a reader's signature
    return text


def _missing_parameter(name: str) -> BadRequest:
    return BadRequest("this parameter is needed", code="missing_parameter", param=name)
