"""Renders v2's answers about saved rules: which were added, listed, deleted or refused.

Each rule of a request has its own outcome, so one answer may have successes and errors. Rules are shown in their
canonical text.
"""

import base64
import binascii
from collections.abc import Collection, Sequence
from typing import NamedTuple

from stream_server.events.position import format_iso_time
from stream_server.store.social.saved_rules import MAX_RULES_PER_USER, StoredRule
from stream_server.web.dialects.status_text import Json
from stream_server.web.dialects.v2_problem import PROBLEM_TYPE_PREFIX, InvalidValue

PAGE_TOKEN_BYTES = 10
"""Bytes of a page token: 16 digits in base32hex, like X's tokens."""


class RefusedRule(NamedTuple):
    """A rule that was not saved.

    Attributes:
        value: The text as the client sent it.
        detail: What is wrong with it.
        existing_id: The id of the equal rule that the user has already, or None.
    """

    value: str
    detail: str = ""
    existing_id: str | None = None


def render_added(created: Sequence[StoredRule], refused: Sequence[RefusedRule], now_ms: int) -> Json:
    """Return the answer to ``add``. A duplicate counts as invalid, as in X."""
    summary = {"created": len(created), "not_created": len(refused), "valid": len(created), "invalid": len(refused)}
    return _without_empty(
        [render_rule(rule) for rule in created],
        _render_meta(now_ms, summary=summary),
        [_render_refusal(rule) for rule in refused],
    )


def render_deleted(deleted_ids: Collection[str], unknown: Sequence[tuple[str, str]], now_ms: int) -> Json:
    """Return the answer to ``delete``; ``unknown`` has the parameter and the value of each rule that was not found."""
    summary = {"deleted": len(deleted_ids), "not_deleted": len(unknown)}
    return _without_empty([], _render_meta(now_ms, summary=summary), [_render_missing(*pair) for pair in unknown])


def render_listed(rules: Sequence[StoredRule], next_token: str | None, now_ms: int) -> Json:
    """Return a page of rules, with the token of the next page if there is one."""
    meta = _render_meta(now_ms, result_count=len(rules))
    if next_token is not None:
        meta["next_token"] = next_token
    return _without_empty([render_rule(rule) for rule in rules], meta, [])


def render_counts(uid: str, rule_count: int, fields: Collection[str]) -> Json:
    """Return the number of rules and its limit. Each user counts as a project with one app."""
    own = {"rule_count": rule_count, "client_app_id": uid}
    data: Json = {
        "cap_per_client_app": str(MAX_RULES_PER_USER),
        "cap_per_project": str(MAX_RULES_PER_USER),
        "client_app_rules_count": own,
        "project_rules_count": str(rule_count),
    }
    return {"data": {**data, "all_project_client_apps": [own]} if "all_project_client_apps" in fields else data}


def render_rule(saved: StoredRule) -> Json:
    """Return a rule. An empty tag is present too, because clients read it."""
    return {"id": saved.id, "value": saved.rule, "tag": saved.tag}


def page_of_rules(
    rules: Sequence[StoredRule], page_token: str | None, max_results: int
) -> tuple[Sequence[StoredRule], str | None]:
    """Return the page of rules behind the token, the oldest first, and the token of the next page or None.

    Raises InvalidValue for an invalid token.
    """
    last_id = 0 if page_token is None else _decode_page_token(page_token)
    rest = [rule for rule in rules if int(rule.id) > last_id]
    shown = rest[:max_results]
    return shown, _encode_page_token(int(shown[-1].id)) if len(rest) > len(shown) else None


def _encode_page_token(number: int) -> str:
    """Return the page token for the id of the last rule on a page."""
    return base64.b32hexencode(number.to_bytes(PAGE_TOKEN_BYTES)).decode()


def _decode_page_token(token: str) -> int:
    """Return the rule id in a page token; raise InvalidValue for an invalid token."""
    try:
        number = base64.b32hexdecode(token)
    except (binascii.Error, ValueError):
        number = b""
    if len(number) != PAGE_TOKEN_BYTES:
        raise InvalidValue("pagination_token", token, "is not a valid pagination token")
    return int.from_bytes(number)


def _without_empty(data: list[Json], meta: Json, errors: list[Json]) -> Json:
    """Return the answer without its empty members, as X does."""
    members = {"data": data, "meta": meta, "errors": errors}
    return {name: value for name, value in members.items() if value}


def _render_meta(now_ms: int, **more: object) -> Json:
    """Return the member ``meta``: the time of the answer, and more."""
    return {"sent": format_iso_time(now_ms), **more}


def _render_refusal(refused: RefusedRule) -> Json:
    """Return X's error for a rule that was not saved: a duplicate or an invalid text."""
    if refused.existing_id is not None:
        return {
            "value": refused.value,
            "id": refused.existing_id,
            "title": "DuplicateRule",
            "type": PROBLEM_TYPE_PREFIX + "duplicate-rules",
        }
    return {
        "value": refused.value,
        "details": [refused.detail],
        "title": "UnprocessableEntity",
        "type": PROBLEM_TYPE_PREFIX + "invalid-rules",
    }


def _render_missing(parameter: str, value: str) -> Json:
    """Return X's error for a rule to delete that was not found; ``parameter`` is ``ids`` or ``values``."""
    return {
        "value": value,
        "resource_id": value,
        "parameter": parameter,
        "resource_type": "rule",
        "title": "Not Found Error",
        "detail": f"Could not find rule with {parameter}: [{value}].",
        "type": PROBLEM_TYPE_PREFIX + "resource-not-found",
    }
