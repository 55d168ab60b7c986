"""The rules that are left when one part of a rule is taken away."""

import pytest

from filters.registry import Registry
from filters.rules.near import MAX_RESTS, rests
from filters.rules.parser import format_node, parse_rule


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("tea", []),
        ("tea milk", [("tea", "milk"), ("milk", "tea")]),
        ("tea -milk lang:en", [("-milk", "tea lang:en"), ("lang:en", "tea -milk")]),
        ("tea is:reply", [("is:reply", "tea")]),
        ("(tea OR milk) cup", [("(tea OR milk)", "cup"), ("cup", "tea OR milk")]),
        ("tea OR milk", []),
        ("tea milk OR cup has:media OR pot",
         [("tea", "milk"), ("milk", "tea"), ("has:media", "cup")]),
        (" ".join(f"w{n}" for n in range(20)), [
            (f"w{left}", " ".join(f"w{n}" for n in range(20) if n != left)) for left in range(MAX_RESTS)
        ]),
    ],
)  # fmt: skip
def test_each_part_is_left_out_once(registry: Registry, rule: str, expected: list[tuple[str, str]]) -> None:
    """The rest is a rule: it parses to itself. One that cannot be a rule is left out."""
    found = rests(parse_rule(rule, registry))
    assert found == expected
    assert [rest for _, rest in found] == [format_node(parse_rule(rest, registry)) for _, rest in found]
