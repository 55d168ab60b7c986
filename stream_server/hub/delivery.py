"""The one decision what a client receives of an entry.

`decide` answers it for live private views, replay, long polls and previews. Live shared groups use the same parts, but
once per entry instead of once per client: `PublicRenderings` renders the entry, and the subscription index matches it.
"""

from typing import NamedTuple

import msgspec

from filters.base import Filter, FilterFailure
from filters.subscription import Subscription
from stream_server.events.entry import EncodeEntry, Entry
from stream_server.events.kinds import PUBLIC_AUDIENCE
from stream_server.hub.visibility.account_status import AccountStatus
from stream_server.hub.visibility.private_view import PrivateView
from stream_server.hub.visibility.rendering import (
    NOTHING_DELETED,
    Deleted,
    entry_to_match,
    is_removal,
    remove_deleted,
)
from stream_server.hub.visibility.viewer import Viewer

View = PrivateView | Viewer | AccountStatus
"""The object that renders entries for a client: its private view, else its user's viewer.

An impersonal stream has the account status.
"""


class Delivery(NamedTuple):
    """An entry for one client.

    Attributes:
        entry: The entry as this client may see it.
        matched_json: Which filters or rules matched, as JSON. None if the subscription's messages do not report that.
    """

    entry: Entry
    matched_json: bytes | None

    def frame(self, encode_entry: EncodeEntry) -> bytes:
        """Return the message as ``encode_entry`` frames it."""
        return self.entry.frame(encode_entry, self.matched_json)


def decide(entry: Entry, subscription: Subscription, view: View, deleted: Deleted = NOTHING_DELETED) -> Delivery | None:
    """Return what a client with this subscription and view receives of an entry, None if it receives nothing.

    ``deleted`` says what of the entry is deleted by now, for a replay. Raises `FilterFailure` if a filter raises, and
    `MalformedEntry`.
    """
    if isinstance(view, PrivateView):
        rendered = view.render(entry, subscription, deleted)
    else:
        rendered = _render_shared(entry, subscription, view, deleted)
    if rendered is None:
        return None
    matched_json = encode_matched(subscription, entry_to_match(entry, rendered))
    return Delivery(remove_deleted(entry, rendered, deleted), matched_json)


def _render_shared(
    entry: Entry, subscription: Subscription, view: Viewer | AccountStatus, deleted: Deleted
) -> Entry | None:
    """Return the entry as a client without a private view sees it, None if it is hidden, deleted or not matched.

    Most entries do not match, so the filter runs before visibility is computed, except for quotes.
    """
    if deleted.subject and not is_removal(entry):
        return None
    if entry.quoted_author is None:
        return view.render_today(entry) if subscription.matches(entry.event) else None
    rendered = view.render_today(entry)
    if rendered is None:
        return None
    if rendered is entry and deleted.original:
        rendered = entry.without_original()
    return rendered if subscription.matches(rendered.event) else None


class PublicRenderings(NamedTuple):
    """A live entry as shared groups see it. Computed once per entry.

    Attributes:
        everyone: For impersonal streams. None if the entry is hidden from them.
        public_view: For users who see exactly the public view. It differs only in a quote of a restricted author: such
            a quote is shown without its original.
    """

    everyone: Entry | None
    public_view: Entry | None


def render_public(entry: Entry, account_status: AccountStatus) -> PublicRenderings:
    """Return an entry as live shared groups see it. Raises `MalformedEntry`."""
    if entry.audience != PUBLIC_AUDIENCE:
        return PublicRenderings(None, None)
    if not account_status.restricted:
        return PublicRenderings(entry, entry)
    everyone = account_status.render_today(entry)
    if everyone is None and entry.quoted_author is not None and entry.event.author not in account_status.restricted:
        return PublicRenderings(None, entry.without_original())
    return PublicRenderings(everyone, everyone)


def encode_matched(subscription: Subscription, entry: Entry) -> bytes | None:
    """Return as JSON which filters or rules of the subscription matched, None if its messages do not report that.

    Raises `FilterFailure` if a filter raises or returns a value that cannot be encoded.
    """
    if not subscription.reports_matches:
        return None
    try:
        return msgspec.json.encode(subscription.matched_items(entry.event))
    except FilterFailure:
        raise
    except Exception as error:
        # A filter of a third party returned a value that is not JSON.
        raise FilterFailure(_find_unencodable_filter(subscription, entry), error) from error


def _find_unencodable_filter(subscription: Subscription, entry: Entry) -> Filter:
    """Return the first filter whose match report cannot be encoded as JSON; the last filter if each can."""
    for base in subscription.bases:
        try:
            msgspec.json.encode(subscription.base_matched_items(base, entry.event))
        except Exception:  # noqa: BLE001 - a third party's value may make the encoder raise anything
            return base
    return subscription.bases[-1]
