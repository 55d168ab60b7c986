"""Near misses of a rule: the rules that are left when one part of it is taken away.

An event that matches such a rest, but not the rule, fails in this one part. So it shows what is too narrow in a rule.
"""

from collections.abc import Iterator

from filters.rules.parser import And, Node, Or, format_node, format_operand, join, stands_alone

MAX_RESTS = 8
"""Most rests of one rule, so that a long rule does not cost many times as much as its preview."""


def rests(node: Node) -> list[tuple[str, str]]:
    """Return for parts of a rule the text of the part and that of the rule without it, at most :data:`MAX_RESTS`.

    Of a rule that is an OR, these are parts of its alternatives. A rest that cannot be a rule is left out, such as
    ``-is:reply``: nearly all events would be near misses. So a rule of one operator has none.
    """
    alternatives = node.parts if isinstance(node, Or) else (node,)
    found = (rest for each in alternatives if isinstance(each, And) for rest in _without_one(each))
    return [pair for pair, _ in zip(found, range(MAX_RESTS), strict=False)]


def _without_one(node: And) -> Iterator[tuple[str, str]]:
    for index, part in enumerate(node.parts):
        rest = join(And, [*node.parts[:index], *node.parts[index + 1 :]])
        if stands_alone(rest):
            yield format_operand(part), format_node(rest)
