"""Short queries are parsed once. A remembered query means the same as a new one."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import example, given
from hypothesis import strategies as st

from stream_server.errors import ApiError, BadRequest
from stream_server.web.api.statuses import HomeTimelineQuery
from stream_server.web.http.paging import IdsQuery
from stream_server.web.http.query import (
    MAX_KEPT_QUERY_CHARS,
    MAX_KEPT_STRUCT_CHARS,
    check_parameter_names,
    parse_pairs,
    query_of,
    read_query,
)
from stream_server.web.route import NoQuery


def _parse(text: str, query_type: type[msgspec.Struct]) -> Any:
    """Parse the query of a request as the middleware does. Return the result, or the error as it is answered."""
    request: Any = make_mocked_request("GET", f"/?{text}")
    route: Any = SimpleNamespace(query=query_type)  # nothing else of the route is read
    try:
        check_parameter_names(request, route)
        return read_query(request, query_type)
    except ApiError as error:
        return error.body()


@pytest.mark.parametrize(
    "text",
    ["", "count=7", "count=7&page=2", "count=", "count=x", "count=0", "nope=1", "count=7&count=7", "access_token=a",
     "order=importance", "order=size", "before=1-1-00000000&after=1", "count=%ff",
     "page=2&before=" + "1" * MAX_KEPT_STRUCT_CHARS],
)  # fmt: skip
def test_a_repeated_query_means_the_same(text: str) -> None:
    first = _parse(text, HomeTimelineQuery)
    assert _parse(text, HomeTimelineQuery) == first
    assert isinstance(first, dict) == (text not in {"", "count=7", "count=7&page=2", "order=importance"})


def test_the_same_text_is_read_for_each_route() -> None:
    assert _parse("count=7", HomeTimelineQuery) == HomeTimelineQuery(count=7)
    assert _parse("count=7", NoQuery) == BadRequest("unknown parameter", code="unknown_parameter", param="count").body()


@pytest.mark.parametrize("query_type", [None, NoQuery], ids=["a stream", "another route"])
@pytest.mark.parametrize("name", ["access_token", "token"])
def test_a_token_in_a_url_is_refused_with_the_place_where_it_goes(query_type: Any, name: str) -> None:
    assert "Authorization" in _parse(f"{name}=a", query_type)["error"]["message"]


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [("track=a", True), ("track=a&ticket=b", False), ("access_token=b", False), ("token=b", False),
     ("track=a%62&t%69cket=b", False), ("track=a%62", True), ("track=a&since=1795232685051-0.5", False),
     ("track=a&lastEventId=1795232685051-0.5", False), ("cursor=1795232685051-0.5", False),
     ("track=" + "a" * MAX_KEPT_QUERY_CHARS, False)],
)  # fmt: skip
def test_only_short_queries_that_may_come_again_are_kept(text: str, is_kept: bool) -> None:  # noqa: FBT001 - a row
    requests: list[Any] = [make_mocked_request("GET", f"/?{text}") for _ in range(2)]
    first, second = map(query_of, requests)
    assert (first == second, first is second) == (True, is_kept)


def test_requests_share_no_list() -> None:
    first = _parse("ids=1,2", IdsQuery)
    first.ids.append("3")
    assert _parse("ids=1,2", IdsQuery) == IdsQuery(["1", "2"])


@given(
    st.lists(st.sampled_from(["a", "=", "&", "+", "%", "%2", "%41", "%c3%a9", "%c3", "%00", "\xe9", " "])).map("".join)
)
@example("a=%c3&b=%a9")
def test_pairs_are_those_of_the_standard_library(text: str) -> None:
    """The standard library is exact, but takes a step of Python for each percent sign."""
    try:
        expected = parse_qsl(text, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        with pytest.raises(BadRequest, match="UTF-8"):
            parse_pairs(text)
    else:
        assert parse_pairs(text) == expected


def test_a_form_has_at_most_200_pairs() -> None:
    assert len(parse_pairs("&".join(["a=1"] * 200))) == 200
    with pytest.raises(BadRequest, match="too many"):
        parse_pairs("&".join(["a=1"] * 201))


@pytest.mark.parametrize("text", ["a=b%0D%0Ac%0dd&e=%0D", "a=b\r\nc\rd&e=\r", "a=b%0Ac%0Ad&e=%0A"])
def test_line_breaks_of_a_form_become_line_feeds(text: str) -> None:
    """Browsers send CR LF for each line break of a form (WHATWG URL, HTML §4.10.21.5)."""
    assert parse_pairs(text) == [("a", "b\nc\nd"), ("e", "\n")]
