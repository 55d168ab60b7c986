"""The one decision what a client receives of an entry.

`decide` answers it for live private views, replay, long polls and previews. Live shared groups use the same parts, but
once per entry instead of once per client: `RestrictedAccounts` renders the entry, and the subscription index matches
it.
"""

from typing import NamedTuple

from filters.base import Filter, FilterFailure
from filters.subscription import Subscription
from stream_server.events.entry import EncodeEntry, Entry
from stream_server.events.one_line import encode_json
from stream_server.hub.visibility.private_view import (
    NOTHING_DELETED,
    Deleted,
    PrivateView,
    entry_to_match,
    remove_deleted,
)
from stream_server.hub.visibility.restricted_accounts import RestrictedAccounts
from stream_server.hub.visibility.viewer import Viewer

View = PrivateView | Viewer | RestrictedAccounts
"""The object that renders entries for a client: its private view, else its user's viewer, else the account status."""


class Delivery(NamedTuple):
    """An entry for one client.

    Attributes:
        entry: The entry as this client may see it.
        matched_json: Which filters or rules matched, as JSON. None if the subscription does not report matches.
    """

    entry: Entry
    matched_json: bytes | None

    def frame(self, encode_entry: EncodeEntry) -> bytes:
        """Return the bytes of this delivery's message, encoded by ``encode_entry`` for one output format."""
        return self.entry.frame(encode_entry, self.matched_json)


def decide(entry: Entry, subscription: Subscription, view: View, deleted: Deleted = NOTHING_DELETED) -> Delivery | None:
    """Return what a client with these filters receives of an entry, None if it receives nothing.

    ``deleted`` says whether users have since deleted the entry's status, comment or original. Raises `FilterFailure`
    if a filter raises, and `MalformedEntry` if the entry is invalid.

    Of an entry with several versions of its status, the client receives the first that it may.
    """
    if entry.facts.before:
        found = (decide(version, subscription, view, deleted) for version in entry.versions())
        return next((delivery for delivery in found if delivery is not None), None)
    if isinstance(view, PrivateView):
        rendered = view.render(entry, subscription, deleted)
    elif deleted.subject and not entry.is_removal:
        return None
    elif entry.quoted_author is None:  # the filter runs first, because most entries do not match
        rendered = view.render_today(entry) if subscription.matches(entry.event) else None
    else:
        rendered = view.render_today(entry)
        if rendered is entry and deleted.original:
            rendered = entry.without_original()
        if rendered is not None and not subscription.matches(rendered.event):
            return None
    if rendered is None:
        return None
    matched_json = encode_matched(subscription, entry_to_match(entry, rendered))
    return Delivery(remove_deleted(entry, rendered, deleted), matched_json)


def was_found(entry: Entry, subscription: Subscription, view: View) -> bool:
    """Return whether the filters match an entry as it was written, with the original of a quote or without it."""
    forms = (entry,) if entry.quoted_author is None else (entry, entry.without_original())
    if isinstance(view, PrivateView):
        return any(view.matches(form, subscription) for form in forms)
    return any(subscription.matches(form.event) for form in forms)


def encode_matched(subscription: Subscription, entry: Entry) -> bytes | None:
    """Return as JSON which filters or rules matched, None if the subscription does not report matches.

    Raises `FilterFailure` if a filter raises or returns a value that is not JSON.
    """
    if not subscription.reports_matches:
        return None
    try:
        return encode_json(subscription.matched_items(entry.event))
    except FilterFailure:
        raise
    except Exception as error:
        # A filter of a third party returned a value that is not JSON.
        raise FilterFailure(_find_unencodable_filter(subscription, entry), error) from error


def _find_unencodable_filter(subscription: Subscription, entry: Entry) -> Filter:
    for base in subscription.bases:
        try:
            encode_json(subscription.base_matched_items(base, entry.event))
        except Exception:  # noqa: BLE001 - a third party's value may make the encoder raise anything
            return base
    return subscription.bases[-1]
