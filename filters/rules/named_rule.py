"""A rule under the name by which its owner knows it."""

from dataclasses import dataclass

from filters.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class NamedRule:
    """``id`` is ours, ``tag`` the client's own word for it, empty if there is none."""

    id: str
    tag: str
    rule: Rule
