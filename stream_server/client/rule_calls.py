# mypy: disable-error-code="empty-body"
"""The calls of both clients about rules: to save and delete them, and to try and count them on past posts."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from stream_server.client.call import Call, WriteOptions, call
from stream_server.client.filters import Since, to_since
from stream_server.client.transport import decode_answer
from stream_server.wire.counts import RuleCounts
from stream_server.wire.objects import RuleAnswer, RuleExplanation, RuleOperator, RulePreviewResult


class RuleCalls:
    """The calls about rules. ``docs/reference/routes.md`` tells what each route does."""

    @call("GET", "rules", "rules")
    def rules(self) -> tuple[RuleAnswer, ...]:
        """Read the caller's saved rules, the oldest first. ``stream(rules="saved")`` uses them."""

    @Call
    async def save_rules(
        self: Any,
        rules: Sequence[str] | Mapping[str, str],
        *,
        dry_run: bool = False,
        **options: Unpack[WriteOptions],
    ) -> tuple[RuleAnswer, ...]:
        """Save rules, or a mapping from tags to rules: all of them, or none if one is wrong.

        A dry run only checks them. A mistake raises RequestRefused with the place in the rule.
        """
        body = {"rules": _new_rules(rules), "dry_run": dry_run}
        answer = await self._transport.request_raw("POST", "/v1/rules", body=body, **options)
        return decode_answer(answer, tuple[RuleAnswer, ...], "rules")  # type: ignore[no-any-return]  # a type made at run time

    @call("PUT", "rules/{rule_id}")
    def change_rule(
        self, rule_id: str, rule: str, *, tag: str = "", dry_run: bool = False, **options: Unpack[WriteOptions]
    ) -> RuleAnswer:
        """Change a saved rule, which keeps its id. Streams use the old rule before one position, and the new one after.

        Without ``tag``, the rule has none afterwards. A dry run only checks the rule.
        """

    @call("POST", "rules/delete", "deleted")
    def delete_rules(self, ids: Sequence[str], **options: Unpack[WriteOptions]) -> tuple[str, ...]:
        """Delete saved rules. Return the ids of the deleted ones, without the ids that no rule has."""

    @call("POST", "rules/explain", is_read=True)
    def explain_rule(self, rule: str, status: str | Mapping[str, Any]) -> RuleExplanation:
        """Tell for each part of a rule why it matches a status or not. ``status`` is an id, or the members of one."""

    @call("GET", "rules/operators", "operators")
    def rule_operators(self) -> tuple[RuleOperator, ...]:
        """Read the operators of the rule language, with those of filters that the server has installed."""

    @call("POST", "rules/preview", is_read=True)
    def preview_rule(self, rule: str, minutes: int, *, near_misses: bool | None = None) -> RulePreviewResult:
        """Count the statuses of the last minutes (at most a day) that a rule matches, with examples.

        With ``near_misses``, also those that match all of the rule but one part.
        """

    @Call
    async def count_rules(
        self: Any,
        rules: Sequence[str] | Mapping[str, str] | Literal["saved"],
        start: Since,
        end: Since | None = None,
        *,
        every: Literal["minute", "hour", "day"] = "hour",
        after: str | None = None,
    ) -> RuleCounts:
        """Count past statuses that rules match, in buckets, the newest first.

        Args:
            rules: Rules, a mapping from tags to rules, or ``saved`` for the caller's saved rules.
            start: Begin of the time: a time, or an age. Not a cursor.
            end: Its end, likewise; by default now.
            every: The length of a bucket.
            after: The ``next`` of a page, to go on with the buckets before it. All else must stay the same.
        """
        body = {
            "rules": "saved" if rules == "saved" else _new_rules(rules), "from": to_since(start),
            "to": None if end is None else to_since(end), "every": every, "next": after,
        }  # fmt: skip
        given = {name: value for name, value in body.items() if value is not None}
        answer = await self._transport.request_raw("POST", "/v1/rules/counts", body=given, is_read=True)
        page: RuleCounts = decode_answer(answer, RuleCounts)
        return page


def _new_rules(rules: Sequence[str] | Mapping[str, str]) -> list[dict[str, str]]:
    pairs = rules.items() if isinstance(rules, Mapping) else (("", rule) for rule in rules)
    return [{"rule": rule} | ({"tag": tag} if tag else {}) for tag, rule in pairs]
