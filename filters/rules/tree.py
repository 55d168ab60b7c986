"""A rule as a tree. Nodes are equal if they mean the same by their canonical text, wherever they stand."""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from filters.rules.condition import Condition


@dataclass(frozen=True, slots=True)
class Operator:
    """A leaf; ``standalone`` says whether a rule may rest on it alone, ``rule_wide`` that it is about the whole rule."""

    text: str
    negated: bool
    condition: Condition = field(compare=False)
    column: int = field(compare=False)
    standalone: bool = field(compare=False)
    rule_wide: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """Two parts or more that all have to hold; none of them is an And."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Two parts or more of which one has to hold; none of them is an Or."""

    parts: tuple["Node", ...]


Node: TypeAlias = Operator | And | Or


def node_column(node: Node) -> int:
    """Where a node begins: at its first operator."""
    while not isinstance(node, Operator):
        node = node.parts[0]
    return node.column


def negate(node: Node) -> Node:
    """What holds where ``node`` does not, with the minus before its operators (De Morgan)."""
    if isinstance(node, Operator):
        return replace(node, negated=not node.negated)
    parts = tuple(map(negate, node.parts))
    return And(parts) if isinstance(node, Or) else Or(parts)


def join_and(parts: list[Node]) -> Node:
    """The parts joined by AND, without a group around one part or inside its like."""
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,)))
    return flat[0] if len(flat) == 1 else And(flat)


def join_or(parts: list[Node]) -> Node:
    """The parts joined by OR, without a group around one part or inside its like."""
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,)))
    return flat[0] if len(flat) == 1 else Or(flat)
