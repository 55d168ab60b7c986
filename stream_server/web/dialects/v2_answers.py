"""What v2 answers about saved rules: what was added, listed and deleted, and what of it was not.

One body may hold good and bad: each rule has an outcome of its own. A rule is told in its canonical text.
"""

import base64
import binascii
from collections.abc import Collection, Sequence
from typing import NamedTuple

from stream_server.events import iso
from stream_server.store.rules import MOST, SavedRule
from stream_server.web.dialects.v2_problem import PROBLEMS, InvalidValue
from stream_server.web.dialects.words import Json

TOKEN_BYTES = 10
"""Sixteen digits of base32hex, as X's tokens are."""


class Refused(NamedTuple):
    """A rule that was not made: the text as it came, and why; ``existing`` is the id of the one that is there."""

    value: str
    detail: str = ""
    existing: str | None = None


def added(made: Sequence[SavedRule], refused: Sequence[Refused], now_ms: int) -> Json:
    """The answer to ``add``; a rule that is there already counts as invalid, as with X."""
    summary = {"created": len(made), "not_created": len(refused), "valid": len(made), "invalid": len(refused)}
    return _answer([rule(one) for one in made], _meta(now_ms, summary=summary), [_refusal(one) for one in refused])


def deleted(gone: Collection[str], unknown: Sequence[tuple[str, str]], now_ms: int) -> Json:
    """The answer to ``delete``; ``unknown`` holds what was not there: a parameter and its value."""
    summary = {"deleted": len(gone), "not_deleted": len(unknown)}
    return _answer([], _meta(now_ms, summary=summary), [_missing(*one) for one in unknown])


def listed(rules: Sequence[SavedRule], following: str | None, now_ms: int) -> Json:
    """A page of rules, and the token of the next one if there is one."""
    meta = _meta(now_ms, result_count=len(rules))
    if following is not None:
        meta["next_token"] = following
    return _answer([rule(one) for one in rules], meta, [])


def counted(uid: str, rules: int, fields: Collection[str]) -> Json:
    """How many rules there are; each user is a project of one app here."""
    own = {"rule_count": rules, "client_app_id": uid}
    data: Json = {
        "cap_per_client_app": str(MOST),
        "cap_per_project": str(MOST),
        "client_app_rules_count": own,
        "project_rules_count": str(rules),
    }
    return {"data": {**data, "all_project_client_apps": [own]} if "all_project_client_apps" in fields else data}


def rule(saved: SavedRule) -> Json:
    """A rule; its tag is told also where it is empty, since clients look it up."""
    return {"id": saved.id, "value": saved.rule, "tag": saved.tag}


def page(rules: Sequence[SavedRule], after: str | None, most: int) -> tuple[Sequence[SavedRule], str | None]:
    """So many rules behind the token's, the oldest first, and the token of what follows; raises InvalidValue."""
    begin = 0 if after is None else _number(after)
    rest = [one for one in rules if int(one.id) > begin]
    shown = rest[:most]
    return shown, _token(int(shown[-1].id)) if len(rest) > len(shown) else None


def _token(number: int) -> str:
    return base64.b32hexencode(number.to_bytes(TOKEN_BYTES)).decode()


def _number(token: str) -> int:
    try:
        number = base64.b32hexdecode(token)
    except (binascii.Error, ValueError):
        number = b""
    if len(number) != TOKEN_BYTES:
        raise InvalidValue("pagination_token", token, "is none that was given")
    return int.from_bytes(number)


def _answer(data: list[Json], meta: Json, errors: list[Json]) -> Json:
    """What is empty is left out, as X does."""
    made = {"data": data, "meta": meta, "errors": errors}
    return {name: value for name, value in made.items() if value}


def _meta(now_ms: int, **more: object) -> Json:
    return {"sent": iso(now_ms), **more}


def _refusal(refused: Refused) -> Json:
    if refused.existing is not None:
        title, kind, why = "DuplicateRule", "duplicate-rules", {"id": refused.existing}
        return {"value": refused.value, **why, "title": title, "type": PROBLEMS + kind}
    return {
        "value": refused.value,
        "details": [refused.detail],
        "title": "UnprocessableEntity",
        "type": PROBLEMS + "invalid-rules",
    }


def _missing(parameter: str, value: str) -> Json:
    return {
        "value": value,
        "resource_id": value,
        "parameter": parameter,
        "resource_type": "rule",
        "title": "Not Found Error",
        "detail": f"Could not find rule with {parameter}: [{value}].",
        "type": PROBLEMS + "resource-not-found",
    }
