"""From the tree of a rule to its one canonical text."""

from filters.rules.tree import Node, Operator, Or


def format_node(node: Node) -> str:
    """The rule of which ``node`` is the tree: parentheses only where they are needed."""
    if isinstance(node, Operator):
        return f"-{node.text}" if node.negated else node.text
    if isinstance(node, Or):
        return " OR ".join(map(format_node, node.parts))
    return " ".join(map(format_operand, node.parts))


def format_operand(node: Node) -> str:
    """The same beside other parts of an AND, where an OR needs parentheses."""
    return f"({format_node(node)})" if isinstance(node, Or) else format_node(node)
