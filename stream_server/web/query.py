"""Reading a query as one of the shapes: nothing unknown, nothing twice, and only UTF-8 in it."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from msgspec import inspect

from stream_server.errors import BadRequest
from stream_server.web.keys import QUERY
from stream_server.web.parameters import query_pairs
from stream_server.web.route import Route
from stream_server.web.schema import refusal_of

Kind = TypeVar("Kind", bound=msgspec.Struct)

TOKENS = frozenset({"access_token", "token"})
"""Names under which clients have put tokens into URLs, which end in logs and histories of browsers."""

_NUMBER = re.compile(r"[0-9]{1,9}")
_ID = re.compile(r"[0-9]{1,20}")


def check_query(request: web.Request, route: Route) -> None:
    """Raises BadRequest for a parameter that the route does not know, or that is given twice."""
    if not request.rel_url.raw_query_string:
        return
    known = None if route.query is None else _readers(route.query)
    names = [name for name, _ in query_pairs(request)]
    for name in names:
        if name in TOKENS:
            raise _unknown(name, "a token goes into the Authorization header, never into a URL")
        if known is not None and name not in known:
            raise _unknown(name, "no such parameter here")
    if known is not None and len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadRequest("given twice", param=twice)


def _unknown(name: str, message: str) -> BadRequest:
    return BadRequest(message, code="unknown_parameter", param=name[:64])


def read_query(request: web.Request, kind: type[Kind]) -> Kind:
    """The query, which :func:`check_query` has passed, as a ``kind``; raises ApiError naming the parameter."""
    readers = _readers(kind)
    parameters = {name: readers[name](name, text) for name, text in query_pairs(request)}
    for name in _required(kind):
        if name not in parameters:
            raise _missing(name)
    try:
        return msgspec.convert(parameters, kind)
    except msgspec.ValidationError as error:
        refused = refusal_of(str(error), kind)
        refused.param = (refused.param or "").partition("[")[0] or None  # an item of a list is no parameter
        raise refused from None


def given(request: web.Request, kind: type[Kind]) -> Kind:
    """The request's query; ``kind`` is what its row in the table says."""
    query = request[QUERY]
    if not isinstance(query, kind):
        raise TypeError(f"the row of this route says {type(query).__name__}, its handler {kind.__name__}")
    return query


def path_id(request: web.Request, name: str = "id") -> str:
    """The id that stands for ``{name}`` in the path; raises BadRequest where it is none."""
    text = request.match_info[name]
    if not _ID.fullmatch(text):
        raise BadRequest("an id is a decimal number; `me` stands for one only where the path says so", param=name)
    return text


Reader = Callable[[str, str], Any]
"""From a parameter's name and text to a value of its type; raises BadRequest where it is none."""


@cache
def _readers(kind: type[msgspec.Struct]) -> dict[str, Reader]:
    """How each parameter of a ``kind`` is read."""
    shape = inspect.type_info(kind)
    if not isinstance(shape, inspect.StructType):
        raise TypeError(f"{kind.__name__} is no struct")
    return {field.encode_name: _reader(field.type, required=field.required) for field in shape.fields}


@cache
def _required(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The parameters that a ``kind`` cannot do without; looked up once, as that leaves garbage in circles."""
    return tuple(field.encode_name for field in msgspec.structs.fields(kind) if field.required)


def _reader(type_: inspect.Type, *, required: bool) -> Reader:
    """By the type alone: left to itself, msgspec would take `null` and `5.0` for numbers too."""
    a_list = _list if required else _list_if_any
    readers: dict[type, Reader] = {inspect.IntType: _number, inspect.BoolType: _truth, inspect.ListType: a_list}
    return next((readers[type(one)] for one in _leaves(type_) if type(one) in readers), _text)


def _leaves(type_: inspect.Type) -> Iterator[inspect.Type]:
    """The types of a union, and what metadata stands around."""
    if isinstance(type_, inspect.Metadata):
        yield from _leaves(type_.type)
    elif isinstance(type_, inspect.UnionType):
        for one in type_.types:
            yield from _leaves(one)
    else:
        yield type_


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadRequest("a whole number of at most 9 digits", param=name)
    return int(text)


def _truth(name: str, text: str) -> bool:
    if text not in {"true", "false"}:
        raise BadRequest("true or false", param=name)
    return text == "true"


def _list(name: str, text: str) -> list[str]:
    if not text:
        raise _missing(name)
    return text.split(",")


def _list_if_any(name: str, text: str) -> list[str]:
    if not text:
        raise BadRequest("empty: leave it out instead", param=name)
    return text.split(",")


def _text(name: str, text: str) -> str:  # noqa: ARG001 - a reader's signature
    return text


def _missing(name: str) -> BadRequest:
    return BadRequest("this parameter is needed", code="missing_parameter", param=name)
