"""All clients by user, so that the end of a token ends its streams and a follow finds the follower's groups.

Tokens expire at whole seconds, and many streams open within one. So the clients whose tokens expire at the same moment
share one timer: a timer of its own would take half a kilobyte, and longer to make than most of what a stream needs.

The remaining life of a token is measured when its stream opens. Then a monotonic clock counts it down, so a later jump
of the clock changes nothing. A client that comes after a jump does not share the timer of those before it.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from contextvars import Context
from functools import partial
from typing import Any, TypeVar

import msgspec

from filters.inverted_lists import CompactSet, with_item, without_item
from stream_server.events.content import MalformedEntry
from stream_server.events.entry import Entry
from stream_server.events.internal import Revocation, StreamCommand
from stream_server.hub.client import Client, StreamToken
from stream_server.hub.disconnect import BY_COMMAND, CLOSED_BY_USER, TOKEN_EXPIRED, TOKEN_REVOKED, DisconnectReason
from stream_server.hub.group import ClientGroup

_Item = TypeVar("_Item", bound=Hashable)

_TOKEN, _SESSION, _ALL_TOKENS = "token ", "session ", "all"
"""Beginnings of what a revocation names. Ids come from clients' tokens, so each kind has a beginning of its own."""

POLL = "poll"
"""Instead of the name of a framing: long polls, and previews of rules."""

EMPTY_CONTEXT = Context()
"""The context of timers, so that a timer does not keep alive the context of the request that started it."""

SHARED_SECONDS = 0.1
"""Largest difference in seconds between the end of a client's token and the timer that it shares."""


class ExpiryGroup:
    """The clients that share a timer, which ends them at ``ends_at`` (seconds of the loop's clock)."""

    __slots__ = ("clients", "ends_at", "timer")

    def __init__(self, ends_at: float, end: Callable[["ExpiryGroup"], None]) -> None:
        """Start the timer, which calls ``end`` with this group."""
        self.clients: set[Client] = set()
        self.ends_at = ends_at
        self.timer = asyncio.get_running_loop().call_at(ends_at, end, self, context=EMPTY_CONTEXT)


class TokenExpiry:
    """The clients of one process by the moment when their tokens expire, in seconds since 1970.

    A moment has several groups only if the clock jumped between the clients.
    """

    def __init__(self) -> None:
        self._groups: dict[float, list[ExpiryGroup]] = {}

    def watch(self, client: Client) -> None:
        """Disconnect the client when its present token expires. Call :meth:`forget` before it gets another token."""
        moment = client.token.expires_at
        if not math.isfinite(moment):
            return
        ends_at = asyncio.get_running_loop().time() + max(0.0, moment - time.time())
        groups = self._groups.setdefault(moment, [])
        for group in groups:
            if abs(group.ends_at - ends_at) <= SHARED_SECONDS:
                group.clients.add(client)
                return
        groups.append(ExpiryGroup(ends_at, partial(self._end, moment)))
        groups[-1].clients.add(client)

    def forget(self, client: Client) -> None:
        """Watch a client no longer. Stop the timer that it was the last to need."""
        moment = client.token.expires_at
        for group in self._groups.get(moment, ()):
            if client in group.clients:
                group.clients.remove(client)
                if not group.clients:
                    group.timer.cancel()
                    self._drop(moment, group)
                return

    def _end(self, moment: float, group: ExpiryGroup) -> None:
        self._drop(moment, group)
        for client in group.clients:
            client.disconnect(TOKEN_EXPIRED)

    def _drop(self, moment: float, group: ExpiryGroup) -> None:
        groups = self._groups[moment]
        groups.remove(group)
        if not groups:
            del self._groups[moment]


class ClientRegistry:
    """All clients of the process by user, and the live groups whose filter depends on whom their user follows.

    ``empty`` is an `asyncio.Event` that is set while the process has no client. ``on_stream`` is called when a stream
    opens (True) or ends (False), but not for long polls. ``open_by_framing`` counts the clients by the names of their
    framings, and those without a socket as :data:`POLL`.
    """

    def __init__(self) -> None:
        self._clients: dict[str, CompactSet[Client]] = {}
        self._following_groups: dict[str, CompactSet[ClientGroup]] = {}
        self._group_of_view: dict[int, ClientGroup] = {}
        self._revocations: dict[tuple[str, str], float] = {}
        self._closed_early: dict[str, DisconnectReason] = {}  # by connection
        self._expiry = TokenExpiry()
        self.on_stream: Callable[[Client, bool], None] = lambda *_: None
        self.open_by_framing: Counter[str] = Counter()
        self.empty = asyncio.Event()
        self.empty.set()

    def __len__(self) -> int:
        return sum(map(len, self._clients.values()))

    def add(self, client: Client) -> None:
        """Add a client, until its token expires. Disconnect it at once if the token was revoked after the check."""
        self._clients[client.user_id] = with_item(self._clients.get(client.user_id, ()), client)
        self.open_by_framing[POLL if client.is_poll else client.framing.name] += 1
        self.empty.clear()
        self._expiry.watch(client)
        if not client.is_poll:
            self.on_stream(client, True)
        if self._revocations and self._is_revoked(client):
            client.disconnect(TOKEN_REVOKED)
        if self._closed_early and (reason := self._closed_early.pop(client.connection_id, None)) is not None:
            client.disconnect(reason)

    def discard(self, client: Client) -> None:
        if client not in self._clients.get(client.user_id, ()):
            return
        _discard_item(self._clients, client.user_id, client)
        self.open_by_framing[POLL if client.is_poll else client.framing.name] -= 1
        self._expiry.forget(client)
        if not client.is_poll:
            self.on_stream(client, False)
        if not self._clients:
            self.empty.set()

    def list_clients(self) -> list[Client]:
        """Return all clients as a new list, because disconnecting a client changes the registry."""
        return [client for clients in self._clients.values() for client in clients]

    def clients_of(self, user_id: str) -> tuple[Client, ...]:
        return tuple(self._clients.get(user_id, ()))

    def count_of(self, user_id: str) -> int:
        return len(self._clients.get(user_id, ()))

    def revoke(self, revoked: Revocation) -> None:
        """End the streams of the revoked tokens and ended sessions of a user, and remember them for new streams.

        A stream that opens at this moment may have had its token checked before the revocation.
        """
        user_id = revoked.uid
        if revoked.jti is not None:
            self._remember(user_id, _TOKEN + revoked.jti, math.inf)
        for session in revoked.sessions:
            self._remember(user_id, _SESSION + session, math.inf)
        if revoked.before is not None:
            self._remember(user_id, _ALL_TOKENS, revoked.before)
        for client in self.clients_of(user_id):
            if self._is_revoked(client):
                client.disconnect(TOKEN_REVOKED)

    def _remember(self, user_id: str, what: str, issued_until: float) -> None:
        self._revocations[user_id, what] = issued_until
        _forget_oldest(self._revocations)

    def _is_revoked(self, client: Client) -> bool:
        user_id, token = client.user_id, client.token
        if token.session:
            return (user_id, _SESSION + token.session) in self._revocations
        is_listed = (user_id, _TOKEN + token.jti) in self._revocations
        return is_listed or token.issued_at <= self._revocations.get((user_id, _ALL_TOKENS), -math.inf)

    def obey(self, command: StreamCommand) -> None:
        """Close or prolong the stream that a command names, if this process has it.

        A stream may be closed before it is here: another connection took its subscription over while it was opening.
        """
        named = [client for client in self.clients_of(command.uid) if client.connection_id == command.connection]
        reason = BY_COMMAND.get(command.code, CLOSED_BY_USER)
        if command.action == "close" and not named:
            self._closed_early[command.connection] = reason
            _forget_oldest(self._closed_early)
        for client in named:
            if command.action == "close":
                client.disconnect(reason)
                continue
            # The filters may have changed since the command was sent, so they may require other scopes now.
            suffices = command.scopes is None or client.subscription.required_scopes.issubset(command.scopes)
            if command.action == "prolong" and command.token is not None and suffices:
                self.prolong(client, StreamToken(*msgspec.structs.astuple(command.token)))

    def prolong(self, client: Client, token: StreamToken) -> None:
        """Let a client go on with another token. End it if that token was revoked after the request was checked."""
        self._expiry.forget(client)
        client.token = token
        self._expiry.watch(client)
        if self._is_revoked(client):
            client.disconnect(TOKEN_REVOKED)

    def add_private_group(self, group: ClientGroup) -> None:
        """Remember a new live group that has a private view. Ignore other groups."""
        view = group.private_view
        if view is not None:
            self._group_of_view[view.number] = group
            if view.following is not None:
                uid = view.viewer.user_id
                self._following_groups[uid] = with_item(self._following_groups.get(uid, ()), group)

    def discard_private_group(self, group: ClientGroup) -> None:
        """Forget a group (see `add_private_group`) after its last client left."""
        view = group.private_view
        if view is not None:
            del self._group_of_view[view.number]
            _discard_item(self._following_groups, view.viewer.user_id, group)

    def groups_of_views(self, numbers: Iterable[int]) -> list[ClientGroup]:
        """Return the live groups of private views, by their numbers. A view whose client catches up has no group."""
        return [group for number in numbers if (group := self._group_of_view.get(number)) is not None]

    def addressed_groups(self, entry: Entry) -> list[ClientGroup]:
        """Return the groups of user streams that may get this entry, which is for named users or a user group."""
        following = self._following_groups
        if entry.audience_group is None:
            candidates = [group for uid in entry.audience_users for group in following.get(uid, ())]
        else:  # only a viewer knows the memberships of its user
            candidates = [group for groups in following.values() for group in groups]
        return [group for group in candidates if group.private_view is not None and group.private_view.is_own_stream]

    def groups_changing_follows(self, entry: Entry) -> list[ClientGroup]:
        """For a `follow` or `unfollow` entry, return the live groups of its author whose filters it changes."""
        if not self._following_groups:
            return []
        try:
            groups = self._following_groups.get(entry.event.author or "", ())
        except MalformedEntry:
            return []
        return [group for group in groups if group.private_view and group.private_view.is_follow_change(entry)]


def _forget_oldest(remembered: dict[Any, Any]) -> None:
    """Remove the oldest of more than 10,000 values: what they are about has happened since, or never will."""
    if len(remembered) > 10_000:
        del remembered[next(iter(remembered))]


def _discard_item(items_by_user: dict[str, CompactSet[_Item]], user_id: str, item: _Item) -> None:
    items = without_item(items_by_user.get(user_id, ()), item)
    if items:
        items_by_user[user_id] = items
    else:
        items_by_user.pop(user_id, None)
