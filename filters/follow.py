"""The filter ``follow``, and the filter behind a user's own stream: events by users and events that concern them."""

import re
from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters.base import Filter, MatchedItem, Role, split_list
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import IndexTerms, Key, user_key

MAX_IDS = 5_000  # of one filter
ME = "@me"  # stands for the users whom the asking user follows

USER_ID = re.compile(r"0|[1-9][0-9]{0,19}")  # a user id: decimal digits without leading zeros


class Follow(Filter):
    """The filter ``follow``: events by the given users, replies to them, and reposts of them (as in Twitter's API).

    Mentions do not count. ``@me`` means the users whom the client follows; :meth:`with_following` sets them.
    """

    __slots__ = ("_following", "ids", "includes_me")

    name: ClassVar[str] = "follow"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = (
        "User ids, comma-joined. A server also takes logins, and `foreign:` with a user's id of another site. "
        "`@me` stands for the users whom you follow."
    )

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
        """Return a copy in which ``@me`` means the users in ``following``, a set that the caller may change later."""
        return Follow(self.ids, includes_me=self.includes_me, following=following) if self.includes_me else self

    @property
    def canonical_form(self) -> Hashable:
        # The @me of two users are two different filters, so the identity of the set is part of the form.
        return self.ids, self.includes_me, None if self._following is None else id(self._following)

    def candidate_keys(self) -> frozenset[Key]:
        """Return the index keys of the given users and, for ``@me``, of the users followed at present."""
        return frozenset(map(user_key, self.ids)).union(map(user_key, self._following or ()))

    def index_terms(self) -> IndexTerms:
        # The set of followed users may lose an id between two events, and only matches() sees this.
        if self.includes_me:
            return IndexTerms((), dynamic_keys=self.candidate_keys())
        return IndexTerms([frozenset({user_key(user_id)}) for user_id in self.ids])

    def matches(self, event: Event) -> bool:
        if not self.ids.isdisjoint(event.user_ids):
            return True
        following = self._following
        return following is not None and any(user_id in following for user_id in event.user_ids)

    def explain(self, event: Event) -> list[MatchedItem]:
        """Return a JSON object for each user of this filter whom the event concerns, with the user's id and role."""
        following = self._following or ()
        concerned = (user_id for user_id in sorted(event.user_ids) if user_id in self.ids or user_id in following)
        return [{"filter": "follow", "user": user_id, "as": _role_in_event(user_id, event)} for user_id in concerned]


_BY_AUTHOR = frozenset({"post", "edit", "delete", "user_update", "user_delete", "protect", "unprotect"})
"""The kinds of events that a user's own stream has of each followed user."""


class Home(Filter):
    """The filter of ``/v1/stream/user``: what the user and followed users do, and what others do to the user.

    It matches the posts, deletes and account changes of the user and of followed users, and the follows, likes and
    comments by or to the user. The server makes this filter; clients cannot write it as a parameter. ``following`` is
    the set of followed users, which the server may change later. Messages and notifications are delivered without a
    filter.
    """

    __slots__ = ("_following", "_user_id")

    name: ClassVar[str] = "home"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "Events that concern the asking user."

    def __init__(self, user_id: str, following: Collection[str]) -> None:
        self._user_id = user_id
        self._following = following

    @classmethod
    def parse(cls, value: str) -> Self:  # noqa: ARG003 - the contract fixes the signature
        message = "home is not a parameter; it is the base of the user stream"
        raise ParameterError(message, param="home", code="unknown_parameter")

    @property
    def canonical_form(self) -> Hashable:
        return self._user_id, id(self._following)

    def candidate_keys(self) -> frozenset[Key]:
        """Return the index keys of the user and of the users whom the user follows at present."""
        return frozenset(map(user_key, (self._user_id, *self._following)))

    def matches(self, event: Event) -> bool:
        if event.kind in _BY_AUTHOR:
            return event.author == self._user_id or event.author in self._following
        involves = event.kind in {"follow", "unfollow", "like", "unlike", "comment", "uncomment"}
        return involves and self._user_id in event.user_ids


def _role_in_event(user_id: str, event: Event) -> str:
    """Return how an event concerns the user: as author, replied to, reposted, mentioned, or target (of a follow)."""
    if user_id == event.author:
        return "author"
    if user_id == event.reply_to:
        return "reply"
    if user_id == event.reposted_author:
        return "repost"
    return "mention" if event.kind in {"post", "edit", "delete"} else "target"
