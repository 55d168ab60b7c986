"""Parses a query string into a msgspec struct. Each parameter must be known, occur at most once, and be UTF-8."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import msgspec
from aiohttp import web
from msgspec import inspect

from filters.suggestion import did_you_mean
from stream_server.errors import BadRequest
from stream_server.web.http.app_keys import QUERY
from stream_server.web.http.validation import to_api_error
from stream_server.web.route import Request, Route

QueryType = TypeVar("QueryType", bound=msgspec.Struct)

MAX_KEPT_QUERIES = 8192
MAX_KEPT_QUERY_CHARS = 512
"""Longest query of a request whose pairs are kept, in characters. All that are kept take 16 MB at most."""

MAX_KEPT_STRUCT_CHARS = 32
"""Longest query whose struct is kept. Clients repeat such queries, as `count=30`; those with a cursor are longer."""

_QUERY: "web.RequestKey[Query]" = web.RequestKey("parsed_query")
"""The parsed query of a request."""

TOKEN_PARAMETERS = frozenset({"access_token", "token"})
"""Query parameters in which clients may try to send a token. The server refuses them, because logs keep URLs."""

MAX_PAIRS = 200
"""Most parameters of a query or a form."""

_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_CARRIAGE_RETURN = re.compile(r"(?:%0[Dd]|\r)(?:%0[Aa]|\n)?")
_NUMBER_PATTERN = re.compile(r"[0-9]{1,9}")
_ONCE_PATTERN = re.compile("token|ticket|since|cursor|lastEventId|(?:^|&)[^=&]*%")
"""Finds a query that comes once, or may: with a secret or a place on the log. An escape may hide a name: `t%69cket`."""

_ID_PATTERN = re.compile(r"[0-9]{1,20}")


class Query(NamedTuple):
    """A query: its (name, value) pairs and their names, in order."""

    pairs: tuple[tuple[str, str], ...]
    names: tuple[str, ...]

    def values(self, name: str) -> Sequence[str]:
        """Return the values of a parameter, in order."""
        return [value for each, value in self.pairs if each == name]


def query_of(request: Request) -> Query:
    """Return the query of a request. Raises BadRequest for non-UTF-8 or over 200 pairs.

    The query is parsed once for a request, although several checks of a stream read it. Clients send the same short
    queries again, so the last ones are kept. Those with a token or a ticket are not: no memory keeps secrets. Nor are
    those with a place on the log, which would drive the others out when many clients return.
    """
    if _QUERY in request:
        return request[_QUERY]
    text = request.rel_url.raw_query_string
    is_kept = len(text) <= MAX_KEPT_QUERY_CHARS and _ONCE_PATTERN.search(text) is None
    query = request[_QUERY] = _parse_again(text) if is_kept else _parse(text)
    return query


def _parse(text: str) -> Query:
    pairs = parse_pairs(text)
    return Query(tuple(pairs), tuple([name for name, _ in pairs]))


_parse_again = lru_cache(MAX_KEPT_QUERIES)(_parse)
"""Parses a query that may come again."""


def parse_pairs(text: str) -> list[tuple[str, str]]:
    """Return the (name, value) pairs of a form such as `a=1&b=2`, in which CR LF and CR become LF.

    Raises BadRequest for non-UTF-8 or over 200 pairs. The pairs are those of the URL standard (§5.1), and the time is
    linear with few steps of Python: `parse_qsl` takes one for each `%`, and a form of 256 KiB would hold the event loop
    for 70 ms.
    """
    if text.count("&") >= MAX_PAIRS:
        raise BadRequest("too many parameters", code="malformed_body")
    text = _CARRIAGE_RETURN.sub("%0A", text)
    pairs = (pair.partition("=") for pair in text.split("&") if pair)
    if "%" not in text and "+" not in text:
        return [(name, value) for name, _, value in pairs]
    try:
        return [(_decode(name), _decode(value)) for name, _, value in pairs]
    except UnicodeDecodeError:
        raise BadRequest("percent-encoded bytes are not UTF-8", code="malformed_body") from None


def _decode(text: str) -> str:
    """Return a name or a value without its escapes. A `%` without two hexadecimal digits stands for itself."""
    text = text.replace("+", " ")
    if "%" not in text:
        return text
    return _ESCAPES.sub(lambda escapes: bytes.fromhex(escapes[0].replace("%", "")).decode(), text)


def check_parameter_names(request: Request, route: Route) -> None:
    """Raise BadRequest for a token in the URL and, if the route declares a query, for unknown or repeated names."""
    known, names = None if route.query is None else _shape_of(route.query).readers, query_of(request).names
    if known is None and TOKEN_PARAMETERS.isdisjoint(names):
        return
    for name in names:
        if name in TOKEN_PARAMETERS:
            raise _unknown_parameter(name, "a token goes into the Authorization header, never into a URL")
        if known is not None and name not in known:
            raise _unknown_parameter(name, f"unknown parameter{did_you_mean(name, known)}")
    if known is not None and len(set(names)) != len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise BadRequest("given more than once", param=repeated)


def _unknown_parameter(name: str, message: str) -> BadRequest:
    return BadRequest(message, code="unknown_parameter", param=name[:64])


def read_query(request: Request, query_type: type[QueryType]) -> QueryType:
    """Parse the query into a ``query_type``. Raises an ApiError that names a missing or invalid parameter."""
    text = request.rel_url.raw_query_string
    if len(text) <= MAX_KEPT_STRUCT_CHARS and _shape_of(query_type).is_immutable:
        remembered: QueryType = _read_short_text(text, query_type)
        return remembered
    return _read_text(text, query_type)


def _read_text(text: str, query_type: type[QueryType]) -> QueryType:
    shape = _shape_of(query_type)
    parameters = {name: shape.readers[name](name, value) for name, value in parse_pairs(text)}
    for name in shape.required:
        if name not in parameters:
            raise _missing_parameter(name)
    try:
        return msgspec.convert(parameters, query_type)
    except msgspec.ValidationError as error:
        refusal = to_api_error(str(error), query_type)
        refusal.param = (refusal.param or "").partition("[")[0] or None  # name the list, not its item
        raise refusal from None


def parsed_query(request: Request, query_type: type[QueryType]) -> QueryType:
    """Return the query that the middleware parsed. Raises TypeError if the route declares another ``query_type``."""
    query = request[QUERY]
    if not isinstance(query, query_type):
        raise TypeError(f"the route declares the query {type(query).__name__}, its handler reads {query_type.__name__}")
    return query


def read_path_id(request: Request, name: str = "id") -> str:
    """Return the id at ``{name}`` in the path. Raises BadRequest unless it has 1 to 20 decimal digits."""
    text = request.match_info[name]
    if not _ID_PATTERN.fullmatch(text):
        raise BadRequest("an id is a decimal number; this path does not accept `me`", param=name)
    return text


ParameterReader = Callable[[str, str], Any]
"""A function that takes a parameter's name and text, and returns its value. Raises BadRequest for an invalid text."""


class _Shape(NamedTuple):
    """The parameters that a query may have, as the inspection of its struct finds them.

    Attributes:
        readers: The reader of each parameter, by its name.
        required: The names of the parameters that a query must have.
        is_immutable: Whether requests may share an object: no handler can change it, as it could change a list.
    """

    readers: dict[str, ParameterReader]
    required: tuple[str, ...]
    is_immutable: bool


@cache
def _shape_of(query_type: type[msgspec.Struct]) -> _Shape:
    """Return the shape of a query. Cached, because each inspection by msgspec leaves reference cycles."""
    inspected = inspect.type_info(query_type)
    if not isinstance(inspected, inspect.StructType):
        raise TypeError(f"{query_type.__name__} is not a msgspec.Struct")
    readers: dict[str, ParameterReader] = {}
    is_immutable = query_type.__struct_config__.frozen
    for field in inspected.fields:
        by_type: dict[type, ParameterReader] = {  # msgspec alone would accept `null` and `5.0` for a number
            inspect.IntType: _read_number, inspect.BoolType: _read_bool,
            inspect.ListType: partial(_read_list, required=field.required),
        }  # fmt: skip
        kinds = [type(leaf) for leaf in _leaf_types(field.type)]
        known = (by_type[kind] for kind in kinds if kind in by_type)
        readers[field.encode_name] = next(known, lambda _, text: text)
        is_immutable = is_immutable and inspect.ListType not in kinds
    required = tuple(field.encode_name for field in inspected.fields if field.required)
    return _Shape(readers, required, is_immutable)


def _leaf_types(type_: inspect.Type) -> Iterator[inspect.Type]:
    """Yield the plain types of an annotation, for example those of ``int`` and ``None`` for ``int | None``."""
    if isinstance(type_, inspect.Metadata):
        yield from _leaf_types(type_.type)
    elif isinstance(type_, inspect.UnionType):
        for member in type_.types:
            yield from _leaf_types(member)
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


def _read_list(name: str, text: str, *, required: bool) -> list[str]:
    if text:
        return text.split(",")
    raise _missing_parameter(name) if required else BadRequest("empty; omit it instead", param=name)


def _missing_parameter(name: str) -> BadRequest:
    return BadRequest("this parameter is required", code="missing_parameter", param=name)


_read_short_text: Callable[[str, Any], Any] = lru_cache(MAX_KEPT_QUERIES)(_read_text)  # errors are not remembered
