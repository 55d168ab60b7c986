"""From parameters to a subscription, or to a refusal that names the parameter."""

import pytest

from filters.error import ParameterError
from filters.registry import Registry
from filters.subscription import parse_subscription
from tests.filters.texts import post


def test_kinds_are_posts_and_deletes_by_default(registry: Registry) -> None:
    silent = parse_subscription({"track": "tea"}, registry)
    assert silent.kinds == {"post", "delete"}
    assert silent == parse_subscription({"kinds": "delete,post", "track": "tea"}, registry)
    assert parse_subscription({"track": "tea", "kinds": "like"}, registry).kinds == {"like"}


def test_bases_and_narrowing_filters(registry: Registry) -> None:
    params = {"track": "tea", "follow": "7", "locations": "-74,40,-73,41", "language": "en", "kinds": "post"}
    subscription = parse_subscription(params, registry)
    assert {base.name for base in subscription.bases} == {"track", "follow", "locations"}
    assert {narrow.name for narrow in subscription.narrowing} == {"language", "kinds"}


def test_a_partition_comes_with_the_firehose(registry: Registry) -> None:
    subscription = parse_subscription({"firehose": "true", "partition": "1/1"}, registry)
    assert subscription.required_scopes == {"firehose"}
    assert subscription.matches(post("anything"))


def test_me_is_resolved_with_a_following_set(registry: Registry) -> None:
    subscription = parse_subscription({"follow": "@me"}, registry)
    assert subscription.uses_me
    assert subscription.with_following({"8"}).matches(post(user_ids=frozenset({"8"})))


@pytest.mark.parametrize(
    ("params", "code", "param"),
    [
        ({}, "missing_parameter", "track"),
        ({"language": "en"}, "missing_parameter", "track"),
        ({"partition": "1/2"}, "missing_parameter", "track"),
        ({"sample": "1", "firehose": "true"}, "conflicting_parameters", "sample"),
        ({"track": "tea", "sample": "1"}, "conflicting_parameters", "sample"),
        ({"firehose": "true", "follow": "1"}, "conflicting_parameters", "firehose"),
        ({"sample": "1", "partition": "1/2"}, "conflicting_parameters", "partition"),
        ({"track": "tea", "partition": "1/2"}, "conflicting_parameters", "partition"),
        ({"trakc": "tea"}, "unknown_parameter", "trakc"),
        ({"track": "tea", "Track": "tea"}, "unknown_parameter", "Track"),
        ({"track": "tea", "x" * 99: ""}, "unknown_parameter", "x" * 40),
        ({"track": ""}, "invalid_parameter", "track"),
        ({"track": "tea", "kinds": "nonsense"}, "invalid_parameter", "kinds"),
        ({"follow": ",".join(["1"] * 5_001)}, "too_many", "follow"),
    ],
)
def test_refusals(registry: Registry, params: dict[str, str], code: str, param: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        parse_subscription(params, registry)
    assert (refusal.value.code, refusal.value.param) == (code, param)
    assert str(refusal.value) == refusal.value.message


def test_a_missing_filter_lists_all_filters(registry: Registry) -> None:
    with pytest.raises(ParameterError, match="firehose, follow, locations, rule, rules, sample, track"):
        parse_subscription({}, registry)
