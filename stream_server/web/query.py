"""Reading a query that has nothing unknown, nothing twice, and only UTF-8 in it."""

import re
from typing import NamedTuple

from aiohttp import web

from stream_server.errors import BadRequest, TooLarge
from stream_server.web.parameters import query_pairs
from stream_server.web.route import Route

MAX_IDS = 200
"""Of users or statuses in one call."""

TOKENS = frozenset({"access_token", "token"})
"""Names under which clients have put tokens into URLs, which end in logs and histories of browsers."""

_COUNT = re.compile(r"[0-9]{1,3}")
_ID = re.compile(r"[0-9]{1,20}")


def check_query(request: web.Request, route: Route) -> None:
    """Raises BadRequest for a parameter that the route does not know, or that is given twice."""
    if not request.rel_url.raw_query_string:
        return
    names = [name for name, _ in query_pairs(request)]
    for name in names:
        if name in TOKENS:
            raise _unknown(name, "a token goes into the Authorization header, never into a URL")
        if route.query is not None and name not in route.query:
            raise _unknown(name, "no such parameter here")
    if route.query is not None and len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadRequest("given twice", param=twice)


def _unknown(name: str, message: str) -> BadRequest:
    return BadRequest(message, code="unknown_parameter", param=name[:64])


def read_query(request: web.Request) -> dict[str, str]:
    """The parameters of a query that :func:`check_query` has passed."""
    return dict(query_pairs(request))


def read_ids(request: web.Request) -> list[str]:
    """``ids``: 1 to 200 of them, comma-joined; raises BadRequest or TooLarge."""
    text = read_query(request).get("ids")
    if not text:
        raise BadRequest("give ids, joined with commas", code="missing_parameter", param="ids")
    ids = text.split(",")
    if len(ids) > MAX_IDS:
        raise TooLarge(f"at most {MAX_IDS} ids", code="too_many", param="ids")
    return [checked_id(one, "ids") for one in ids]


class Piece(NamedTuple):
    """Which piece of a list is asked for: at most ``most`` items, older than ``before`` or newer than ``after``."""

    most: int
    before: str | None
    after: str | None


def read_piece(request: web.Request) -> Piece:
    """``count`` (1 to 200, else 30) and one of the cursors, or none; raises BadRequest."""
    given = read_query(request)
    text = given.get("count", "30")
    if not _COUNT.fullmatch(text) or not 1 <= int(text) <= MAX_IDS:
        raise BadRequest(f"a number from 1 to {MAX_IDS}", param="count")
    if "before" in given and "after" in given:
        raise BadRequest("not together with before", code="conflicting_parameters", param="after")
    return Piece(int(text), given.get("before"), given.get("after"))


def path_id(request: web.Request) -> str:
    """The ``{id}`` in the path; raises BadRequest where it is no id."""
    return checked_id(request.match_info["id"], "id")


def checked_id(text: str, param: str) -> str:
    """``text``, if it is an id: a decimal number. Raises BadRequest naming ``param``."""
    if not _ID.fullmatch(text):
        raise BadRequest("an id is a decimal number", param=param)
    return text
