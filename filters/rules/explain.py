"""Why a rule matched an event, or did not: part by part, in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from filters.entities import Indices
from filters.event import Event
from filters.rules.printer import format_node
from filters.rules.tree import And, Node, Operator, node_column


@dataclass(frozen=True, slots=True)
class Explanation:
    """One part of a rule: ``matched`` is whether it holds, ``why`` says so in a sentence without a full stop.

    ``column`` is where it stands in the rule as written, ``indices`` where it was found in the text, in code points,
    ``parts`` are those of a group. ``negated`` operators hold where nothing was found. ``error`` is what the filter of
    an operator raised, or of the first such part of a group: an operator that raises does not hold.
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
        """The same for JSON; ``parts`` only where there are some."""
        told: dict[str, Any] = {
            "text": self.text,
            "column": self.column,
            "matched": self.matched,
            "why": self.why,
            "indices": [list(span) for span in self.indices],
        }
        return {**told, "parts": [part.to_json() for part in self.parts]} if self.parts else told

    def matched_operators(self) -> Iterator["Explanation"]:
        """The operators because of which it matched: those that hold and are not negated, in parts that hold."""
        if self.matched and not self.parts and not self.negated:
            yield self
        if self.matched:
            for part in self.parts:
                yield from part.matched_operators()


def explain_node(node: Node, event: Event) -> Explanation:
    """What ``node`` makes of ``event``; all parts are asked, also those that decide nothing any more."""
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
        return f"not so: {', '.join(missing)}" if missing else "all of it is so"
    found = [part.text for part in parts if part.matched]
    return f"so: {', '.join(found)}" if found else "none of it is so"
