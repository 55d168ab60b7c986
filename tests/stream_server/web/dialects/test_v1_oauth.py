"""Where OAuth 1.0a carries its token."""

import pytest

from stream_server.web.dialects.v1_oauth import find_token

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
def test_a_header_holds_it(authorization: str) -> None:
    """In the header, quoted and percent-encoded, in any order; a bearer token is accepted too."""
    assert find_token(authorization, {}) == "a.b-c_d"


def test_without_a_header_the_parameters_hold_it() -> None:
    """In the decoded parameters of a form or a query."""
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
def test_elsewhere_there_is_none(authorization: str, parameters: dict[str, str]) -> None:
    """A parameter does not replace the token of a header without one."""
    assert find_token(authorization, parameters) is None


def test_a_long_header_costs_little() -> None:
    """The worst header of the largest size is parsed quickly."""
    for worst in (" " * 8000, 'a="' * 2700, "a" * 8000, "a = " * 2000):
        assert find_token("OAuth " + worst, {}) is None
