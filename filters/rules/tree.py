"""The tree of a rule, and its canonical text. Two nodes are equal if their canonical texts are equal."""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from filters.rules.condition import Condition


@dataclass(frozen=True, slots=True)
class Operator:
    """A leaf of the tree: one operator with its value.

    Attributes:
        text: Canonical text without the minus.
        negated: Whether a minus stands before it.
        condition: What the operator checks.
        column: Where it begins in the rule as written, in code points from 1.
        standalone: Whether it can be the only operator of a branch.
        rule_wide: Whether it applies to the whole rule and so must not stand inside OR.
    """

    text: str
    negated: bool
    condition: Condition = field(compare=False)
    column: int = field(compare=False)
    standalone: bool = field(compare=False)
    rule_wide: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """Two or more parts that must all hold. None of the parts is an And."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Two or more parts of which at least one must hold. None of the parts is an Or."""

    parts: tuple["Node", ...]


Node: TypeAlias = Operator | And | Or


def node_column(node: Node) -> int:
    """Return the column at which a node begins: that of its first operator."""
    while not isinstance(node, Operator):
        node = node.parts[0]
    return node.column


def negate(node: Node) -> Node:
    """Return the negation of the node. The minus moves to its operators (De Morgan's laws)."""
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
    """Return the canonical text of the node, with parentheses only where they are needed."""
    if isinstance(node, Operator):
        return f"-{node.text}" if node.negated else node.text
    if isinstance(node, Or):
        return " OR ".join(map(format_node, node.parts))
    return " ".join(map(format_operand, node.parts))


def format_operand(node: Node) -> str:
    """Return the canonical text of the node as a part of an AND: an OR gets parentheses."""
    return f"({format_node(node)})" if isinstance(node, Or) else format_node(node)
