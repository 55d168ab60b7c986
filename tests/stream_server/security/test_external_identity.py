"""Which scopes the claims of another issuer's token give."""

from typing import Any

import pytest

from stream_server.config.config import load
from stream_server.config.settings import InvalidSetting
from stream_server.security.external_identity import ExternalIdentity

RULES = (
    "read; groups=root:admin; realm.roles=staff member:firehose; level=3:ingest; is_staff=true:firehose; "
    "scope=ops:admin"
)


def granted(claims: dict[str, Any], /, **settings: str) -> set[str]:
    """The scopes beyond the default ones."""
    given = {"external_subjects": "on", "scope_rules": RULES, **settings}
    identity = ExternalIdentity.from_config(load(given, {}))
    assert identity is not None
    return set(identity.scopes(claims)) - {"read"}


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"groups": "root"}, {"admin"}),
        ({"groups": ["users", "root"]}, {"admin"}),
        ({"groups": "my root group"}, set()),
        ({"groups": "root users"}, set()),
        ({"groups": ["my root group"]}, set()),
        ({"groups": [["root"]]}, set()),
        ({"groups": {"root": True}}, set()),
        ({"groups": " root"}, set()),
        ({"groups": "ROOT"}, set()),
        ({"realm": {"roles": ["staff member"]}}, {"firehose"}),
        ({"realm": {"roles": ["staff", "member"]}}, set()),
        ({"level": 3}, {"ingest"}),
        ({"level": "3"}, {"ingest"}),
        ({"level": 33}, set()),
        ({"is_staff": True}, {"firehose"}),
        ({"is_staff": False}, set()),
        ({"scope": "openid ops"}, {"admin"}),
        ({"scope": ["ops"]}, {"admin"}),
        ({"scope": "openid-ops"}, set()),
        ({}, set()),
    ],
)
def test_a_rule_compares_whole_values(claims: dict[str, Any], expected: set[str]) -> None:
    assert granted(claims) == expected


def test_a_missing_claim_meets_no_rule() -> None:
    assert granted({}, scope_rules="read; groups=None:admin; groups=null:admin") == set()


def test_the_words_of_the_claim_with_scopes_are_compared_one_by_one() -> None:
    settings = {"claims": "scopes=scp", "scope_rules": "scp=ops:admin; groups=ops:ingest"}
    assert granted({"scp": "firehose ops", "groups": "firehose ops"}, **settings) == {"firehose", "admin"}


def test_scopes_without_a_claim_are_those_of_everybody() -> None:
    assert granted({}, scope_rules="read; groups=root:admin; write, stream") == {"write", "stream"}
    assert granted({}, scope_rules="groups=root:admin") == set()


@pytest.mark.parametrize(
    "settings",
    [{"scope_rules": "groups=root"}, {"scope_rules": "everything"}, {"claims": "login"}, {"claims": "age=birthday"}],
)
def test_a_rule_or_a_claim_that_cannot_be_read_stops_the_start(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting, match=r"--(scope-rules|claims)"):
        granted({}, **settings)
