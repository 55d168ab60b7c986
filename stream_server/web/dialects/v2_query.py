"""Reads the query of a v2 request: unknown parameters are ignored, known ones are checked."""

from collections.abc import Mapping

from aiohttp import web

from stream_server.web.dialects.v2_problem import InvalidValue
from stream_server.web.http.query import query_pairs


def read_v2_query(request: web.Request) -> dict[str, str]:
    """Return the query; the last of repeated parameters counts. Raises BadRequest unless the query is UTF-8."""
    return dict(query_pairs(request))


def read_int(query_parameters: Mapping[str, str], name: str, default: int, minimum: int, maximum: int) -> int:
    """Return the integer parameter ``name``; raise InvalidValue unless it is from ``minimum`` to ``maximum``."""
    text = query_parameters.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and minimum <= int(text) <= maximum):
        raise InvalidValue(name, text, f"is not between {minimum} and {maximum}")
    return int(text)


def read_bool(query_parameters: Mapping[str, str], name: str) -> bool:
    """Return the boolean parameter ``name``, by default False; raise InvalidValue for another text.

    Letter case does not matter, because Python clients send ``True``.
    """
    text = query_parameters.get(name, "false").lower()
    if text not in {"true", "false"}:
        raise InvalidValue(name, text, "is not one of [true,false]")
    return text == "true"
