"""The headers that say what a body is."""

from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from stream_server.errors import UnsupportedMediaType
from stream_server.web.http.body import (
    MAX_CONTENT_TYPE_CHARS,
    NO_CONTENT_TYPE,
    ContentType,
    declared_length,
    read_content_type,
)


def content_type(text: str) -> ContentType:
    request: Any = make_mocked_request("POST", "/", {"Content-Type": text})
    return read_content_type(request)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("application/json", ("application/json", "")),
        ("Application/JSON;charset=UTF-8", ("application/json", "utf-8")),
        ('application/json ; profile="a;b\\"c" ; charset="utf-8"', ("application/json", "utf-8")),
        ("application/json;", ("application/json", "")),
        ("application/x-www-form-urlencoded;; charset=utf-8 ;", ("application/x-www-form-urlencoded", "utf-8")),
        ("multipart/form-data; boundary=----a'b", ("multipart/form-data", "")),
        ("a/b; x=" + "y" * (MAX_CONTENT_TYPE_CHARS - 7), ("a/b", "")),
    ],
)
def test_a_content_type_is_read_as_the_rfc_says(text: str, expected: tuple[str, str]) -> None:
    assert content_type(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "json", "application/", "/json", "application/json charset=utf-8", "application/json; charset",
        'application/json; charset="utf-8', "application/json, application/json", "((((", "a/b; x=" + '"' * 20,
        "a/b; x=" + "y" * (MAX_CONTENT_TYPE_CHARS - 6),
    ],
)  # fmt: skip
def test_another_content_type_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedMediaType) as refused:
        content_type(text)
    assert refused.value.param == "Content-Type"


def test_a_request_may_have_no_content_type() -> None:
    request: Any = make_mocked_request("POST", "/")
    assert read_content_type(request) == NO_CONTENT_TYPE


@pytest.mark.parametrize(("text", "length"), [("0", 0), ("17", 17), ("0" * 9000 + "17", 17), ("0" * 9000, 0)])
def test_a_length_may_begin_with_zeros(text: str, length: int) -> None:
    assert declared_length({"Content-Length": text}) == length
