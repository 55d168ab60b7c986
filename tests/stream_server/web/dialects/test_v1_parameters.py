"""Parameters of v1.1, the errors for invalid ones, and the token of OAuth 1.0a."""

import pytest

from stream_server.errors import ApiError
from stream_server.web.dialects.v1 import (
    common_filters,
    excludes_all_statuses,
    find_token,
    read_count,
    read_predicates,
)


def refused(asked: dict[str, str]) -> tuple[int, str, str | None]:
    """Return status, message and parameter of the error for these filters."""
    with pytest.raises(ApiError) as error:
        read_predicates(asked)
    return error.value.status, error.value.message, error.value.param


def test_predicates_stay_unchanged_and_other_parameters_are_ignored() -> None:
    asked = {"track": "tea, coffee", "follow": "1, 2", "locations": "-122.75,36.8,-121.75,37.8"}
    others = {"stall_warning": "True", "partitions": "0", "firehose": "true", "kinds": "like", "rule": "tea"}
    assert read_predicates(asked | others) == asked


@pytest.mark.parametrize("ids", ["@me", "ada", "1,x", "1;2", "+1", "٣"])
def test_follow_takes_user_ids_only(ids: str) -> None:
    assert refused({"follow": ids})[::2] == (406, "follow")


@pytest.mark.parametrize(
    "box",
    [
        "170,-20,-170,20",
        "1.7e2,-20,-170.,20",
        "1,2,1,3",
        "1,2,3,2",
        "1,3,2,2",
        "-121.75,36.8,-122.75,37.8",
        "0,0,1,1,170,-20,-170,20",
    ],
)
def test_a_box_must_begin_in_the_south_west(box: str) -> None:
    """A box cannot cross longitude 180: a client needs two boxes."""
    status, message, param = refused({"locations": box})
    bad = ", ".join(box.split(",")[-4:])
    assert (status, param) == (406, "locations")
    assert message == f"Bounding box is invalid: {bad}. The first pair must be the SW corner of the box"


@pytest.mark.parametrize("box", ["-181,0,0,1", "0,-91,1,0", "0,0,180.5,1", "0, 0, 1, 90.1"])
def test_a_box_outside_the_globe_is_refused(box: str) -> None:
    error = ", ".join(number.strip() for number in box.split(","))
    assert refused({"locations": box}) == (406, f"Latitude/longitude are not valid: {error}", "locations")


@pytest.mark.parametrize("box", ["1,2,3", "a,b,c,d", "1,2,3,4,5", ",".join(["9,9,1,1"] * 26)])
def test_other_invalid_boxes_are_left_to_the_filter(box: str) -> None:
    assert read_predicates({"locations": box}) == {"locations": box}


def test_every_stream_has_posts_and_deletes_in_the_requested_languages() -> None:
    assert common_filters({"track": "tea"}) == {"kinds": "post,edit,delete"}
    assert common_filters({"language": "en,de"}) == {"kinds": "post,edit,delete", "language": "en,de"}


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("150000", 150_000), ("-1", -1), ("-150000", -150_000)])
def test_the_largest_and_smallest_counts_are_accepted(text: str, number: int) -> None:
    assert read_count({"count": text}, {"stream", "firehose"}) == number


@pytest.mark.parametrize("given", [{}, {"count": "0"}, {"count": "-0"}, {"count": "00"}])
def test_without_a_count_there_is_no_backfill(given: dict[str, str]) -> None:
    assert read_count(given, {"stream"}) == 0


@pytest.mark.parametrize("text", ["150001", "-150001", "ten", "1.5", "+5", "99999999999999999999", "٣"])
def test_a_count_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as error:
        read_count({"count": text}, {"stream", "firehose"})
    assert error.value.param == "count"


@pytest.mark.parametrize(("text", "better"), [("none", False), ("LOW", False), ("medium", True)])
def test_only_levels_above_low_exclude_all_statuses(text: str, better: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert excludes_all_statuses({"filter_level": text}) is better
    assert excludes_all_statuses({}) is False


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
