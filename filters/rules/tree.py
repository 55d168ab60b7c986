"""The tree of a rule, and its canonical text. Two nodes are equal if their canonical texts are equal."""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from filters.rules.condition import Condition


@dataclass(frozen=True, slots=True)
class Operator:
    """A leaf of the tree of a rule: one operator with its value.

    Attributes:
        text: Canonical text without the minus.
        column: Where the operator begins in the rule as written, in code points from 1.
        standalone: Whether a rule, or one side of an OR, may consist of this operator alone.
        rule_wide: Whether the operator applies to the whole rule and so must not stand inside OR.
    """

    text: str
    negated: bool
    condition: Condition = field(compare=False)
    column: int = field(compare=False)
    standalone: bool = field(compare=False)
    rule_wide: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """Parts of a rule that must all match, two or more. None of the parts is an And itself."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Parts of a rule of which at least one must match, two or more. None of the parts is an Or itself."""

    parts: tuple["Node", ...]


Node: TypeAlias = Operator | And | Or


def node_column(node: Node) -> int:
    """Return the column at which a part of a rule begins. It is the column of the part's first operator."""
    while not isinstance(node, Operator):
        node = node.parts[0]
    return node.column


def negate(node: Node) -> Node:
    """Return the negation of a part of a rule: AND and OR are swapped, and every operator gets or loses a minus."""
    if isinstance(node, Operator):
        return replace(node, negated=not node.negated)
    parts = tuple(map(negate, node.parts))
    return And(parts) if isinstance(node, Or) else Or(parts)


def join_and(parts: list[Node]) -> Node:
    """Join the parts by AND. A single part stays as it is, and nested Ands are merged."""
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,)))
    return flat[0] if len(flat) == 1 else And(flat)


def join_or(parts: list[Node]) -> Node:
    """Join the parts by OR. A single part stays as it is, and nested Ors are merged."""
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,)))
    return flat[0] if len(flat) == 1 else Or(flat)


def format_node(node: Node) -> str:
    """Return the canonical text of a part of a rule, with parentheses only where they are needed."""
    if isinstance(node, Operator):
        return f"-{node.text}" if node.negated else node.text
    if isinstance(node, Or):
        return " OR ".join(map(format_node, node.parts))
    return " ".join(map(format_operand, node.parts))


def format_operand(node: Node) -> str:
    """Return the canonical text of one part of an AND. If the part is an OR, the text has parentheses."""
    return f"({format_node(node)})" if isinstance(node, Or) else format_node(node)
