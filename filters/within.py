"""The filter of a reader token: what its streams may show at most."""

from collections.abc import Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.event import Event
from filters.registry import installed_registry
from filters.rules.rule import Rule


class Within(Filter):
    """The rule in the claim ``within`` of a reader token. The server adds it to each stream of the token.

    It is no parameter: it has no entry point. If the rule raises, no event passes.
    """

    __slots__ = ("_rule",)

    name: ClassVar[str] = "within"
    role: ClassVar[Role] = "narrowing"
    help: ClassVar[str] = "The rule of a reader token."
    usable_in_rules: ClassVar[bool] = False

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    @classmethod
    def parse(cls, value: str) -> Self:
        """Parse the text of a rule. Raises :class:`filters.rules.condition.RuleError` if it is invalid."""
        return cls(Rule.parse(value, installed_registry()))

    @property
    def canonical_form(self) -> Hashable:
        return self._rule.text

    def matches(self, event: Event) -> bool:
        return self._rule.matches(event)
