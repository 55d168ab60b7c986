"""Rules that users keep for their streams."""

import asyncio

from aiohttp import web

from filters.rules.error import RuleError
from filters.rules.rule import Rule
from stream_server.errors import BadRequest, Conflict
from stream_server.store.social import saved_rules as kept
from stream_server.web.api import rule_trial
from stream_server.web.api.rule_preview import run_preview
from stream_server.web.api.rules_shapes import (
    CreatedRules,
    DeletedRules,
    ExplainBody,
    NewRules,
    PreviewBody,
    RuleAnswer,
    RuleDeletion,
    RuleList,
    RulesQuery,
)
from stream_server.web.http import query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import encode_response
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER


async def list_saved(request: web.Request) -> web.Response:
    """``GET /v1/rules``: one's rules, the oldest first; with ``ids`` those of them that exist."""
    wanted = query.parsed_query(request, RulesQuery).ids
    rules, _ = await request.app[STORE].rules.get_all(request[CLAIMS].sub)
    return encode_response(RuleList([_rule_answer(one) for one in rules if not wanted or one.id in wanted]))


async def add(request: web.Request) -> web.Response:
    """``POST /v1/rules``: keep these, all or none; one's streams go by them from then on."""
    new, body = await validation.read_body_as(NewRules, request)
    texts = await _canonical_rules(request, new)
    key = read_idempotency_key(request, body)
    outcomes = await request.app[STORE].rules.add(
        request[CLAIMS].sub, texts, key, all_or_nothing=True, dry_run=new.dry_run
    )
    _refuse_duplicates(outcomes)
    made = [RuleAnswer(text, tag) for text, tag in texts] if new.dry_run else [_created_rule(one) for one in outcomes]
    return encode_response(CreatedRules(made, new.dry_run), status=200 if new.dry_run else 201)


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/rules/{id}``: 204; keep this one no longer."""
    await request.app[STORE].rules.remove_one(
        request[CLAIMS].sub, query.read_path_id(request), read_idempotency_key(request)
    )
    return web.Response(status=204)


async def delete_many(request: web.Request) -> web.Response:
    """``POST /v1/rules/delete``: keep these no longer, as far as they are there."""
    old, body = await validation.read_body_as(RuleDeletion, request)
    key, rules = read_idempotency_key(request, body), request.app[STORE].rules
    gone = await rules.remove(request[CLAIMS].sub, old.ids, key, dry_run=old.dry_run)
    missed = [one for one in dict.fromkeys(old.ids) if one not in set(gone)]
    return encode_response(DeletedRules(gone, missed, old.dry_run))


async def explain(request: web.Request) -> web.Response:
    """``POST /v1/rules/explain``: why a rule matches a status or does not, part by part."""
    asked, _ = await validation.read_body_as(ExplainBody, request)
    rule = _parse_rule(request, asked.rule)
    seen = await rule_trial.load_trial_event(request.app[STORE], request[CLAIMS].sub, asked.status)
    told = rule.explain(seen)
    return encode_response({"matched": told.matched, "rule": rule.text, "parts": told.to_json()})


async def preview(request: web.Request) -> web.Response:
    """``POST /v1/rules/preview``: how much a rule would have brought of the last minutes, and what."""
    asked, _ = await validation.read_body_as(PreviewBody, request)
    return encode_response(await run_preview(request, _parse_rule(request, asked.rule), asked.minutes))


async def _canonical_rules(request: web.Request, new: NewRules) -> list[tuple[str, str]]:
    """The canonical text and the tag of each rule; a long one takes milliseconds to read, so others go on meanwhile."""
    texts = []
    for place, one in enumerate(new.rules):
        texts.append((_parse_rule(request, one.rule, f"rules[{place}].rule").text, one.tag))
        await asyncio.sleep(0)
    return texts


def _parse_rule(request: web.Request, text: str, param: str = "rule") -> Rule:
    """A rule by its text, which nobody may ask for again; raises BadRequest naming the member and the column."""
    try:
        return Rule.parse(text, request.app[SUBSCRIPTION_PARSER].registry)
    except RuleError as error:
        raise BadRequest(error.message, param=param, column=error.column) from None


def _refuse_duplicates(outcomes: list[kept.AddRuleOutcome]) -> None:
    """Raises Conflict for the first that is there already, or stands twice in the body."""
    for place, one in enumerate(outcomes):
        if one.is_duplicate:
            told = "stands before in the same body" if one.saved is None else f"is there already, as {one.saved.id}"
            raise Conflict(f"a rule of this text and tag {told}", param=f"rules[{place}].rule")


def _created_rule(outcome: kept.AddRuleOutcome) -> RuleAnswer:
    assert outcome.saved is not None  # none was there, so each was made
    return _rule_answer(outcome.saved)


def _rule_answer(rule: kept.StoredRule) -> RuleAnswer:
    return RuleAnswer(rule.rule, rule.tag, rule.id, rule.created)
