"""Counts events instead of sending them: how many there were, and how many each rule matched."""

from collections import Counter
from typing import Any

import msgspec


class Tally:
    """The number of counted events, and of those that each rule matched.

    An event that two rules match counts once in ``count``, and once for each of them in ``of_rules``.

    Attributes:
        count: Number of events.
        of_rules: Number of events by the id and the tag of the rule that matched. Without rules it is empty.
    """

    __slots__ = ("count", "of_rules")

    def __init__(self) -> None:
        self.count = 0
        self.of_rules: Counter[tuple[str, str]] = Counter()

    def add(self, matched_json: bytes | None) -> None:
        """Count one event. ``matched_json`` says which rules matched, as in the member ``matched`` of a message."""
        self.count += 1
        if matched_json is None:
            return
        for item in msgspec.json.decode(matched_json, type=list[dict[str, Any]]):
            rule, tag = item.get("id"), item.get("tag")  # a plug-in's filter may have put anything there
            if isinstance(rule, str):
                self.of_rules[rule, tag if isinstance(tag, str) else ""] += 1

    def members(self) -> dict[str, object]:
        """Return the members ``count`` and ``counts`` of JSON: the rules that matched, the most frequent first."""
        counts = [{"id": rule, "tag": tag, "count": count} for (rule, tag), count in self.of_rules.most_common()]
        return {"count": self.count, "counts": counts}
