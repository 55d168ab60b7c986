"""Saved rules of users: parsed once for all streams of a user, and changed by `rules` entries of the log."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from weakref import WeakValueDictionary

from filters.error import ParameterError
from filters.rule import SavedRules
from filters.rules.rule import NamedRule, Rule
from stream_server.events.entry import Entry, SavedRule
from stream_server.hub.client import Client
from stream_server.hub.messages import StreamNotice

logger = logging.getLogger(__name__)

MAX_RULES_PER_SLICE = 20
"""Number of rules whose keys are indexed in one iteration of the event loop."""


class SavedRulesCache:
    """The saved rules of the users who have streams in this process.

    All streams of a user share one `SavedRules`, because a thousand long rules have two hundred thousand index keys. It
    is dropped when no stream refers to it. ``parse_rule`` may return the same `Rule` for equal texts of many users.
    """

    def __init__(self, parse_rule: Callable[[str], Awaitable[Rule]]) -> None:
        self._parse_rule = parse_rule
        self._cache: WeakValueDictionary[tuple[str, tuple[str, ...]], SavedRules] = WeakValueDictionary()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def build(self, uid: str, saved: Collection[SavedRule]) -> SavedRules:
        """Return a user's rules as one filter. A rule that no longer parses (its plug-in is gone) matches nothing."""
        return await self._get_changed(SavedRules(uid), saved, ())

    async def apply_change(self, client: Client, entry: Entry) -> StreamNotice:
        """Apply a ``rules`` entry to the subscription of a client. Return the `effective` notice for its stream."""
        change = entry.rules_change()
        before = client.subscription.find_base(SavedRules.name)
        assert isinstance(before, SavedRules)
        after = await self._get_changed(before, change.added, change.removed)
        client.subscription = client.subscription.replace_base(after)
        added = [rule.id for rule in change.added]
        members: dict[str, object] = {"added": added, "removed": change.removed, "rules": len(after)}
        return StreamNotice("effective", entry.position, members)

    async def _get_changed(
        self, before: SavedRules, added: Collection[SavedRule], removed: Collection[str]
    ) -> SavedRules:
        """Return the rules that a user has after adding ``added`` and removing those with an id in ``removed``."""
        ids = (*(rule_id for rule_id in before.rule_ids if rule_id not in removed), *(rule.id for rule in added))
        async with self._locks.setdefault(before.user_id, asyncio.Lock()):
            rules = self._cache.get((before.user_id, ids))
            if rules is None:
                rules = await self._add_in_slices(before.with_changes((), removed), added)
                self._cache[before.user_id, ids] = rules
            return rules

    async def _add_in_slices(self, rules: SavedRules, added: Iterable[SavedRule]) -> SavedRules:
        """Return ``rules`` plus ``added``. Other tasks get their turn between slices: a thousand rules take seconds."""
        named = await self._parse_saved(added)
        for start in range(0, len(named), MAX_RULES_PER_SLICE):
            rules = rules.with_changes(named[start : start + MAX_RULES_PER_SLICE], ())
            await asyncio.sleep(0)
        return rules

    async def _parse_saved(self, saved: Iterable[SavedRule]) -> list[NamedRule]:
        parsed = []
        for rule in saved:
            try:
                parsed.append(NamedRule(rule.id, rule.tag, await self._parse_rule(rule.rule)))
            except ParameterError as error:
                logger.warning("saved rule %s cannot be parsed and matches nothing: %s", rule.id, error.message)
        return parsed
