"""The saved rules of streams: read once for all who have the same, changed by the entries that say so."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from filters.error import ParameterError
from filters.rule import SavedRules
from filters.rules.named import NamedRule
from stream_server.events import Entry, SavedRule
from stream_server.hub.control import Notice
from stream_server.hub.member import Member

if TYPE_CHECKING:
    from filters.rules.rule import Rule

logger = logging.getLogger(__name__)


TURN_SECONDS = 0.004
"""So long rules are read in one turn of the loop."""

AT_ONCE = 50
"""So many rules are listed by their keys in one turn of the loop."""


class Rulebook:
    """``read`` is from a rule's text to the rule; equal texts may give one object, which users then share.

    What a user has saved is made once for all their streams, which change alike: a thousand long rules have two
    hundred thousand keys.
    """

    def __init__(self, read: Callable[[str], "Rule"]) -> None:
        self._read = read
        self._sets: WeakValueDictionary[tuple[str, tuple[str, ...]], SavedRules] = WeakValueDictionary()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def of(self, uid: str, saved: Collection[SavedRule]) -> SavedRules:
        """A user's rules as filters have them; one that cannot be read any more (a filter is gone) matches nothing."""
        return await self._made(SavedRules(uid), saved, ())

    async def amend(self, member: Member, entry: Entry) -> Notice:
        """From this entry on the member goes by the rules as they are then; gives what to tell."""
        change = entry.rules_change()
        before = member.subscription.base(SavedRules.name)
        assert isinstance(before, SavedRules)
        after = await self._made(before, change.added, change.removed)
        member.subscription = member.subscription.with_base(after)
        added = [one.id for one in change.added]
        return Notice(
            "effective", entry.position, {"added": added, "removed": change.removed, "rules": len(after)}
        )

    async def _made(self, before: SavedRules, added: Collection[SavedRule], removed: Collection[str]) -> SavedRules:
        """The same after a change. Rules do not change, so their ids say which these are."""
        ids = (*(one for one in before.ids if one not in removed), *(one.id for one in added))
        async with self._locks.setdefault(before.uid, asyncio.Lock()):
            made = self._sets.get((before.uid, ids))
            if made is None:
                made = self._sets[before.uid, ids] = await self._grown(before.changed((), removed), added)
            return made

    async def _grown(self, rules: SavedRules, added: Iterable[SavedRule]) -> SavedRules:
        """With more of them. A thousand may take seconds: others have their turns meanwhile."""
        named = await self._named(added)
        for at in range(0, len(named), AT_ONCE):
            rules = rules.changed(named[at : at + AT_ONCE], ())
            await asyncio.sleep(0)
        return rules

    async def _named(self, saved: Iterable[SavedRule]) -> list[NamedRule]:
        found = []
        ends = time.monotonic() + TURN_SECONDS
        for one in saved:
            if time.monotonic() > ends:
                await asyncio.sleep(0)
                ends = time.monotonic() + TURN_SECONDS
            try:
                found.append(NamedRule(one.id, one.tag, self._read(one.rule)))
            except ParameterError as error:
                logger.warning("rule %s is passed over: %s", one.id, error.message)
        return found
