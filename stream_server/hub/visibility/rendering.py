"""The words that all views share: what of an entry is deleted, and which form of it filters are matched against."""

from typing import NamedTuple

from stream_server.events.entry import Entry
from stream_server.events.kinds import CREATION_KINDS


class Deleted(NamedTuple):
    """The parts of an entry that users deleted after the entry was written.

    Attributes:
        subject: Whether the status or comment that the entry shows is deleted.
        original: Whether the status that it reposts or quotes is deleted.
    """

    subject: bool
    original: bool


NOTHING_DELETED = Deleted(subject=False, original=False)
"""The value for live delivery, and for entries of which nothing is deleted."""


def is_removal(entry: Entry) -> bool:
    """Return whether the entry takes back a status or comment. It carries ids only, so its deletion hides nothing."""
    return entry.kind in CREATION_KINDS


def entry_to_match(entry: Entry, rendered: Entry) -> Entry:
    """Return the form of an entry against which filters are matched. This is the only place of the quote rule.

    A quote is matched as the client sees it: a filter must not find words of an original that is hidden from the
    client. Every other entry is matched as it was written. So a repost matches by its original, deleted or not.
    """
    return entry if entry.quoted_author is None else rendered


def remove_deleted(entry: Entry, rendered: Entry, deleted: Deleted) -> Entry:
    """Return ``rendered`` without the parts that are deleted. A rendering that was reduced already stays as it is.

    Of a removal whose status is deleted only the ids remain.
    """
    if rendered is not entry:
        return rendered
    if deleted.subject:
        return entry.without_status()
    return entry.without_original() if deleted.original else entry
