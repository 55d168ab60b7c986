"""Where OAuth 1.0a carries its token."""

import pytest

from stream_server.web.dialects.v1_parameters import find_token

HEADER = 'OAuth realm="x", oauth_consumer_key="k%20k", oauth_token="a.b-c_d", oauth_signature="s%3D"'


@pytest.mark.parametrize(
    "authorization",
    [
        HEADER,
        HEADER.replace(", ", ","),
        HEADER.replace(", ", " ,\t"),
        HEADER.replace("OAuth", "oauth"),
        'OAuth oauth_token="a%2Eb-c_d"',
        'OAuth oauth_version = "1.0", oauth_token = "a.b-c_d"',
        "Bearer a.b-c_d",
        "bearer  a.b-c_d ",
    ],
)
def test_the_token_is_found_in_the_header(authorization: str) -> None:
    assert find_token(authorization, {}) == "a.b-c_d"


def test_without_a_header_the_token_is_found_in_the_parameters() -> None:
    assert find_token("", {"oauth_token": "a.b-c_d", "track": "tea"}) == "a.b-c_d"


@pytest.mark.parametrize(
    ("authorization", "parameters"),
    [
        ("", {}),
        ("", {"oauth_token": ""}),
        ("", {"access_token": "a.b-c_d"}),
        ("Bearer", {}),
        ("Basic a.b-c_d", {"oauth_token": "a.b-c_d"}),
        ('OAuth oauth_consumer_key="a"', {"oauth_token": "a.b-c_d"}),
        ('OAuth oauth_token=""', {}),
        ("OAuth oauth_token=a.b-c_d", {}),
        ("a.b-c_d", {}),
    ],
)
def test_no_token_is_found_elsewhere(authorization: str, parameters: dict[str, str]) -> None:
    """A parameter does not replace the token of a header without one."""
    assert find_token(authorization, parameters) is None


def test_the_worst_long_header_is_parsed_quickly() -> None:
    for worst in (" " * 8000, 'a="' * 2700, "a" * 8000, "a = " * 2000):
        assert find_token("OAuth " + worst, {}) is None
