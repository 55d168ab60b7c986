"""Who is here: members by their user, so that a token's end ends its streams and a follow finds its follower."""

import asyncio
from typing import TypeVar

from stream_server.events.entry import Entry
from stream_server.events.entry_fields import MalformedEntry
from stream_server.hub.client import Client
from stream_server.hub.disconnect import DisconnectReason
from stream_server.hub.group import ClientGroup

_Item = TypeVar("_Item")

MAX_REVOKED_TOKENS = 10_000
"""So many of the last revoked tokens are remembered here."""


class ClientRegistry:
    """All members, live or catching up, and the groups of those whose filter follows the graph.

    ``empty`` is set while there is no member.
    """

    def __init__(self) -> None:
        self._clients: dict[str, set[Client]] = {}
        self._following_groups: dict[str, set[ClientGroup]] = {}
        self._revoked_tokens: dict[tuple[str, str], DisconnectReason] = {}
        self.empty = asyncio.Event()
        self.empty.set()

    def __len__(self) -> int:
        return sum(map(len, self._clients.values()))

    def add(self, client: Client) -> None:
        """``client`` is here; at once ended if its token was revoked between its check and this moment."""
        self._clients.setdefault(client.request.user_id, set()).add(client)
        self.empty.clear()
        revoked = self._revoked_tokens.get((client.request.user_id, client.request.jti))
        if revoked is not None:
            client.disconnect(revoked)

    def discard(self, client: Client) -> None:
        """``client`` is gone."""
        _discard_item(self._clients, client.request.user_id, client)
        if not self._clients:
            self.empty.set()

    def list_clients(self) -> list[Client]:
        """Everyone, as a list of its own: ending a member changes who is here."""
        return [member for members in self._clients.values() for member in members]

    def clients_of(self, user_id: str) -> tuple[Client, ...]:
        """A user's members, as they are at this moment."""
        return tuple(self._clients.get(user_id, ()))

    def disconnect(self, user_id: str, jti: str | None, reason: DisconnectReason) -> None:
        """End the streams of one token, or all of a user's where ``jti`` is None."""
        if jti is not None:
            self._revoked_tokens[user_id, jti] = reason
            if len(self._revoked_tokens) > MAX_REVOKED_TOKENS:
                del self._revoked_tokens[next(iter(self._revoked_tokens))]
        for member in self.clients_of(user_id):
            if jti is None or member.request.jti == jti:
                member.disconnect(reason)

    def add_following_group(self, group: ClientGroup) -> None:
        """A live group; kept if its filter follows the graph."""
        if group.private_view is not None and group.private_view.following is not None:
            self._following_groups.setdefault(group.private_view.user_id, set()).add(group)

    def discard_following_group(self, group: ClientGroup) -> None:
        """The group has nobody live any more."""
        if group.private_view is not None:
            _discard_item(self._following_groups, group.private_view.user_id, group)

    def following_groups(self) -> list[ClientGroup]:
        """All live groups whose filter follows the graph."""
        return [group for groups in self._following_groups.values() for group in groups]

    def addressed_groups(self, entry: Entry) -> list[ClientGroup]:
        """The live groups of streams of what concerns their user, for an entry that is for certain users only."""
        if entry.audience_group is None:
            found = [group for user_id in entry.audience_users for group in self._following_groups.get(user_id, ())]
        else:
            found = (
                self.following_groups()
            )  # who is in a group of people is known to viewers; a stream each asks its own
        return [group for group in found if group.private_view is not None and group.private_view.is_own_stream]

    def groups_changing_follows(self, entry: Entry) -> list[ClientGroup]:
        """The live groups whose person follows or unfollows in ``entry``."""
        if not self._following_groups:
            return []
        try:
            groups = self._following_groups.get(entry.event.author or "", ())
        except MalformedEntry:
            return []
        return [
            group for group in groups if group.private_view is not None and group.private_view.is_follow_change(entry)
        ]


def _discard_item(items_by_user: dict[str, set[_Item]], user_id: str, item: _Item) -> None:
    items = items_by_user.get(user_id)
    if items is not None:
        items.discard(item)
        if not items:
            del items_by_user[user_id]
