"""The filter ``follow``: events by certain users, and events that concern them."""

import re
from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters.base import Filter, MatchedItem, Role
from filters.comma_list import split_list
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import Clause, Key, user_key

MAX_IDS = 5_000
"""Maximum number of ids of one filter."""

ME = "@me"
"""Stands for the users whom the asking user follows."""

_STATUS_KINDS = frozenset({"post", "delete"})
USER_ID = re.compile(r"0|[1-9][0-9]{0,19}")
"""A user id: decimal digits without leading zeros."""


class Follow(Filter):
    """Events by the given users, replies to them, and reposts of them (Twitter's Streaming API, ``follow``).

    Mentions do not count. ``@me`` matches no event until :meth:`with_following` supplies the followed users.
    """

    __slots__ = ("_following", "ids", "includes_me")

    name: ClassVar[str] = "follow"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "User ids, comma-joined; `@me` stands for the users whom you follow."

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
            if not USER_ID.fullmatch(item):
                raise ParameterError(f"follow takes user ids and @me, not {item[:40]!r}", param="follow")
        return cls(ids, includes_me=ME in items)

    def with_following(self, following: Collection[str]) -> "Follow":
        """Return a copy in which ``@me`` matches the users in ``following``. The caller may change this set later."""
        return Follow(self.ids, includes_me=self.includes_me, following=following) if self.includes_me else self

    @property
    def canonical_form(self) -> Hashable:
        # The @me of two users are two different filters, so the identity of the set is part of the form.
        return self.ids, self.includes_me, None if self._following is None else id(self._following)

    def candidate_keys(self) -> frozenset[Key]:
        """Return the keys of the given ids and of the users followed at present."""
        return frozenset(map(user_key, self.ids)).union(map(user_key, self._following or ()))

    def exact_clauses(self) -> Collection[Clause] | None:
        # The set of followed users may lose an id between two events, and only matches() sees this.
        return None if self.includes_me else [frozenset({user_key(user_id)}) for user_id in self.ids]

    def matches(self, event: Event) -> bool:
        if not self.ids.isdisjoint(event.user_ids):
            return True
        following = self._following
        return following is not None and any(user_id in following for user_id in event.user_ids)

    def explain(self, event: Event) -> list[MatchedItem]:
        """Return each followed user whom the event concerns, and the role of this user in the event."""
        following = self._following or ()
        concerned = (user_id for user_id in sorted(event.user_ids) if user_id in self.ids or user_id in following)
        return [{"filter": "follow", "user": user_id, "as": _role_in_event(user_id, event)} for user_id in concerned]


def _role_in_event(user_id: str, event: Event) -> str:
    """Return the role of a user in an event that concerns them. If there are several roles, the first one counts."""
    if user_id == event.author:
        return "author"
    if user_id == event.reply_to:
        return "reply"
    if user_id == event.reposted_author:
        return "repost"
    return "mention" if event.kind in _STATUS_KINDS else "target"
