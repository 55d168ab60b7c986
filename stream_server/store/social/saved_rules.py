"""Rules that a user keeps: their streams go by them, and change with them where the log says so."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from stream_server.errors import NotFound
from stream_server.events import entry
from stream_server.events.position import Position, created_ms, format_iso_time
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.positions import make_position
from stream_server.store.redis.scripts import Scripts

MAX_RULES_PER_USER = 1000
"""Rules of one user; ``lua/rule_add.lua`` counts."""


class StoredRule(entry.SavedRule, frozen=True):
    """The same in its canonical text, and when it was made (ISO 8601)."""

    created: str = ""


class AddRuleOutcome(NamedTuple):
    """What became of a rule that was to be added.

    ``saved`` is the rule that is there now; None where it was not made, on trial or because of another of the same
    call. ``is_duplicate`` says that it was there before, or stands in the same call before this one.
    """

    saved: StoredRule | None
    is_duplicate: bool


class StoredRules:
    """The saved rules of one store: at most :data:`MAX_RULES_PER_USER` of a user, no two of the same text and tag.

    Each write that changes something puts one entry of the kind ``rules`` on the log, by which streams change.
    """

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def get_all(self, uid: str) -> tuple[list[StoredRule], Position]:
        """A user's rules, the oldest first, and the head of the log at which they are these; in one step."""
        rows, entry_id, n = await self._scripts.call("saved_rules_get", keys.META, uid)
        saved = [msgspec.json.decode(row, type=StoredRule) for row in rows]
        return sorted(saved, key=lambda one: int(one.id)), make_position(entry_id, n)

    async def add(
        self,
        uid: str,
        rules: Sequence[tuple[str, str]],
        idempotency_key: IdempotencyKey,
        *,
        all_or_nothing: bool = False,
        dry_run: bool = False,
    ) -> list[AddRuleOutcome]:
        """Keep these (canonical text, tag); gives what became of each, in their order. Raises TooLarge ``too_many``.

        A rule that is there already stays as it is; with ``all_or_nothing`` no other is made then either.
        """
        members = [msgspec.json.encode({"rule": text, "tag": tag})[1:-1] for text, tag in rules]
        flags = (int(all_or_nothing), int(dry_run))
        answer = await self._scripts.write("saved_rules_add", idempotency_key, uid, *flags, *members)
        unchanged, words = _parse_outcome_words(answer.value)
        unmade = {word[1:] for word in words if unchanged and word.startswith("+")}
        return [_make_outcome(word, rule, unmade) for word, rule in zip(words, rules, strict=True)]

    async def remove(
        self, uid: str, ids: Iterable[str], idempotency_key: IdempotencyKey, *, dry_run: bool = False
    ) -> list[str]:
        """Keep these no longer; gives the ids of those that were there."""
        answer = await self._scripts.write(
            "saved_rules_remove", idempotency_key, uid, int(dry_run), *dict.fromkeys(ids)
        )
        return _parse_outcome_words(answer.value)[1]

    async def remove_one(self, uid: str, rule_id: str, idempotency_key: IdempotencyKey) -> None:
        """Keep this one no longer; raises NotFound where it is not there."""
        if not await self.remove(uid, [rule_id], idempotency_key):
            raise NotFound("there is no such rule", param="id")


def _parse_outcome_words(reply: bytes) -> tuple[bool, list[str]]:
    """Whether nothing was changed, and the words of an answer behind its position."""
    head, *words = reply.decode().split()
    unchanged = head == "unchanged"
    return unchanged, words if unchanged else words[1:]


def _make_outcome(word: str, rule: tuple[str, str], not_created: Collection[str]) -> AddRuleOutcome:
    duplicate, rule_id = word.startswith("="), word[1:]
    if rule_id in not_created:
        return AddRuleOutcome(None, duplicate)
    return AddRuleOutcome(StoredRule(rule_id, *rule, created=format_iso_time(created_ms(int(rule_id)))), duplicate)
