"""v2's answers about rules that were added, deleted or listed, and about those that were not."""

import pytest

from stream_server.errors import BadRequest
from stream_server.store.social.saved_rules import StoredRule
from stream_server.web.dialects.v2_rule_answers import (
    RefusedRule,
    page_of_rules,
    render_added,
    render_counts,
    render_deleted,
    render_listed,
)

NOW_MS = 1_795_197_600_000
SENT = "2026-11-20T18:00:00.000Z"
TEA = StoredRule("11", "tea", "hot", "2026-11-20T18:00:00.000Z")
ICE = StoredRule("12", "ice", "", "2026-11-20T18:00:00.000Z")


def test_good_and_bad_rules_of_one_body_are_told_together() -> None:
    """The answer has the counts, the created rules, and an error for each other rule."""
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


def test_what_is_empty_is_not_there() -> None:
    """There is no `data` without created rules, and no `errors` without refused ones."""
    assert set(render_added([], [RefusedRule("(", "x")], NOW_MS)) == {"meta", "errors"}
    assert set(render_added([TEA], [], NOW_MS)) == {"data", "meta"}


def test_what_was_not_there_to_delete_is_told() -> None:
    """The error names the parameter and the value."""
    unknown = [("ids", "404"), ("values", "tea milk")]
    told = render_deleted(["11"], unknown, NOW_MS)
    assert told["meta"] == {"sent": SENT, "summary": {"deleted": 1, "not_deleted": 2}}
    assert [(error["parameter"], error["value"]) for error in told["errors"]] == unknown
    assert told["errors"][0]["type"] == "https://api.twitter.com/2/problems/resource-not-found"


def test_rules_are_listed_page_by_page() -> None:
    """Each rule appears once, the oldest first; only a full page has a token."""
    rules = [StoredRule(str(n), f"tea{n}", "", "") for n in range(1, 6)]
    seen: list[StoredRule] = []
    token = None
    for _ in range(3):
        shown, token = page_of_rules(rules, token, 2)
        seen += shown
        meta = render_listed(shown, token, NOW_MS)["meta"]
        assert (meta["result_count"], meta.get("next_token")) == (len(shown), token)
        assert token is None or len(token) == 16
    assert (seen, token) == (rules, None)


@pytest.mark.parametrize("token", ["", "x", "0" * 15, "ä" * 16, "========"])
def test_a_token_that_was_never_given_is_refused(token: str) -> None:
    """The error names the parameter."""
    with pytest.raises(BadRequest) as refused:
        page_of_rules([], token, 1)
    assert refused.value.param == "pagination_token"


def test_counts_are_of_one_project_with_one_app() -> None:
    """The list of all apps is present only on request."""
    told = render_counts("2", 3, [])["data"]
    assert told == {
        "cap_per_client_app": "1000", "cap_per_project": "1000", "project_rules_count": "3",
        "client_app_rules_count": {"rule_count": 3, "client_app_id": "2"},
    }  # fmt: skip
    more = render_counts("2", 3, ["all_project_client_apps"])["data"]
    assert more == {**told, "all_project_client_apps": [told["client_app_rules_count"]]}
