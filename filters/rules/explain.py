"""Explains part by part why a rule matched an event or did not match it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from filters.entities import Indices
from filters.event import Event
from filters.rules.tree import And, Node, Operator, format_node, node_column


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one part of a rule.

    Attributes:
        text: Canonical text of the part.
        column: Where the part begins in the rule as written, in code points from 1.
        matched: Whether the part holds.
        why: The reason, as a sentence without a full stop.
        indices: Positions in the text of the event that fulfil the condition, in code points.
        parts: Explanations of the parts of a group.
        negated: Whether the part is an operator with a minus.
        error: The exception that a filter raised in this part or in the first faulty part of a group, or None. An
            operator that raised does not hold.
    """

    text: str
    column: int
    matched: bool
    why: str
    indices: tuple[Indices, ...] = ()
    parts: tuple["Explanation", ...] = ()
    negated: bool = False
    error: Exception | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON. The member ``parts`` is present only for a group."""
        told: dict[str, Any] = {
            "text": self.text,
            "column": self.column,
            "matched": self.matched,
            "why": self.why,
            "indices": [list(span) for span in self.indices],
        }
        return {**told, "parts": [part.to_json() for part in self.parts]} if self.parts else told

    def matched_operators(self) -> Iterator["Explanation"]:
        """Return the operators that made the rule match: those without a minus that hold, in parts that hold."""
        if self.matched and not self.parts and not self.negated:
            yield self
        if self.matched:
            for part in self.parts:
                yield from part.matched_operators()


def explain_node(node: Node, event: Event) -> Explanation:
    """Explain a node. All parts are evaluated, even if the result is known already."""
    if isinstance(node, Operator):
        return _explain_operator(node, event)
    parts = tuple(explain_node(part, event) for part in node.parts)
    every = isinstance(node, And)
    matched = all(part.matched for part in parts) if every else any(part.matched for part in parts)
    failed = next((part.error for part in parts if part.error is not None), None)
    return Explanation(
        format_node(node), node_column(node), matched, _summarize(parts, every=every), parts=parts, error=failed
    )


def _explain_operator(node: Operator, event: Event) -> Explanation:
    condition = node.condition
    try:
        matched, why = condition.matches(event) is not node.negated, condition.describe(event)
        indices = tuple(condition.indices(event))
    except Exception as error:  # noqa: BLE001 - a third party's filter may raise anything, and that is the answer
        return Explanation(format_node(node), node.column, matched=False, why=f"it raised {error!r}", error=error)
    return Explanation(format_node(node), node.column, matched, why, indices, negated=node.negated)


def _summarize(parts: tuple[Explanation, ...], *, every: bool) -> str:
    if every:
        missing = [part.text for part in parts if not part.matched]
        return f"does not hold: {', '.join(missing)}" if missing else "all parts hold"
    found = [part.text for part in parts if part.matched]
    return f"holds: {', '.join(found)}" if found else "no part holds"
