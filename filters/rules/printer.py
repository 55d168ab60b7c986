"""From the tree of a rule to its one canonical text."""

from filters.rules.syntax import And, Node, Operator, Or


def show(node: Node) -> str:
    """The rule of which ``node`` is the tree: parentheses only where they are needed."""
    if isinstance(node, Operator):
        return f"-{node.text}" if node.negated else node.text
    if isinstance(node, Or):
        return " OR ".join(map(show, node.parts))
    return " ".join(f"({show(part)})" if isinstance(part, Or) else show(part) for part in node.parts)


def denied(node: Node) -> str:
    """The rule that says the opposite, with the minus before its operators (De Morgan)."""
    return show(_negated(node))


def _negated(node: Node) -> Node:
    if isinstance(node, Operator):
        return Operator(node.text, not node.negated, node.condition, node.column, node.standalone)
    parts = tuple(map(_negated, node.parts))
    return And(parts) if isinstance(node, Or) else Or(parts)
