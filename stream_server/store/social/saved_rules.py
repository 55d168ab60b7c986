"""The filter rules that a user saves for their streams. A change reaches the streams as an entry on the log."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from stream_server.errors import Conflict, NotFound
from stream_server.events import internal
from stream_server.events.position import Position, created_ms, format_iso_time
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.lanes import READ_NEWEST_ENTRY
from stream_server.store.redis.protocol import newest_position, parse_cursor
from stream_server.store.redis.scripts import position_of
from stream_server.store.social.noun import Noun, read_wire_member

MAX_RULES_PER_USER = 1000
"""Most saved rules of one user. ``lua/rules.lua`` enforces the same number."""

MAX_RULE_BYTES_PER_USER = 262_144
"""Most bytes of all saved rules of one user as JSON, enforced there too. Parsed rules take forty times as much."""

MAX_REMOVED_BYTES_PER_USER = 524_288
"""Most bytes of removed rules of one user as JSON that are kept for replays, enforced there too."""


class StoredRule(internal.SavedRule, frozen=True):
    """A saved filter rule as Redis keeps it: with its canonical text. ``created`` is the time of saving (ISO 8601)."""

    created: str = ""


class _RemovedRule(internal.SavedRule, frozen=True):
    """A removed rule, or the version of a rule before a change. ``removed`` is the cursor at which it ended.

    Redis keeps a limited number of removed rules. One object with an empty id stands for the forgotten ones: all rules
    and versions that ended at its cursor or an earlier one.
    """

    removed: str = ""


class AddRuleOutcome(NamedTuple):
    """The result of :meth:`StoredRules.add` for one rule.

    Attributes:
        saved: The rule as it is stored now. None if it was not stored, because of a dry run, or because a duplicate
            prevented all rules of the call.
        is_duplicate: Whether the same rule was stored before, or occurs earlier in the same call.
    """

    saved: StoredRule | None
    is_duplicate: bool


class StoredRules(Noun):
    """Adds, changes, removes and reads the filter rules that a user saves.

    No two rules of a user have the same text and tag. A user has at most :data:`MAX_RULES_PER_USER` rules. Each write
    that changes rules appends one ``rules`` entry to the log. When the user's streams reach this entry, they switch to
    the new rules. Removed rules are kept for streams that begin before the removal: while it is on the log, and up to
    :data:`MAX_REMOVED_BYTES_PER_USER`.
    """

    async def get_all(self, uid: str) -> tuple[list[StoredRule], Position]:
        """Return a user's rules, oldest first, and the position of the log's last entry at the same moment."""
        rules = ("HVALS", keys.key_for("rules", uid))
        rows, newest = await self._redis.execute_at_once(rules, READ_NEWEST_ENTRY)
        saved = [msgspec.json.decode(row, type=StoredRule) for row in rows]
        return sorted(saved, key=lambda rule: int(rule.id)), newest_position(newest)

    async def get_all_at(self, uid: str, position: Position) -> tuple[list[internal.SavedRule], Position]:
        """Return the rules that a user had at a position of the log, oldest first, and this position.

        Redis forgets the oldest removed rules. If it has forgotten a rule of this position, return the rules at the
        first later position at which Redis knows all of them, and that position. The ids of rules and removals are in
        the order of the log. A rule that was changed has several versions, each of which ended at its removal.
        """
        living, removed = ("HVALS", keys.key_for("rules", uid)), keys.key_for("removed_rules", uid)
        removed_later = ("ZRANGEBYSCORE", removed, f"({position.status_number}", "+inf")
        rows, later = await self._redis.execute_at_once(living, removed_later)
        gone = [msgspec.json.decode(row, type=_RemovedRule) for row in later]
        known = max([position, *(parse_cursor(rule.removed.encode()) for rule in gone if not rule.id)])
        rules = [rule for rule in gone if rule.id] + [msgspec.json.decode(row, type=internal.SavedRule) for row in rows]
        then: dict[str, internal.SavedRule] = {}
        for rule in rules:  # of the versions that ended later, the first one was in force
            if int(rule.id) <= known.status_number:
                then.setdefault(rule.id, rule)
        return sorted(then.values(), key=lambda rule: int(rule.id)), known

    async def add(
        self,
        uid: str,
        rules: Sequence[tuple[str, str]],
        idempotency_key: IdempotencyKey,
        *,
        all_or_nothing: bool = False,
        dry_run: bool = False,
    ) -> list[AddRuleOutcome]:
        """Save rules, given as (canonical text, tag). Returns an outcome for each rule, in the same order.

        A rule that is already stored (a duplicate) stays as it is. With ``all_or_nothing``, one duplicate prevents the
        call from storing any rule. With ``dry_run``, the call stores no rule. Raises TooLarge ``too_many`` if the user
        would have more than `MAX_RULES_PER_USER` rules or `MAX_RULE_BYTES_PER_USER` bytes of them. Raises NotFound
        for a repeated call if one of its rules is removed and the log no longer has the entry of the first call.
        """
        members = [msgspec.json.encode({"rule": text, "tag": tag})[1:-1] for text, tag in rules]
        reply = await self._scripts.write(
            "saved_rules_add", idempotency_key, uid=uid, all_or_nothing=int(all_or_nothing), dry_run=int(dry_run),
            rest=members,
        )  # fmt: skip
        # A word is ``+<id>`` for a new rule and ``=<id>`` for a duplicate.
        not_created = set[str]()
        if not reply.is_repeat:
            words = reply.first_time["outcomes"].decode().split()
            if reply.value == b"unchanged":
                not_created = {word[1:] for word in words if word.startswith("+")}
        elif (logged := await read_wire_member(self._redis, position_of(reply), "outcomes")) is not None:
            words = msgspec.json.decode(logged, type=str).split()
        else:  # the entry was trimmed: the rules that are saved now count as new
            saved, _ = await self.get_all(uid)
            ids = {(rule.rule, rule.tag): rule.id for rule in saved}
            if not ids.keys() >= set(rules):
                raise NotFound("a rule of this request is removed", param="rules")
            words = [f"+{ids[rule]}" for rule in rules]
        outcomes = []
        for word, (text, tag) in zip(words, rules, strict=True):
            rule_id, stored = word[1:], None
            if rule_id not in not_created:
                stored = StoredRule(rule_id, text, tag, created=format_iso_time(created_ms(int(rule_id))))
            outcomes.append(AddRuleOutcome(stored, word.startswith("=")))
        return outcomes

    async def change(
        self, uid: str, rule_id: str, rule: tuple[str, str], idempotency_key: IdempotencyKey, *, dry_run: bool = False
    ) -> StoredRule:
        """Give a saved rule another (canonical text, tag). It keeps its id. Returns the rule as it is afterwards.

        With ``dry_run``, or if the rule has this text and tag already, the call writes nothing. Raises NotFound if the
        user has no rule with this id, Conflict if another rule has this text and tag, and TooLarge ``too_many`` if the
        user would have more than `MAX_RULE_BYTES_PER_USER` bytes of rules.
        """
        text, tag = rule
        member = msgspec.json.encode({"rule": text, "tag": tag})[1:-1]
        reply = await self._scripts.write(
            "saved_rules_change", idempotency_key, uid=uid, id=rule_id, dry_run=int(dry_run), member=member
        )
        if not reply.is_repeat and (holder := reply.first_time["holder"].decode()) != rule_id:
            raise Conflict(f"a rule with this text and tag already exists as {holder}", param="rule")
        return StoredRule(rule_id, text, tag, created=format_iso_time(created_ms(int(rule_id))))

    async def remove(
        self, uid: str, ids: Iterable[str], idempotency_key: IdempotencyKey, *, dry_run: bool = False
    ) -> list[str]:
        """Remove saved rules by id. Returns those of the ids that existed. With ``dry_run``, removes no rule."""
        rest = list(dict.fromkeys(ids))
        reply = await self._scripts.write(
            "saved_rules_remove", idempotency_key, uid=uid, dry_run=int(dry_run), rest=rest
        )
        if reply.is_repeat:
            removed = await read_wire_member(self._redis, position_of(reply), "removed")
            return list(ids) if removed is None else msgspec.json.decode(removed, type=list[str])
        return list(reply.first_time["removed"].decode().split())

    async def remove_one(self, uid: str, rule_id: str, idempotency_key: IdempotencyKey) -> None:
        """Remove one saved rule. Raises NotFound if the user has no rule with this id."""
        if not await self.remove(uid, [rule_id], idempotency_key):
            raise NotFound("unknown rule", param="id")
