"""``/2/tweets/search/stream/rules``: the rules that a user has saved, as clients of v2 add, list and delete them."""

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
"""A body may be so many times a write's: a thousand rules of a thousand characters are a megabyte."""


class V2NewRule(msgspec.Struct):
    """A rule that is to be; its tag is told with whatever it matches."""

    value: str
    tag: RuleTag = ""

    def __post_init__(self) -> None:
        check_text("tag", self.tag)


class V2RuleDeletion(msgspec.Struct):
    """Which rules are no longer to be, by their ids or by their texts; no more than there can be."""

    ids: Annotated[list[str], Meta(max_length=MAX_RULES_PER_USER)] = []
    values: Annotated[list[str], Meta(max_length=MAX_RULES_PER_USER)] = []


class V2RulesBody(msgspec.Struct):
    """The body of a POST: one of the two, or nothing at all where all rules are to go."""

    add: Annotated[list[V2NewRule], Meta(min_length=1, max_length=MAX_RULES_PER_USER)] | None = None
    delete: V2RuleDeletion | None = None


class RulesRequest(NamedTuple):
    """A change, its body as it came, and whether it is only tried."""

    rules_body: V2RulesBody
    raw_body: bytes
    dry_run: bool
    delete_all: bool


async def list_rules(request: web.Request) -> web.Response:
    """``GET``: one's rules, the oldest first, all or those with these ids."""
    given = read_v2_query(request)
    most = read_int(given, "max_results", MAX_RULES_PER_USER, 1, MAX_RULES_PER_USER)
    saved = await _load_rules(request)
    if "ids" in given:
        ids = frozenset(given["ids"].split(","))
        saved = [one for one in saved if one.id in ids]
    shown, following = v2_rule_answers.page_of_rules(saved, given.get("pagination_token"), most)
    return encode_response(v2_rule_answers.render_listed(shown, following, _now_ms()))


async def count_rules(request: web.Request) -> web.Response:
    """``GET …/counts``: how many there are, and may be."""
    fields = read_v2_query(request).get("rules_count.fields", "").split(",")
    return encode_response(v2_rule_answers.render_counts(request[CLAIMS].sub, len(await _load_rules(request)), fields))


async def change_rules(request: web.Request) -> web.Response:
    """``POST``: add rules, 201, or delete some, 200; each has an outcome of its own."""
    asked = await _read_rules_request(request)
    if asked.rules_body.add is not None:
        return await _add_rules(request, asked, asked.rules_body.add)
    return await _delete_rules(request, asked)


async def _read_rules_request(request: web.Request) -> RulesRequest:
    """Exactly one of the three things that can be asked; raises BadRequest."""
    given = read_v2_query(request)
    dry_run, delete_all = read_bool(given, "dry_run"), read_bool(given, "delete_all")
    body = (
        await read_json_body(request, RULES_BODY_FACTOR * request.app[CONFIG].body_max_bytes)
        if request.body_exists
        else b""
    )
    wanted = validation.decode_body(V2RulesBody, body) if body else V2RulesBody()
    if [wanted.add is not None, wanted.delete is not None, delete_all].count(True) != 1:
        raise BadRequest("Exactly one of `add`, `delete` and `delete_all` is needed")
    return RulesRequest(wanted, body, dry_run, delete_all)


async def _add_rules(request: web.Request, rules_request: RulesRequest, new_rules: Sequence[V2NewRule]) -> web.Response:
    """What cannot be read is told beside what became of the rest."""
    good, refused = await _parse_rules(request, new_rules)
    made: list[StoredRule] = []
    if good:
        key = read_idempotency_key(request, rules_request.raw_body)
        rules = request.app[STORE].rules
        outcomes = await rules.add(request[CLAIMS].sub, good, key, dry_run=rules_request.dry_run)
        made, known = _split_outcomes(good, outcomes)
        refused += known
    return encode_response(v2_rule_answers.render_added(made, refused, _now_ms()), status=201)


async def _parse_rules(
    request: web.Request, new_rules: Iterable[V2NewRule]
) -> tuple[list[tuple[str, str]], list[RefusedRule]]:
    """The canonical text and the tag of each rule that is one, and why the others are none."""
    good, refused = [], []
    for one in new_rules:
        try:
            good.append((await _canonical_text(request, one.value), one.tag))
        except ParameterError as error:
            refused.append(RefusedRule(one.value, error.message))
    return good, refused


async def _canonical_text(request: web.Request, value: str) -> str:
    """The text under which a rule is kept; raises ParameterError. A long one takes milliseconds: others go on then."""
    await asyncio.sleep(0)
    return request.app[SUBSCRIPTION_PARSER].parse_rule(value).text


def _split_outcomes(
    requested: Sequence[tuple[str, str]], outcomes: Sequence[AddRuleOutcome]
) -> tuple[list[StoredRule], list[RefusedRule]]:
    """The rules that are new, and those that were there; on trial a new one gets an id that it might have had."""
    made, known, now_ms = [], [], _now_ms()
    for place, ((text, tag), outcome) in enumerate(zip(requested, outcomes, strict=True)):
        if outcome.is_duplicate and outcome.saved is not None:
            known.append(RefusedRule(text, existing_id=outcome.saved.id))
        else:
            trial = StoredRule(str(Position(now_ms, place, 0).status_number), text, tag)
            made.append(outcome.saved or trial)
    return made, known


async def _delete_rules(request: web.Request, rules_request: RulesRequest) -> web.Response:
    ids, unknown = await _ids_to_delete(request, rules_request)
    key = read_idempotency_key(request, rules_request.raw_body)
    gone = await request.app[STORE].rules.remove(request[CLAIMS].sub, ids, key, dry_run=rules_request.dry_run)
    there = frozenset(gone)
    unknown += [("ids", one) for one in ids if one not in there]
    return encode_response(v2_rule_answers.render_deleted(gone, unknown, _now_ms()))


async def _ids_to_delete(request: web.Request, rules_request: RulesRequest) -> tuple[list[str], list[tuple[str, str]]]:
    """The ids of the rules that are to go, each once, and the texts that no rule has; a text may have several tags."""
    wanted = rules_request.rules_body.delete or V2RuleDeletion()
    if not rules_request.delete_all and not wanted.values:
        return list(dict.fromkeys(wanted.ids)), []
    texts = {value: await _canonical_text_or_empty(request, value) for value in wanted.values}
    saved = await _load_rules(request)
    gone, kept = frozenset(texts.values()), {one.rule for one in saved}
    ids = [*wanted.ids, *(one.id for one in saved if rules_request.delete_all or one.rule in gone)]
    return list(dict.fromkeys(ids)), [("values", value) for value, text in texts.items() if text not in kept]


async def _canonical_text_or_empty(request: web.Request, value: str) -> str:
    """The text under which a rule would be kept; what is no rule is none of those that are."""
    try:
        return await _canonical_text(request, value)
    except ParameterError:
        return ""


async def _load_rules(request: web.Request) -> list[StoredRule]:
    saved, _ = await request.app[STORE].rules.get_all(request[CLAIMS].sub)
    return saved


def _now_ms() -> int:
    return int(time.time() * 1000)
