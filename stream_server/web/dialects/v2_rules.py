"""Handlers of ``/2/tweets/search/stream/rules``: v2 clients list, add and delete the rules that a user has saved."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import msgspec
from aiohttp import web
from msgspec import Meta

from filters.error import ParameterError
from stream_server.errors import BadRequest
from stream_server.events.position import Position
from stream_server.store.social.saved_rules import MAX_RULES_PER_USER, AddRuleOutcome, StoredRule
from stream_server.web.api.rules import RuleTag
from stream_server.web.dialects import v2_rule_answers
from stream_server.web.dialects.v2_query import read_bool, read_int, read_v2_query
from stream_server.web.dialects.v2_rule_answers import RefusedRule
from stream_server.web.http import validation
from stream_server.web.http.app_keys import CLAIMS, CONFIG, STORE
from stream_server.web.http.body import read_json_body
from stream_server.web.http.fields import check_text
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import encode_response
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER

RULES_BODY_FACTOR = 16
"""Size limit of a body, as a multiple of ``body_max_bytes``: 1,000 rules of 1,000 characters are a megabyte."""


class V2NewRule(msgspec.Struct):
    """A rule to add. The stream sends its tag with each match."""

    value: str
    tag: RuleTag = ""

    def __post_init__(self) -> None:
        check_text("tag", self.tag)


class V2RuleDeletion(msgspec.Struct):
    """The rules to delete, by their ids or by their texts."""

    ids: Annotated[list[str], Meta(max_length=MAX_RULES_PER_USER)] = []
    values: Annotated[list[str], Meta(max_length=MAX_RULES_PER_USER)] = []


class V2RulesBody(msgspec.Struct):
    """The body of a POST: ``add`` or ``delete``. It is empty if the query has ``delete_all``."""

    add: Annotated[list[V2NewRule], Meta(min_length=1, max_length=MAX_RULES_PER_USER)] | None = None
    delete: V2RuleDeletion | None = None


class RulesRequest(NamedTuple):
    """A parsed POST.

    Attributes:
        rules_body: The decoded body.
        raw_body: The body as received, for the idempotency key.
        dry_run: Whether the server only reports what would happen.
        delete_all: Whether to delete all rules of the user.
    """

    rules_body: V2RulesBody
    raw_body: bytes
    dry_run: bool
    delete_all: bool


async def list_rules(request: web.Request) -> web.Response:
    """``GET``: list the caller's rules, the oldest first, all or those with the requested ids."""
    v2_query = read_v2_query(request)
    max_results = read_int(v2_query, "max_results", MAX_RULES_PER_USER, 1, MAX_RULES_PER_USER)
    saved = await _load_rules(request)
    if "ids" in v2_query:
        ids = frozenset(v2_query["ids"].split(","))
        saved = [rule for rule in saved if rule.id in ids]
    page, next_token = v2_rule_answers.page_of_rules(saved, v2_query.get("pagination_token"), max_results)
    return encode_response(v2_rule_answers.render_listed(page, next_token, _now_ms()))


async def count_rules(request: web.Request) -> web.Response:
    """``GET …/counts``: tell how many rules the caller has, and the limit."""
    fields = read_v2_query(request).get("rules_count.fields", "").split(",")
    return encode_response(v2_rule_answers.render_counts(request[CLAIMS].sub, len(await _load_rules(request)), fields))


async def change_rules(request: web.Request) -> web.Response:
    """``POST``: add rules (status 201) or delete rules (status 200); each rule has its own outcome."""
    rules_request = await _read_rules_request(request)
    if rules_request.rules_body.add is not None:
        return await _add_rules(request, rules_request, rules_request.rules_body.add)
    return await _delete_rules(request, rules_request)


async def _read_rules_request(request: web.Request) -> RulesRequest:
    """Return the parsed POST; raise BadRequest unless it asks for exactly one of add, delete and delete_all."""
    v2_query = read_v2_query(request)
    dry_run, delete_all = read_bool(v2_query, "dry_run"), read_bool(v2_query, "delete_all")
    body = (
        await read_json_body(request, RULES_BODY_FACTOR * request.app[CONFIG].body_max_bytes)
        if request.body_exists
        else b""
    )
    rules_body = validation.decode_body(V2RulesBody, body) if body else V2RulesBody()
    if [rules_body.add is not None, rules_body.delete is not None, delete_all].count(True) != 1:
        raise BadRequest("Exactly one of `add`, `delete` and `delete_all` is required")
    return RulesRequest(rules_body, body, dry_run, delete_all)


async def _add_rules(request: web.Request, rules_request: RulesRequest, new_rules: Sequence[V2NewRule]) -> web.Response:
    """Save the valid rules, and report the others beside them."""
    valid, refused = await _parse_rules(request, new_rules)
    created: list[StoredRule] = []
    if valid:
        key = read_idempotency_key(request, rules_request.raw_body)
        rules = request.app[STORE].rules
        outcomes = await rules.add(request[CLAIMS].sub, valid, key, dry_run=rules_request.dry_run)
        created, duplicates = _split_outcomes(valid, outcomes)
        refused += duplicates
    return encode_response(v2_rule_answers.render_added(created, refused, _now_ms()), status=201)


async def _parse_rules(
    request: web.Request, new_rules: Iterable[V2NewRule]
) -> tuple[list[tuple[str, str]], list[RefusedRule]]:
    """Return the canonical text and the tag of each valid rule, and the invalid rules with their errors."""
    valid, refused = [], []
    for new_rule in new_rules:
        try:
            valid.append((await _canonical_text(request, new_rule.value), new_rule.tag))
        except ParameterError as error:
            refused.append(RefusedRule(new_rule.value, error.message))
    return valid, refused


async def _canonical_text(request: web.Request, value: str) -> str:
    """Return the canonical text of a rule; raise ParameterError for an invalid rule.

    Parsing a long rule takes milliseconds, so the function first yields to the event loop.
    """
    await asyncio.sleep(0)
    return request.app[SUBSCRIPTION_PARSER].parse_rule(value).text


def _split_outcomes(
    requested: Sequence[tuple[str, str]], outcomes: Sequence[AddRuleOutcome]
) -> tuple[list[StoredRule], list[RefusedRule]]:
    """Return the created rules and the duplicates. After a dry run a created rule gets a made-up id."""
    created, duplicates, now_ms = [], [], _now_ms()
    for index, ((text, tag), outcome) in enumerate(zip(requested, outcomes, strict=True)):
        if outcome.is_duplicate and outcome.saved is not None:
            duplicates.append(RefusedRule(text, existing_id=outcome.saved.id))
        else:
            dry_run_rule = StoredRule(str(Position(now_ms, index, 0).status_number), text, tag)
            created.append(outcome.saved or dry_run_rule)
    return created, duplicates


async def _delete_rules(request: web.Request, rules_request: RulesRequest) -> web.Response:
    """Delete the rules that the request names, and report those that were not found."""
    ids, unknown = await _ids_to_delete(request, rules_request)
    key = read_idempotency_key(request, rules_request.raw_body)
    deleted = await request.app[STORE].rules.remove(request[CLAIMS].sub, ids, key, dry_run=rules_request.dry_run)
    deleted_set = frozenset(deleted)
    unknown += [("ids", rule_id) for rule_id in ids if rule_id not in deleted_set]
    return encode_response(v2_rule_answers.render_deleted(deleted, unknown, _now_ms()))


async def _ids_to_delete(request: web.Request, rules_request: RulesRequest) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the distinct ids of the rules to delete, and ``values`` with each text that no rule has.

    One text may delete several rules, which differ by their tags.
    """
    deletion = rules_request.rules_body.delete or V2RuleDeletion()
    if not rules_request.delete_all and not deletion.values:
        return list(dict.fromkeys(deletion.ids)), []
    texts = {value: await _canonical_text_or_empty(request, value) for value in deletion.values}
    saved = await _load_rules(request)
    texts_to_delete, saved_texts = frozenset(texts.values()), {rule.rule for rule in saved}
    ids = [*deletion.ids, *(rule.id for rule in saved if rules_request.delete_all or rule.rule in texts_to_delete)]
    return list(dict.fromkeys(ids)), [("values", value) for value, text in texts.items() if text not in saved_texts]


async def _canonical_text_or_empty(request: web.Request, value: str) -> str:
    """Return the canonical text of a rule, or "" for an invalid rule, which no saved rule equals."""
    try:
        return await _canonical_text(request, value)
    except ParameterError:
        return ""


async def _load_rules(request: web.Request) -> list[StoredRule]:
    """Return all rules of the caller, the oldest first."""
    saved, _ = await request.app[STORE].rules.get_all(request[CLAIMS].sub)
    return saved


def _now_ms() -> int:
    """Return the time in ms since 1970."""
    return int(time.time() * 1000)
