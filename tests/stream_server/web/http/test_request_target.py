"""A target that no route can have is replaced before any library walks it; every other one stays as it was sent."""

from typing import Any

import pytest
from aiohttp.http_parser import RawRequestMessage
from yarl import URL

from stream_server.web.http.http_handler import MAX_PATH_CHARS, NOWHERE, TargetLimit
from stream_server.web.routes import ROUTE_TABLE

LIMIT = TargetLimit(row.path for row in ROUTE_TABLE)


def message(target: str) -> RawRequestMessage:
    other: Any = None
    return RawRequestMessage("GET", target, other, other, other, other, other, other, other, URL(target, encoded=True))


@pytest.mark.parametrize("row", ROUTE_TABLE, ids=lambda row: f"{row.method} {row.path}")
def test_the_target_of_each_route_stays(row: Any) -> None:
    sent = message(row.path.replace("{", "").replace("}", "") + "?q=" + "/" * 1000)
    assert LIMIT.apply(sent) is sent


def test_a_long_hashtag_is_a_target() -> None:
    sent = message(f"/v1/tags/{'%F0%A0%80%80' * 280}/statuses")
    assert LIMIT.apply(sent) is sent


@pytest.mark.parametrize("path", ["/" * 9, "/a" * 9, "/" + "a" * MAX_PATH_CHARS, "/a/.." * 10_000, "/" * 65_000])
def test_a_longer_or_deeper_target_is_replaced(path: str) -> None:
    shortened = LIMIT.apply(message(path + "?x=1"))
    assert (shortened.url, shortened.method) == (NOWHERE, "GET")
    assert LIMIT.apply(message(f"http://host{path}")).url == NOWHERE


def test_the_host_of_an_absolute_target_is_not_read() -> None:
    """The library decodes an `xn--` host in quadratic time, and raises an error that is no answer for some of them."""
    sent = message(f"http://xn--{'a' * 60_000}/v1/users/me?x=1")
    assert str(LIMIT.apply(sent).url) == "/v1/users/me?x=1"
