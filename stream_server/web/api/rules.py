"""Rules that users save for their streams; explaining a rule and previewing its matches."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple

import msgspec
from aiohttp import web
from msgspec import Meta

from filters.rules.condition import RuleError
from filters.rules.parser import MAX_RULE_CHARS
from filters.rules.rule import Rule
from stream_server.errors import BadRequest, Conflict
from stream_server.events.position import format_iso_time
from stream_server.hub.delivery import Delivery
from stream_server.hub.look_back import PreviewResult, RulePreview
from stream_server.store.social.saved_rules import MAX_RULES_PER_USER, StoredRule
from stream_server.web.api.rows import write
from stream_server.web.api.rule_trial import TrialStatus, load_trial_event
from stream_server.web.api.statuses import check_message_text
from stream_server.web.http import query, validation
from stream_server.web.http.app_keys import CLAIMS, CONFIG, HUB, OPENING, STORE
from stream_server.web.http.fields import Body, Id
from stream_server.web.http.responses import encode_response
from stream_server.web.http.validation import read_keyed_body
from stream_server.web.limits.rate_limits import TRIALS
from stream_server.web.route import Request, Route
from stream_server.web.streaming.framing import NDJSON, select_framing
from stream_server.web.streaming.looking_back import looking_back
from stream_server.web.streaming.stream_plan import plan_stream
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER
from stream_server.wire.objects import RuleAnswer, RuleExplanation, RulePreviewResult

RuleText = Annotated[
    str,
    Meta(
        description="an expression of the rule language, docs/filters.md",
        extra_json_schema={"minLength": 1, "maxLength": MAX_RULE_CHARS},
    ),
]
"""The text of a rule. The rule parser, not msgspec, checks the length, because the parser's errors name the column."""

RuleTag = Annotated[
    str, Meta(max_length=120, description="a label sent with each match of the rule; no control characters")
]

DryRun = Annotated[bool, Meta(description="only report what would happen")]


class NewRule(Body):
    """A rule to save, with an optional label (``tag``) that the server sends with each match."""

    rule: RuleText
    tag: RuleTag = ""


class NewRules(Body):
    """The body of ``POST /v1/rules``. The server saves all rules or none; a user has at most 1,000 rules."""

    rules: Annotated[list[NewRule], Meta(min_length=1, max_length=MAX_RULES_PER_USER)]
    dry_run: DryRun = False


class RuleList(msgspec.Struct):
    """The rules of a user, the oldest first."""

    rules: list[RuleAnswer]


class CreatedRules(msgspec.Struct):
    """The rules that were saved, or that a dry run would save, in the order of the request."""

    rules: list[RuleAnswer]
    dry_run: bool


class RulesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of ``GET /v1/rules``: ids of the caller's rules, or none for all rules. The answer omits unknown ids."""

    ids: Annotated[list[Id], Meta(max_length=MAX_RULES_PER_USER, description="ids, comma-joined")] = []


class RuleDeletion(Body):
    """The body of ``POST /v1/rules/delete``: the ids of the rules to delete."""

    ids: Annotated[list[Id], Meta(min_length=1, max_length=MAX_RULES_PER_USER)]
    dry_run: DryRun = False


class DeletedRules(msgspec.Struct):
    """The ids of the rules that were deleted (in a dry run: would be). ``not_deleted`` has the ids that no rule has."""

    deleted: list[Id]
    not_deleted: list[Id]
    dry_run: bool


class ExplainBody(Body):
    """The body of ``POST /v1/rules/explain``: a rule, and a posted or made-up status."""

    rule: RuleText
    status: Annotated[Id | TrialStatus, Meta(description="id of a status that the caller may see, or a made-up one")]


class PreviewBody(Body):
    """The body of ``POST /v1/rules/preview``: a rule, and how many minutes to look back."""

    rule: RuleText
    minutes: Annotated[int, Meta(ge=1, le=1440, description="how far to look back")]


async def list_saved(request: Request) -> web.Response:
    """``GET /v1/rules``: list the caller's rules, the oldest first; ``ids`` selects some of them."""
    ids = query.parsed_query(request, RulesQuery).ids
    rules, _ = await request.app[STORE].rules.get_all(request[CLAIMS].sub)
    return encode_response({"rules": [_members_of(rule) for rule in rules if not ids or rule.id in ids]})


async def add(request: Request) -> web.Response:
    """``POST /v1/rules``: save rules, all or none; the caller's open streams use them at once."""
    new_rules, key = await read_keyed_body(NewRules, request)
    dry_run, store = new_rules.dry_run, request.app[STORE]
    rules = await parse_rules(request, new_rules.rules)
    texts = [(rule.text, new.tag) for rule, new in zip(rules, new_rules.rules, strict=True)]
    outcomes = await store.rules.add(request[CLAIMS].sub, texts, key, all_or_nothing=True, dry_run=dry_run)
    for index, outcome in enumerate(outcomes):
        if outcome.is_duplicate:
            what = "is repeated in this body" if outcome.saved is None else f"already exists as {outcome.saved.id}"
            raise Conflict(f"a rule with this text and tag {what}", param=_param_of(index))
    saved = [_members_of(outcome.saved) for outcome in outcomes if outcome.saved is not None]
    answers = [{"rule": text, "tag": tag} for text, tag in texts] if dry_run else saved
    return encode_response({"rules": answers, "dry_run": dry_run}, status=200 if dry_run else 201)


async def delete_many(request: Request) -> web.Response:
    """``POST /v1/rules/delete``: delete several of the caller's rules; ``not_deleted`` lists unknown ids."""
    deletion, key = await read_keyed_body(RuleDeletion, request)
    ids, dry_run = deletion.ids, deletion.dry_run
    deleted = await request.app[STORE].rules.remove(request[CLAIMS].sub, ids, key, dry_run=dry_run)
    found = frozenset(deleted)
    missing = [rule_id for rule_id in dict.fromkeys(ids) if rule_id not in found]
    return encode_response(DeletedRules(deleted, missing, dry_run))


async def explain(request: Request) -> web.Response:
    """``POST /v1/rules/explain``: tell part by part why a rule matches a status, or why it does not."""
    asked = await validation.read_body_as(ExplainBody, request)
    if isinstance(asked.status, TrialStatus):
        check_message_text(asked.status.message, request.app[CONFIG].message_max_chars, param="status.message")
    rule = await _parse_rule(request, asked.rule)
    event = await load_trial_event(request.app[STORE], request[CLAIMS].sub, asked.status)
    thread = request.app[SUBSCRIPTION_PARSER].thread
    explanation = await thread.run(lambda: rule.explain(event), request[CLAIMS].sub)
    return encode_response({"matched": explanation.matched, "rule": rule.text, "parts": explanation.to_json()})


async def preview(request: Request) -> web.Response:
    """``POST /v1/rules/preview``: count the statuses of the last ``minutes`` that a rule matches, and show examples."""
    asked = await validation.read_body_as(PreviewBody, request)
    app, hub = request.app, request.app[HUB]
    request[OPENING].give_back()
    async with looking_back(request) as payer:
        rule = await _parse_rule(request, asked.rule)
        parameters = {"rule": rule.text, "kinds": "post", "explain": "true", "since": f"-{asked.minutes}m"}
        filters = app[SUBSCRIPTION_PARSER].read(parameters)
        plan = await plan_stream(request, filters, select_framing(NDJSON, chunked=True), resumes=False)
        asked_ms = hub.now_ms() - asked.minutes * 60_000
        result = await RulePreview(hub, plan.subscribe_request, payer).run()
    complete = result.is_complete and not plan.known_gaps
    span = TimeSpan(max(asked_ms, result.start.ms), result.started_ms)
    return encode_response(preview_answer(result, span, complete=complete))


async def parse_rules(request: Request, asked: Sequence[NewRule]) -> list[Rule]:
    """Parse the rules of a body. Raises BadRequest, with the place in the body, for one that is invalid."""
    rules = [await _parse_rule(request, new.rule, _param_of(index)) for index, new in enumerate(asked)]
    known = await request.app[STORE].users.resolve_logins(login for rule in rules for login in rule.logins())
    for index, rule in enumerate(rules):
        with _rule_errors(_param_of(index)):
            rule.check_logins(known)
    return rules


def _param_of(index: int) -> str:
    return f"rules[{index}].rule"


async def _parse_rule(request: Request, text: str, param: str = "rule") -> Rule:
    """Parse a rule. Raises BadRequest if it is invalid."""
    with _rule_errors(param):
        return await request.app[SUBSCRIPTION_PARSER].parse_rule(text, request[CLAIMS].sub)


@contextmanager
def _rule_errors(param: str) -> Iterator[None]:
    """Turn a RuleError into a BadRequest with the parameter's name and the column of the mistake."""
    try:
        yield
    except RuleError as error:
        raise BadRequest(error.message, param=param, column=error.column) from None


def _members_of(rule: StoredRule) -> dict[str, str]:
    return {"rule": rule.rule, "tag": rule.tag, "id": rule.id, "created": rule.created}


class TimeSpan(NamedTuple):
    """The time that a preview covers, from its start to its end, in ms since 1970."""

    from_ms: int
    to_ms: int

    @property
    def minutes(self) -> float:
        """The length of the span in minutes. It is never 0, so a caller can divide a count by it."""
        return max(self.to_ms - self.from_ms, 1) / 60_000


def preview_answer(result: PreviewResult, span: TimeSpan, *, complete: bool) -> dict[str, Any]:
    """Return the JSON answer of ``POST /v1/rules/preview``. The latest matching status is the first example."""
    return {
        "matched": result.matched_count,
        "scanned": result.scanned_count,
        "from": format_iso_time(span.from_ms),
        "to": format_iso_time(span.to_ms),
        "complete": complete,
        "per_minute": round(result.matched_count / span.minutes, 2),
        "examples": [_example(delivery) for delivery in reversed(result.examples)],
    }


def _example(delivery: Delivery) -> dict[str, Any]:
    (match,) = msgspec.json.decode(delivery.matched_json or b"", type=list[dict[str, msgspec.Raw]])
    status = msgspec.json.decode(delivery.entry.wire, type=dict[str, msgspec.Raw])["status"]
    return {"status": status, "parts": match["parts"], "cursor": delivery.entry.position.cursor}


# fmt: off
ROWS: tuple[Route, ...] = (
    Route("GET", "/v1/rules", list_saved, "stream", RulesQuery, response=RuleList),
    Route("POST", "/v1/rules", add, "stream", body=NewRules, response=CreatedRules, status=201, other_statuses=(200,),
          extra_error_statuses=(409, 413)),
    write("DELETE", "/v1/rules/{id}", "rules.remove_one", "Delete one of the caller's rules.", scope="stream"),
    Route("POST", "/v1/rules/delete", delete_many, "stream", body=RuleDeletion, response=DeletedRules,
          works_when_full=True, is_for_safety=True),
    Route("POST", "/v1/rules/explain", explain, "stream", body=ExplainBody, response=RuleExplanation, is_write=False,
          limits=(TRIALS,)),
    Route("POST", "/v1/rules/preview", preview, "stream", body=PreviewBody, response=RulePreviewResult,
          is_streaming=True, is_write=False, limits=(TRIALS,)),
)
# fmt: on
