"""The saved rules of streams: read once for all who have the same, changed by the entries that say so."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable
from weakref import WeakValueDictionary

from filters.error import ParameterError
from filters.rule import SavedRules
from filters.rules.named_rule import NamedRule
from filters.rules.rule import Rule
from stream_server.events.entry import Entry, SavedRule
from stream_server.hub.client import Client
from stream_server.hub.messages import StreamNotice

logger = logging.getLogger(__name__)


MAX_PARSE_SECONDS = 0.004
"""So long rules are read in one turn of the loop."""

MAX_RULES_PER_SLICE = 50
"""So many rules are listed by their keys in one turn of the loop."""


class SavedRulesCache:
    """``read`` is from a rule's text to the rule; equal texts may give one object, which users then share.

    What a user has saved is made once for all their streams, which change alike: a thousand long rules have two
    hundred thousand keys.
    """

    def __init__(self, parse_rule: Callable[[str], Rule]) -> None:
        self._parse_rule = parse_rule
        self._cache: WeakValueDictionary[tuple[str, tuple[str, ...]], SavedRules] = WeakValueDictionary()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def build(self, uid: str, saved: Collection[SavedRule]) -> SavedRules:
        """A user's rules as filters have them; one that cannot be read any more (a filter is gone) matches nothing."""
        return await self._get_changed(SavedRules(uid), saved, ())

    async def apply_change(self, client: Client, entry: Entry) -> StreamNotice:
        """From this entry on the member goes by the rules as they are then; gives what to tell."""
        change = entry.rules_change()
        before = client.subscription.find_base(SavedRules.name)
        assert isinstance(before, SavedRules)
        after = await self._get_changed(before, change.added, change.removed)
        client.subscription = client.subscription.replace_base(after)
        added = [one.id for one in change.added]
        return StreamNotice(
            "effective", entry.position, {"added": added, "removed": change.removed, "rules": len(after)}
        )

    async def _get_changed(
        self, before: SavedRules, added: Collection[SavedRule], removed: Collection[str]
    ) -> SavedRules:
        """The same after a change. Rules do not change, so their ids say which these are."""
        ids = (*(one for one in before.rule_ids if one not in removed), *(one.id for one in added))
        async with self._locks.setdefault(before.user_id, asyncio.Lock()):
            made = self._cache.get((before.user_id, ids))
            if made is None:
                made = self._cache[before.user_id, ids] = await self._add_in_slices(
                    before.with_changes((), removed), added
                )
            return made

    async def _add_in_slices(self, rules: SavedRules, added: Iterable[SavedRule]) -> SavedRules:
        """With more of them. A thousand may take seconds: others have their turns meanwhile."""
        named = await self._parse_saved(added)
        for at in range(0, len(named), MAX_RULES_PER_SLICE):
            rules = rules.with_changes(named[at : at + MAX_RULES_PER_SLICE], ())
            await asyncio.sleep(0)
        return rules

    async def _parse_saved(self, saved: Iterable[SavedRule]) -> list[NamedRule]:
        found = []
        ends = time.monotonic() + MAX_PARSE_SECONDS
        for one in saved:
            if time.monotonic() > ends:
                await asyncio.sleep(0)
                ends = time.monotonic() + MAX_PARSE_SECONDS
            try:
                found.append(NamedRule(one.id, one.tag, self._parse_rule(one.rule)))
            except ParameterError as error:
                logger.warning("rule %s is passed over: %s", one.id, error.message)
        return found
