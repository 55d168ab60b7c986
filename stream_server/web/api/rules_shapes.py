"""Rules: what a user has saved, and what they would match."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from filters.rules.parser import MAX_RULE_CHARS
from stream_server.store.social.saved_rules import MAX_RULES_PER_USER
from stream_server.web.api.statuses_shapes import NewStatus, Status, TextSpan
from stream_server.web.http.fields import Id, Login, NonNegativeInt, Timestamp, check_text

MAX_PREVIEW_MINUTES = 1440
"""A day."""

RuleText = Annotated[
    str,
    Meta(
        description="an expression of the rule language, docs/filters.md",
        extra_json_schema={"minLength": 1, "maxLength": MAX_RULE_CHARS},
    ),
]
"""Whether it is too long or empty the reader of rules says, who knows the column."""

RuleTag = Annotated[str, Meta(max_length=120, description="told with what the rule matches; no control characters")]


class NewRule(msgspec.Struct, forbid_unknown_fields=True):
    """A rule that is to be saved."""

    rule: RuleText
    tag: RuleTag = ""

    def __post_init__(self) -> None:
        check_text("tag", self.tag)


class NewRules(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/rules``: all of them or none; at most 1,000 a user."""

    rules: Annotated[list[NewRule], Meta(min_length=1, max_length=MAX_RULES_PER_USER)]
    dry_run: Annotated[bool, Meta(description="only tell what would become of them")] = False


class RuleAnswer(msgspec.Struct):
    """A rule in its canonical text; one that was only tried has neither ``id`` nor ``created``."""

    rule: str
    tag: Annotated[str, Meta(description="empty if there is none")]
    id: Id | UnsetType = UNSET
    created: Timestamp | UnsetType = UNSET


class RuleList(msgspec.Struct):
    """The rules of a user, the oldest first."""

    rules: list[RuleAnswer]


class CreatedRules(msgspec.Struct):
    """What was saved, or would be, in the order of the asking."""

    rules: list[RuleAnswer]
    dry_run: bool


class RulesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Some of one's rules by their ids, comma-joined, or all; what does not exist is left out of the answer."""

    ids: Annotated[list[Id], Meta(max_length=MAX_RULES_PER_USER, description="ids, comma-joined")] = []


class RuleDeletion(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/rules/delete``: those of them that are there."""

    ids: Annotated[list[Id], Meta(min_length=1, max_length=MAX_RULES_PER_USER)]
    dry_run: Annotated[bool, Meta(description="only tell what would become of them")] = False


class DeletedRules(msgspec.Struct):
    """Which rules are gone, or would be, and which were not there."""

    deleted: list[Id]
    not_deleted: list[Id]
    dry_run: bool


class TrialAuthor(msgspec.Struct, forbid_unknown_fields=True):
    """Who might have written a status."""

    id: Id = "0"
    login: Login = "nobody"
    bio: str = ""
    followers: NonNegativeInt = 0
    following: NonNegativeInt = 0
    posts: NonNegativeInt = 0


class TrialStatus(NewStatus, forbid_unknown_fields=True):
    """A status that nobody has posted."""

    author: TrialAuthor | None = None


class ExplainBody(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/rules/explain``: whether a rule matches a status, which is there or made up."""

    rule: RuleText
    status: Annotated[Id | TrialStatus, Meta(description="the id of a status that one may see, or a status itself")]


class ExplainedPart(msgspec.Struct):
    """A part of a rule: whether it holds, and why; a group has ``parts``."""

    text: str
    column: Annotated[int, Meta(ge=1, description="where it stands in the rule as it was sent, in code points")]
    matched: bool
    why: str
    indices: Annotated[list[TextSpan], Meta(description="where in the message it was found")]
    parts: "list[ExplainedPart] | UnsetType" = UNSET


class RuleExplanation(msgspec.Struct):
    """Whether the rule matches, and why."""

    matched: bool
    rule: Annotated[str, Meta(description="its canonical text")]
    parts: ExplainedPart


class PreviewBody(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/rules/preview``: what a rule would have matched of late."""

    rule: RuleText
    minutes: Annotated[int, Meta(ge=1, le=MAX_PREVIEW_MINUTES, description="how far to look back")]


class MatchedPart(msgspec.Struct):
    """A part of the rule that holds for the example, and where in the message it was found."""

    part: str
    indices: list[TextSpan]


class PreviewExample(msgspec.Struct):
    """A status that the rule would have brought, and what of the rule matched."""

    status: Status
    parts: list[MatchedPart]


class RulePreviewResult(msgspec.Struct):
    """How much a rule would have brought of what is on the log from ``from`` to ``to``, as far as one may see it.

    ``complete`` says that this is all that was asked for; ``examples`` are the latest, at most ten.
    """

    matched: NonNegativeInt
    scanned: Annotated[NonNegativeInt, Meta(description="entries of the log, of any kind")]
    from_: Timestamp = msgspec.field(name="from")
    to: Timestamp
    complete: bool
    per_minute: Annotated[float, Meta(ge=0)]
    examples: list[PreviewExample]
