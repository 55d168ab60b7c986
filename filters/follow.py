"""``follow``: what certain people do, and what is done to them."""

import re
from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters.base import Filter, MatchedItem, Role
from filters.comma_list import split_list
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import Clause, Key, user_key

MAX_IDS = 5_000
"""The most ids of one filter."""

ME = "@me"
"""Stands for those whom the asking user follows."""

_STATUS_KINDS = frozenset({"post", "delete"})
_ID = re.compile(r"0|[1-9][0-9]{0,19}")


class Follow(Filter):
    """Events by, in reply to, or reposting the users named (Streaming spec, ``follow``); mentions do not count.

    ``@me`` matches nothing until :meth:`with_following` says whom that means.
    """

    __slots__ = ("_following", "ids", "includes_me")

    name: ClassVar[str] = "follow"
    role: ClassVar[Role] = "any"
    help: ClassVar[str] = "User ids, comma-joined; `@me` stands for those whom you follow."

    def __init__(
        self, ids: Collection[str], *, includes_me: bool = False, following: Collection[str] | None = None
    ) -> None:
        self.ids = frozenset(ids)
        self.includes_me = includes_me
        self._following = following

    @classmethod
    def parse(cls, value: str) -> Self:
        items = split_list(value, param="follow", max_items=MAX_IDS, noun="ids")
        ids = frozenset(items) - {ME}
        for item in ids:
            if not _ID.fullmatch(item):
                raise ParameterError(f"follow takes user ids and @me, not {item[:40]!r}", param="follow")
        return cls(ids, includes_me=ME in items)

    def with_following(self, following: Collection[str]) -> "Follow":
        """The same with ``@me`` standing for ``following``, a set that its owner goes on changing."""
        return Follow(self.ids, includes_me=self.includes_me, following=following) if self.includes_me else self

    @property
    def canonical_form(self) -> Hashable:
        # Two users' @me are two filters, so the set itself takes part.
        return self.ids, self.includes_me, None if self._following is None else id(self._following)

    def candidate_keys(self) -> frozenset[Key]:
        """Those of the ids, and of those followed at the moment."""
        return frozenset(map(user_key, self.ids)).union(map(user_key, self._following or ()))

    def exact_clauses(self) -> Collection[Clause] | None:
        # A live set may lose an id between two events: only matches() sees that.
        return None if self.includes_me else [frozenset({user_key(user_id)}) for user_id in self.ids]

    def matches(self, event: Event) -> bool:
        if not self.ids.isdisjoint(event.user_ids):
            return True
        following = self._following
        return following is not None and any(user_id in following for user_id in event.user_ids)

    def explain(self, event: Event) -> list[MatchedItem]:
        """Each user who is asked for and concerned, and what they are to the event."""
        following = self._following or ()
        asked = (user_id for user_id in sorted(event.user_ids) if user_id in self.ids or user_id in following)
        return [{"filter": "follow", "user": user_id, "as": _role_in_event(user_id, event)} for user_id in asked]


def _role_in_event(user_id: str, event: Event) -> str:
    """What a user is to an event that concerns them; of several parts the first."""
    if user_id == event.author:
        return "author"
    if user_id == event.reply_to:
        return "reply"
    if user_id == event.reposted_author:
        return "repost"
    return "mention" if event.kind in _STATUS_KINDS else "target"
