"""The queries of v2: what is not known is ignored, what is known is checked, and truth may be written in capitals."""

from collections.abc import Mapping

from aiohttp import web

from stream_server.web.dialects.v2_problem import InvalidValue
from stream_server.web.http.query import query_pairs


def read_v2_query(request: web.Request) -> dict[str, str]:
    """The query; of a parameter that is there twice the last counts. Raises BadRequest where it is not UTF-8."""
    return dict(query_pairs(request))


def read_int(query_parameters: Mapping[str, str], name: str, default: int, minimum: int, maximum: int) -> int:
    """The whole number called ``name``; raises InvalidValue for what is none or is not from ``minimum`` to ``maximum``."""
    text = query_parameters.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and minimum <= int(text) <= maximum):
        raise InvalidValue(name, text, f"is not between {minimum} and {maximum}")
    return int(text)


def read_bool(query_parameters: Mapping[str, str], name: str) -> bool:
    """Whether ``name`` is true; Python's clients write ``True``. Raises InvalidValue for what is neither."""
    text = query_parameters.get(name, "false").lower()
    if text not in {"true", "false"}:
        raise InvalidValue(name, text, "is not one of [true,false]")
    return text == "true"
