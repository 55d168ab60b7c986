"""Who is here: members by their user, so that a token's end ends its streams and a follow finds its follower."""

import asyncio
from typing import TypeVar

from stream_server.events import Entry, MalformedEntry
from stream_server.hub.closing import Closing
from stream_server.hub.group import Group
from stream_server.hub.member import Member

_Item = TypeVar("_Item")

REMEMBERED = 10_000
"""So many of the last revoked tokens are remembered here."""


class People:
    """All members, live or catching up, and the groups of those whose filter follows the graph.

    ``nobody`` is set while there is no member.
    """

    def __init__(self) -> None:
        self._members: dict[str, set[Member]] = {}
        self._groups: dict[str, set[Group]] = {}
        self._revoked: dict[tuple[str, str], Closing] = {}
        self.nobody = asyncio.Event()
        self.nobody.set()

    def __len__(self) -> int:
        return sum(map(len, self._members.values()))

    def add(self, member: Member) -> None:
        """``member`` is here; at once ended if its token was revoked between its check and this moment."""
        self._members.setdefault(member.ask.user_id, set()).add(member)
        self.nobody.clear()
        revoked = self._revoked.get((member.ask.user_id, member.ask.jti))
        if revoked is not None:
            member.close(revoked)

    def discard(self, member: Member) -> None:
        """``member`` is gone."""
        _discard(self._members, member.ask.user_id, member)
        if not self._members:
            self.nobody.set()

    def members(self) -> list[Member]:
        """Everyone, as a list of its own: ending a member changes who is here."""
        return [member for members in self._members.values() for member in members]

    def of(self, user_id: str) -> tuple[Member, ...]:
        """A user's members, as they are at this moment."""
        return tuple(self._members.get(user_id, ()))

    def close(self, user_id: str, jti: str | None, closing: Closing) -> None:
        """End the streams of one token, or all of a user's where ``jti`` is None."""
        if jti is not None:
            self._revoked[user_id, jti] = closing
            if len(self._revoked) > REMEMBERED:
                del self._revoked[next(iter(self._revoked))]
        for member in self.of(user_id):
            if jti is None or member.ask.jti == jti:
                member.close(closing)

    def add_group(self, group: Group) -> None:
        """A live group; kept if its filter follows the graph."""
        if group.personal is not None and group.personal.following is not None:
            self._groups.setdefault(group.personal.user_id, set()).add(group)

    def discard_group(self, group: Group) -> None:
        """The group has nobody live any more."""
        if group.personal is not None:
            _discard(self._groups, group.personal.user_id, group)

    def groups(self) -> list[Group]:
        """All live groups whose filter follows the graph."""
        return [group for groups in self._groups.values() for group in groups]

    def own_groups(self, entry: Entry) -> list[Group]:
        """The live groups of streams of what concerns their user, for an entry that is for certain users only."""
        if entry.group is None:
            found = [group for user_id in entry.addressees for group in self._groups.get(user_id, ())]
        else:
            found = self.groups()  # who is in a group of people is known to viewers; a stream each asks its own
        return [group for group in found if group.personal is not None and group.personal.own]

    def groups_concerned(self, entry: Entry) -> list[Group]:
        """The live groups whose person follows or unfollows in ``entry``."""
        if not self._groups:
            return []
        try:
            groups = self._groups.get(entry.event.author or "", ())
        except MalformedEntry:
            return []
        return [group for group in groups if group.personal is not None and group.personal.concerns(entry)]


def _discard(sets: dict[str, set[_Item]], key: str, item: _Item) -> None:
    items = sets.get(key)
    if items is not None:
        items.discard(item)
        if not items:
            del sets[key]
