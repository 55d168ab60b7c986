"""Rules that users save for their streams; explaining a rule and previewing its matches."""

import asyncio
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from filters.rules.error import RuleError
from filters.rules.parser import MAX_RULE_CHARS
from filters.rules.rule import Rule
from stream_server.errors import BadRequest, Conflict
from stream_server.store.social.saved_rules import MAX_RULES_PER_USER, AddRuleOutcome, StoredRule
from stream_server.web.api.rule_preview import run_preview
from stream_server.web.api.rule_trial import TrialStatus, load_trial_event
from stream_server.web.api.statuses import Status, TextSpan
from stream_server.web.http import query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import Id, NonNegativeInt, Timestamp, check_text
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import encode_response
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER

MAX_PREVIEW_MINUTES = 1440
"""Furthest that a preview looks back, in minutes: one day."""

RuleText = Annotated[
    str,
    Meta(
        description="an expression of the rule language, docs/filters.md",
        extra_json_schema={"minLength": 1, "maxLength": MAX_RULE_CHARS},
    ),
]
"""The text of a rule. The parser of the rule language checks the length, because its errors name the column."""

RuleTag = Annotated[
    str, Meta(max_length=120, description="a label sent with each match of the rule; no control characters")
]

DryRun = Annotated[bool, Meta(description="only report what would happen")]


class NewRule(msgspec.Struct, forbid_unknown_fields=True):
    """A rule to save."""

    rule: RuleText
    tag: RuleTag = ""

    def __post_init__(self) -> None:
        check_text("tag", self.tag)


class NewRules(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/rules``. The server saves all rules or none; a user has at most 1,000."""

    rules: Annotated[list[NewRule], Meta(min_length=1, max_length=MAX_RULES_PER_USER)]
    dry_run: DryRun = False


class RuleAnswer(msgspec.Struct):
    """A rule in its canonical text. After a dry run it has neither ``id`` nor ``created``."""

    rule: str
    tag: Annotated[str, Meta(description="empty if the rule has no tag")]
    id: Id | UnsetType = UNSET
    created: Timestamp | UnsetType = UNSET


class RuleList(msgspec.Struct):
    """The rules of a user, the oldest first."""

    rules: list[RuleAnswer]


class CreatedRules(msgspec.Struct):
    """The rules that were saved, or that a dry run would save, in the order of the request."""

    rules: list[RuleAnswer]
    dry_run: bool


class RulesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ids of the caller's rules to read, or none to read all. Unknown ids are left out of the answer."""

    ids: Annotated[list[Id], Meta(max_length=MAX_RULES_PER_USER, description="ids, comma-joined")] = []


class RuleDeletion(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/rules/delete``."""

    ids: Annotated[list[Id], Meta(min_length=1, max_length=MAX_RULES_PER_USER)]
    dry_run: DryRun = False


class DeletedRules(msgspec.Struct):
    """The ids of the rules that were deleted, or would be by a dry run, and the ids that the caller has no rule for."""

    deleted: list[Id]
    not_deleted: list[Id]
    dry_run: bool


class ExplainBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/rules/explain``: a rule, and a posted or made-up status."""

    rule: RuleText
    status: Annotated[
        Id | TrialStatus, Meta(description="the id of a status that the caller may see, or a made-up status")
    ]


class ExplainedPart(msgspec.Struct):
    """A part of a rule: whether it matches, and why. A group in parentheses has ``parts``."""

    text: str
    column: Annotated[int, Meta(ge=1, description="where the part begins in the rule as sent, in code points")]
    matched: bool
    why: str
    indices: Annotated[list[TextSpan], Meta(description="where the part was found in the message")]
    parts: "list[ExplainedPart] | UnsetType" = UNSET


class RuleExplanation(msgspec.Struct):
    """Whether the rule matches the status, and why."""

    matched: bool
    rule: Annotated[str, Meta(description="the canonical text of the rule")]
    parts: ExplainedPart


class PreviewBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/rules/preview``: a rule, and how many minutes to look back."""

    rule: RuleText
    minutes: Annotated[int, Meta(ge=1, le=MAX_PREVIEW_MINUTES, description="how far to look back")]


class MatchedPart(msgspec.Struct):
    """A part of the rule that matches the example, and where it was found in the message."""

    part: str
    indices: list[TextSpan]


class PreviewExample(msgspec.Struct):
    """A status that the rule matches, and the parts of the rule that match it."""

    status: Status
    parts: list[MatchedPart]


class RulePreviewResult(msgspec.Struct):
    """How many of the statuses that the caller may see the rule matches, from ``from`` to ``to``.

    ``complete`` means that the server scanned the entire time asked for. ``examples`` has the latest matches, at most
    ten.
    """

    matched: NonNegativeInt
    scanned: Annotated[NonNegativeInt, Meta(description="entries of the log, of any kind")]
    from_: Timestamp = msgspec.field(name="from")
    to: Timestamp
    complete: bool
    per_minute: Annotated[float, Meta(ge=0)]
    examples: list[PreviewExample]


async def list_saved(request: web.Request) -> web.Response:
    """``GET /v1/rules``: list the caller's rules, the oldest first; ``ids`` selects some of them."""
    ids = query.parsed_query(request, RulesQuery).ids
    rules, _ = await request.app[STORE].rules.get_all(request[CLAIMS].sub)
    return encode_response(RuleList([_rule_answer(rule) for rule in rules if not ids or rule.id in ids]))


async def add(request: web.Request) -> web.Response:
    """``POST /v1/rules``: save rules, all or none; the caller's open streams use them at once."""
    new_rules, body = await validation.read_body_as(NewRules, request)
    texts = await _canonical_rules(request, new_rules)
    key, dry_run = read_idempotency_key(request, body), new_rules.dry_run
    outcomes = await request.app[STORE].rules.add(request[CLAIMS].sub, texts, key, all_or_nothing=True, dry_run=dry_run)
    _refuse_duplicates(outcomes)
    answers = [RuleAnswer(text, tag) for text, tag in texts] if dry_run else [_created_rule(one) for one in outcomes]
    return encode_response(CreatedRules(answers, dry_run), status=200 if dry_run else 201)


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/rules/{id}``: delete one of the caller's rules."""
    rule_id, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].rules.remove_one(request[CLAIMS].sub, rule_id, key)
    return web.Response(status=204)


async def delete_many(request: web.Request) -> web.Response:
    """``POST /v1/rules/delete``: delete several of the caller's rules; unknown ids are reported, not refused."""
    deletion, body = await validation.read_body_as(RuleDeletion, request)
    key, rules = read_idempotency_key(request, body), request.app[STORE].rules
    deleted = await rules.remove(request[CLAIMS].sub, deletion.ids, key, dry_run=deletion.dry_run)
    missing = [rule_id for rule_id in dict.fromkeys(deletion.ids) if rule_id not in set(deleted)]
    return encode_response(DeletedRules(deleted, missing, deletion.dry_run))


async def explain(request: web.Request) -> web.Response:
    """``POST /v1/rules/explain``: tell part by part why a rule matches a status, or why it does not."""
    asked, _ = await validation.read_body_as(ExplainBody, request)
    rule = _parse_rule(request, asked.rule)
    event = await load_trial_event(request.app[STORE], request[CLAIMS].sub, asked.status)
    explanation = rule.explain(event)
    return encode_response({"matched": explanation.matched, "rule": rule.text, "parts": explanation.to_json()})


async def preview(request: web.Request) -> web.Response:
    """``POST /v1/rules/preview``: count what a rule would have matched in the last minutes, with examples."""
    asked, _ = await validation.read_body_as(PreviewBody, request)
    return encode_response(await run_preview(request, _parse_rule(request, asked.rule), asked.minutes))


async def _canonical_rules(request: web.Request, new_rules: NewRules) -> list[tuple[str, str]]:
    """Return the canonical text and the tag of each rule.

    Parsing a long rule takes milliseconds, so the loop yields to the event loop after each one.
    """
    texts = []
    for index, new_rule in enumerate(new_rules.rules):
        texts.append((_parse_rule(request, new_rule.rule, f"rules[{index}].rule").text, new_rule.tag))
        await asyncio.sleep(0)
    return texts


def _parse_rule(request: web.Request, text: str, param: str = "rule") -> Rule:
    """Return the parsed rule, without caching it; raise BadRequest with the member and the column of the error."""
    try:
        return Rule.parse(text, request.app[SUBSCRIPTION_PARSER].registry)
    except RuleError as error:
        raise BadRequest(error.message, param=param, column=error.column) from None


def _refuse_duplicates(outcomes: list[AddRuleOutcome]) -> None:
    """Raise Conflict for the first rule that the caller has already, or that the body repeats."""
    for index, outcome in enumerate(outcomes):
        if outcome.is_duplicate:
            what = "is repeated in this body" if outcome.saved is None else f"already exists as {outcome.saved.id}"
            raise Conflict(f"a rule with this text and tag {what}", param=f"rules[{index}].rule")


def _created_rule(outcome: AddRuleOutcome) -> RuleAnswer:
    """Return the answer for a rule that the store has just saved."""
    assert outcome.saved is not None  # the caller of this function has refused duplicates and dry runs
    return _rule_answer(outcome.saved)


def _rule_answer(rule: StoredRule) -> RuleAnswer:
    """Return a stored rule as the API shows it."""
    return RuleAnswer(rule.rule, rule.tag, rule.id, rule.created)
