"""Rules: save them, and try them on a status or on the past."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from stream_server.client.calls.call_group import CallGroup, WriteOptions
from stream_server.wire.objects import Answer, RuleAnswer, RuleExplanation, RulePreviewResult


class _Rules(Answer, frozen=True):
    rules: tuple[RuleAnswer, ...]


class _DeletedRules(Answer, frozen=True):
    deleted: tuple[str, ...]


class RuleCalls(CallGroup):
    """The calls about rules. ``stream(rules="saved")`` uses the saved ones."""

    async def rules(self) -> tuple[RuleAnswer, ...]:
        """Read the caller's saved rules, the oldest first."""
        return (await self._transport.call(_Rules, "GET", "/v1/rules")).rules

    async def save_rules(
        self, rules: Sequence[str] | Mapping[str, str], *, dry_run: bool = False, **options: Unpack[WriteOptions]
    ) -> tuple[RuleAnswer, ...]:
        """Save rules, or a mapping from tags to rules: all of them, or none if one is wrong.

        A dry run only checks them. A mistake raises RequestRefused with the place in the rule.
        """
        pairs = rules.items() if isinstance(rules, Mapping) else (("", rule) for rule in rules)
        new = [{"rule": rule} | ({"tag": tag} if tag else {}) for tag, rule in pairs]
        body = {"rules": new, "dry_run": dry_run}
        return (await self._transport.call(_Rules, "POST", "/v1/rules", body=body, **options)).rules

    async def delete_rules(self, ids: Sequence[str], **options: Unpack[WriteOptions]) -> tuple[str, ...]:
        """Delete saved rules. Return the ids of the deleted ones, without the ids that no rule has."""
        body = {"ids": list(ids)}
        return (await self._transport.call(_DeletedRules, "POST", "/v1/rules/delete", body=body, **options)).deleted

    async def explain_rule(self, rule: str, status: str | Mapping[str, Any]) -> RuleExplanation:
        """Tell part by part why a rule matches a status, or why not. ``status`` is an id, or a made-up status."""
        return await self._transport.call(
            RuleExplanation, "POST", "/v1/rules/explain", body={"rule": rule, "status": status}, is_read=True
        )

    async def preview_rule(self, rule: str, minutes: int) -> RulePreviewResult:
        """Count the statuses of the last minutes (at most a day) that a rule matches, with examples."""
        return await self._transport.call(
            RulePreviewResult, "POST", "/v1/rules/preview", body={"rule": rule, "minutes": minutes}, is_read=True
        )
