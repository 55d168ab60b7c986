"""What v2 answers about saved rules: what was added, listed and deleted, and what of it was not.

One body may hold good and bad: each rule has an outcome of its own. A rule is told in its canonical text.
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
"""Sixteen digits of base32hex, as X's tokens are."""


class RefusedRule(NamedTuple):
    """A rule that was not made: the text as it came, and why; ``existing_id`` is the id of the one that is there."""

    value: str
    detail: str = ""
    existing_id: str | None = None


def render_added(created: Sequence[StoredRule], refused: Sequence[RefusedRule], now_ms: int) -> Json:
    """The answer to ``add``; a rule that is there already counts as invalid, as with X."""
    summary = {"created": len(created), "not_created": len(refused), "valid": len(created), "invalid": len(refused)}
    return _without_empty(
        [render_rule(one) for one in created],
        _render_meta(now_ms, summary=summary),
        [_render_refusal(one) for one in refused],
    )


def render_deleted(deleted_ids: Collection[str], unknown: Sequence[tuple[str, str]], now_ms: int) -> Json:
    """The answer to ``delete``; ``unknown`` holds what was not there: a parameter and its value."""
    summary = {"deleted": len(deleted_ids), "not_deleted": len(unknown)}
    return _without_empty([], _render_meta(now_ms, summary=summary), [_render_missing(*one) for one in unknown])


def render_listed(rules: Sequence[StoredRule], next_token: str | None, now_ms: int) -> Json:
    """A page of rules, and the token of the next one if there is one."""
    meta = _render_meta(now_ms, result_count=len(rules))
    if next_token is not None:
        meta["next_token"] = next_token
    return _without_empty([render_rule(one) for one in rules], meta, [])


def render_counts(uid: str, rule_count: int, fields: Collection[str]) -> Json:
    """How many rules there are; each user is a project of one app here."""
    own = {"rule_count": rule_count, "client_app_id": uid}
    data: Json = {
        "cap_per_client_app": str(MAX_RULES_PER_USER),
        "cap_per_project": str(MAX_RULES_PER_USER),
        "client_app_rules_count": own,
        "project_rules_count": str(rule_count),
    }
    return {"data": {**data, "all_project_client_apps": [own]} if "all_project_client_apps" in fields else data}


def render_rule(saved: StoredRule) -> Json:
    """A rule; its tag is told also where it is empty, since clients look it up."""
    return {"id": saved.id, "value": saved.rule, "tag": saved.tag}


def page_of_rules(
    rules: Sequence[StoredRule], page_token: str | None, max_results: int
) -> tuple[Sequence[StoredRule], str | None]:
    """So many rules behind the token's, the oldest first, and the token of what follows; raises InvalidValue."""
    begin = 0 if page_token is None else _decode_page_token(page_token)
    rest = [one for one in rules if int(one.id) > begin]
    shown = rest[:max_results]
    return shown, _encode_page_token(int(shown[-1].id)) if len(rest) > len(shown) else None


def _encode_page_token(number: int) -> str:
    return base64.b32hexencode(number.to_bytes(PAGE_TOKEN_BYTES)).decode()


def _decode_page_token(token: str) -> int:
    try:
        number = base64.b32hexdecode(token)
    except (binascii.Error, ValueError):
        number = b""
    if len(number) != PAGE_TOKEN_BYTES:
        raise InvalidValue("pagination_token", token, "is none that was given")
    return int.from_bytes(number)


def _without_empty(data: list[Json], meta: Json, errors: list[Json]) -> Json:
    """What is empty is left out, as X does."""
    made = {"data": data, "meta": meta, "errors": errors}
    return {name: value for name, value in made.items() if value}


def _render_meta(now_ms: int, **more: object) -> Json:
    return {"sent": format_iso_time(now_ms), **more}


def _render_refusal(refused: RefusedRule) -> Json:
    if refused.existing_id is not None:
        title, kind, why = "DuplicateRule", "duplicate-rules", {"id": refused.existing_id}
        return {"value": refused.value, **why, "title": title, "type": PROBLEM_TYPE_PREFIX + kind}
    return {
        "value": refused.value,
        "details": [refused.detail],
        "title": "UnprocessableEntity",
        "type": PROBLEM_TYPE_PREFIX + "invalid-rules",
    }


def _render_missing(parameter: str, value: str) -> Json:
    return {
        "value": value,
        "resource_id": value,
        "parameter": parameter,
        "resource_type": "rule",
        "title": "Not Found Error",
        "detail": f"Could not find rule with {parameter}: [{value}].",
        "type": PROBLEM_TYPE_PREFIX + "resource-not-found",
    }
