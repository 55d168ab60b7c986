"""The JSON of v2 for rules: what was added, deleted, refused, listed and counted."""

import pytest

from stream_server.errors import BadRequest
from stream_server.store.social.saved_rules import StoredRule
from stream_server.web.dialects.v2_rules import (
    RefusedRule,
    page_of_rules,
    render_added,
    render_counts,
    render_deleted,
)

NOW_MS = 1_795_197_600_000
SENT = "2026-11-20T18:00:00.000Z"
TEA = StoredRule("11", "tea", "hot", "2026-11-20T18:00:00.000Z")
ICE = StoredRule("12", "ice", "", "2026-11-20T18:00:00.000Z")


def test_added_and_refused_rules_are_reported_together() -> None:
    refused = [RefusedRule("tea", existing_id="11"), RefusedRule("(", "at column 2: a term was expected")]
    assert render_added([TEA, ICE], refused, NOW_MS) == {
        "data": [{"id": "11", "value": "tea", "tag": "hot"}, {"id": "12", "value": "ice", "tag": ""}],
        "meta": {"sent": SENT, "summary": {"created": 2, "not_created": 2, "valid": 2, "invalid": 2}},
        "errors": [
            {
                "value": "tea", "id": "11", "title": "DuplicateRule",
                "type": "https://api.twitter.com/2/problems/duplicate-rules",
            },
            {
                "value": "(", "details": ["at column 2: a term was expected"], "title": "UnprocessableEntity",
                "type": "https://api.twitter.com/2/problems/invalid-rules",
            },
        ],
    }  # fmt: skip


def test_rules_that_did_not_exist_are_reported_by_a_delete() -> None:
    unknown = [("ids", "404"), ("values", "tea milk")]
    answer = render_deleted(["11"], unknown, NOW_MS)
    assert answer["meta"] == {"sent": SENT, "summary": {"deleted": 1, "not_deleted": 2}}
    assert [(error["parameter"], error["value"]) for error in answer["errors"]] == unknown
    assert answer["errors"][0]["type"] == "https://api.twitter.com/2/problems/resource-not-found"


@pytest.mark.parametrize("token", ["", "x", "0" * 15, "ä" * 16, "========"])
def test_an_unknown_pagination_token_is_refused(token: str) -> None:
    with pytest.raises(BadRequest) as refused:
        page_of_rules([], token, 1)
    assert refused.value.param == "pagination_token"


def test_counts_have_one_project_with_one_app() -> None:
    answer = render_counts("2", 3, [])["data"]
    assert answer == {
        "cap_per_client_app": "1000", "cap_per_project": "1000", "project_rules_count": "3",
        "client_app_rules_count": {"rule_count": 3, "client_app_id": "2"},
    }  # fmt: skip
    more = render_counts("2", 3, ["all_project_client_apps"])["data"]
    assert more == {**answer, "all_project_client_apps": [answer["client_app_rules_count"]]}
