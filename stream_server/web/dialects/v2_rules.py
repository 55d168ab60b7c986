"""Handlers of ``/2/tweets/search/stream/rules``: v2 clients list, add and delete the rules that a user has saved."""

import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Annotated, NamedTuple

import msgspec
from aiohttp import web
from msgspec import Meta

from filters.error import ParameterError
from stream_server.errors import BadRequest
from stream_server.events.position import Position, format_iso_time
from stream_server.store.social.saved_rules import MAX_RULES_PER_USER, StoredRule
from stream_server.web.api.rules import RuleTag
from stream_server.web.dialects.status_text import Json
from stream_server.web.dialects.v2_parameters import (
    PROBLEM_TYPE_PREFIX,
    decode_page_token,
    encode_page_token,
    read_bool,
    read_int,
    read_v2_query,
)
from stream_server.web.http import validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.body import MAX_BODY_BYTES, read_json_body
from stream_server.web.http.fields import Body
from stream_server.web.http.responses import encode_response
from stream_server.web.http.validation import read_idempotency_key
from stream_server.web.route import Request
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER


class RefusedRule(NamedTuple):
    """A rule that was not saved. ``detail`` says why it is invalid, or ``existing_id`` names an equal saved rule."""

    value: str
    detail: str = ""
    existing_id: str | None = None


class V2NewRule(Body, forbid_unknown_fields=False):
    """A rule to add. The stream sends its ``tag`` with each post that the rule matches."""

    value: str
    tag: RuleTag = ""


class V2RuleDeletion(msgspec.Struct):
    """The rules to delete, by their ids or by their texts."""

    ids: Annotated[list[str], Meta(max_length=MAX_RULES_PER_USER)] = []
    values: Annotated[list[str], Meta(max_length=MAX_RULES_PER_USER)] = []


class V2RulesBody(msgspec.Struct):
    """The body of a POST that changes rules: ``add`` or ``delete``. It is empty if the query has ``delete_all``."""

    add: Annotated[list[V2NewRule], Meta(min_length=1, max_length=MAX_RULES_PER_USER)] | None = None
    delete: V2RuleDeletion | None = None


class RulesRequest(NamedTuple):
    """A parsed POST that changes rules. ``raw_body`` is the received body, for the check of the Idempotency-Key."""

    rules_body: V2RulesBody
    raw_body: bytes
    dry_run: bool
    delete_all: bool


async def list_rules(request: Request) -> web.Response:
    """``GET /2/tweets/search/stream/rules``: list the caller's rules, oldest first, all or those in ``ids``."""
    v2_query = read_v2_query(request)
    max_results = read_int(v2_query, "max_results", MAX_RULES_PER_USER, 1, MAX_RULES_PER_USER)
    saved = await _load_rules(request)
    if "ids" in v2_query:
        ids = frozenset(v2_query["ids"].split(","))
        saved = [rule for rule in saved if rule.id in ids]
    page, next_token = page_of_rules(saved, v2_query.get("pagination_token"), max_results)
    return encode_response(render_listed(page, next_token, _now_ms()))


async def count_rules(request: Request) -> web.Response:
    """``GET /2/tweets/search/stream/rules/counts``: tell how many rules the caller has and how many a user may have."""
    fields = read_v2_query(request).get("rules_count.fields", "").split(",")
    return encode_response(render_counts(request[CLAIMS].sub, len(await _load_rules(request)), fields))


async def change_rules(request: Request) -> web.Response:
    """``POST /2/tweets/search/stream/rules``: add rules (201) or delete rules (200); each has its own outcome."""
    rules_request = await _read_rules_request(request)
    if rules_request.rules_body.add is not None:
        return await _add_rules(request, rules_request, rules_request.rules_body.add)
    return await _delete_rules(request, rules_request)


async def _read_rules_request(request: Request) -> RulesRequest:
    """Parse a POST that changes rules. Raises BadRequest unless it has exactly one of add, delete and delete_all."""
    v2_query = read_v2_query(request)
    dry_run, delete_all = read_bool(v2_query, "dry_run"), read_bool(v2_query, "delete_all")
    # 1,000 rules of 1,000 characters are a megabyte
    body = await read_json_body(request, 16 * MAX_BODY_BYTES) if request.body_exists else b""
    rules_body = validation.decode_body(V2RulesBody, body) if body else V2RulesBody()
    if [rules_body.add is not None, rules_body.delete is not None, delete_all].count(True) != 1:
        raise BadRequest("Exactly one of `add`, `delete` and `delete_all` is required")
    return RulesRequest(rules_body, body, dry_run, delete_all)


async def _add_rules(request: Request, rules_request: RulesRequest, new_rules: Sequence[V2NewRule]) -> web.Response:
    valid, refused = await _parse_rules(request, new_rules)
    created: list[StoredRule] = []
    if valid:
        key, add = read_idempotency_key(request, rules_request.raw_body), request.app[STORE].rules.add
        outcomes = await add(request[CLAIMS].sub, valid, key, dry_run=rules_request.dry_run)
        for index, ((text, tag), outcome) in enumerate(zip(valid, outcomes, strict=True)):
            if outcome.is_duplicate and outcome.saved is not None:
                refused.append(RefusedRule(text, existing_id=outcome.saved.id))
            else:  # a dry run saves none: their ids are made up
                made_up = StoredRule(str(Position(_now_ms(), index, 0).status_number), text, tag)
                created.append(outcome.saved or made_up)
    return encode_response(render_added(created, refused, _now_ms()), status=201)


async def _parse_rules(
    request: Request, new_rules: Iterable[V2NewRule]
) -> tuple[list[tuple[str, str]], list[RefusedRule]]:
    """Return the canonical text and the tag of each valid rule, and the invalid rules with their errors."""
    valid, refused, parsed = [], [], []
    for new_rule in new_rules:
        try:
            rule = await request.app[SUBSCRIPTION_PARSER].parse_rule(new_rule.value, request[CLAIMS].sub)
            parsed.append((rule, new_rule))
        except ParameterError as error:
            refused.append(RefusedRule(new_rule.value, error.message))
    logins = (login for rule, _ in parsed for login in rule.logins())
    known = await request.app[STORE].users.resolve_logins(logins)
    for rule, new_rule in parsed:
        try:
            rule.check_logins(known)
        except ParameterError as error:
            refused.append(RefusedRule(new_rule.value, error.message))
        else:
            valid.append((rule.text, new_rule.tag))
    return valid, refused


async def _delete_rules(request: Request, rules_request: RulesRequest) -> web.Response:
    ids, unknown = await _ids_to_delete(request, rules_request)
    key = read_idempotency_key(request, rules_request.raw_body)
    remove = request.app[STORE].rules.remove
    deleted = frozenset(await remove(request[CLAIMS].sub, ids, key, dry_run=rules_request.dry_run))
    unknown += [("ids", rule_id) for rule_id in ids if rule_id not in deleted]
    return encode_response(render_deleted(deleted, unknown, _now_ms()))


async def _ids_to_delete(request: Request, rules_request: RulesRequest) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the ids of the rules to delete, and a pair ("values", text) for each given text that no saved rule has."""
    deletion = rules_request.rules_body.delete or V2RuleDeletion()
    if not rules_request.delete_all and not deletion.values:
        return list(dict.fromkeys(deletion.ids)), []
    texts = dict.fromkeys(deletion.values, "")  # the canonical ones; no saved rule has the text of an invalid one
    for value in texts:
        with suppress(ParameterError):
            texts[value] = (await request.app[SUBSCRIPTION_PARSER].parse_rule(value, request[CLAIMS].sub)).text
    saved = await _load_rules(request)
    texts_to_delete, saved_texts = frozenset(texts.values()), {rule.rule for rule in saved}
    ids = [*deletion.ids, *(rule.id for rule in saved if rules_request.delete_all or rule.rule in texts_to_delete)]
    return list(dict.fromkeys(ids)), [("values", value) for value, text in texts.items() if text not in saved_texts]


async def _load_rules(request: Request) -> list[StoredRule]:
    saved, _ = await request.app[STORE].rules.get_all(request[CLAIMS].sub)
    return saved


def _now_ms() -> int:
    return int(time.time() * 1000)


def render_added(created: Sequence[StoredRule], refused: Sequence[RefusedRule], now_ms: int) -> Json:
    """Return the JSON answer to a request to add rules. Its summary counts duplicates as invalid, as Twitter does."""
    summary = {"created": len(created), "not_created": len(refused), "valid": len(created), "invalid": len(refused)}
    data, errors = [render_rule(rule) for rule in created], [_render_refusal(rule) for rule in refused]
    return _without_empty(data, _render_meta(now_ms, summary=summary), errors)


def render_deleted(deleted_ids: Collection[str], unknown: Sequence[tuple[str, str]], now_ms: int) -> Json:
    """Return the answer to a deletion of rules. ``unknown`` has a pair (parameter, id or text) per rule not found."""
    summary = {"deleted": len(deleted_ids), "not_deleted": len(unknown)}
    return _without_empty([], _render_meta(now_ms, summary=summary), [_render_missing(*pair) for pair in unknown])


def render_listed(rules: Sequence[StoredRule], next_token: str | None, now_ms: int) -> Json:
    """Return the JSON answer with one page of rules, and with the token of the next page if there is one."""
    meta = _render_meta(now_ms, result_count=len(rules))
    if next_token is not None:
        meta["next_token"] = next_token
    return _without_empty([render_rule(rule) for rule in rules], meta, [])


def render_counts(uid: str, rule_count: int, fields: Collection[str]) -> Json:
    """Return the answer with the number of the user's rules and their limit. Twitter counts the rules of an app."""
    own, cap = {"rule_count": rule_count, "client_app_id": uid}, str(MAX_RULES_PER_USER)
    caps: Json = {"cap_per_client_app": cap, "cap_per_project": cap}
    data = {**caps, "client_app_rules_count": own, "project_rules_count": str(rule_count)}
    return {"data": {**data, "all_project_client_apps": [own]} if "all_project_client_apps" in fields else data}


def render_rule(saved: StoredRule) -> Json:
    """Return a saved rule in Twitter's v2 format. ``tag`` is present even if empty, because clients expect it."""
    return {"id": saved.id, "value": saved.rule, "tag": saved.tag}


def page_of_rules(rules: list[StoredRule], token: str | None, max_results: int) -> tuple[list[StoredRule], str | None]:
    """Return the page of rules at ``token``, and the next page's token or None. An invalid one raises InvalidValue."""
    last_id = 0 if token is None else decode_page_token("pagination_token", token)
    rest = [rule for rule in rules if int(rule.id) > last_id]
    shown = rest[:max_results]
    if len(rest) == len(shown):
        return shown, None
    return shown, encode_page_token(int(shown[-1].id))


def _without_empty(data: list[Json], meta: Json, errors: list[Json]) -> Json:
    members = {"data": data, "meta": meta, "errors": errors}
    return {name: value for name, value in members.items() if value}


def _render_meta(now_ms: int, **more: object) -> Json:
    return {"sent": format_iso_time(now_ms), **more}


def _render_refusal(refused: RefusedRule) -> Json:
    """Return Twitter's error for a rule that was not saved: a duplicate or an invalid text."""
    if refused.existing_id is not None:
        problem = {"title": "DuplicateRule", "type": PROBLEM_TYPE_PREFIX + "duplicate-rules"}
        return {"value": refused.value, "id": refused.existing_id, **problem}
    problem = {"title": "UnprocessableEntity", "type": PROBLEM_TYPE_PREFIX + "invalid-rules"}
    return {"value": refused.value, "details": [refused.detail], **problem}


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
