"""The nearest known name of an unknown one, for error messages: of parameters, members, operators, settings, kinds."""

from collections.abc import Iterable
from difflib import get_close_matches

_SAME_MEANING = (
    ("message", "text", "body", "content", "status", "tweet"),
    ("lang", "language", "languages"),
    ("track", "q", "query", "keyword", "keywords", "phrases", "terms"),
    ("follow", "users", "user_ids", "authors"),
    ("from", "author", "user", "by"),
    ("locations", "location", "bbox", "boxes"),
    ("bounding_box", "bbox", "box"),
    ("kinds", "kind", "types", "events"),
    ("since", "cursor", "after", "since_id", "last_event_id", "from_cursor"),
    ("before", "until", "max_id"),
    ("after", "since", "since_id", "min_id"),
    ("count", "limit", "max_results", "per_page", "page_size"),
    ("limit", "count", "max_results"),
    ("login", "username", "screen_name", "handle"),
    ("in_reply_to", "in_reply_to_status_id", "reply_to", "parent"),
    ("origin", "repost_of", "quote_of", "retweet_of"),
    ("name", "title", "display_name"),
    ("repost", "retweet"),
    ("post", "status", "tweet"),
    ("user_update", "profile", "profile_update"),
)
"""Names of one thing in this API (the first) and elsewhere. The order of the rows is that of the suggestions."""


def suggest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that an unknown one probably means, or None.

    A name of another API comes before a name of similar letters: ``text`` means ``message``.
    """
    names = [*dict.fromkeys(known)]
    folded = name[:40].lower()  # because the comparison takes quadratic time
    for same in _SAME_MEANING:
        if folded in same and same[0] in names:
            return same[0]
    by_folded = {each.lower(): each for each in reversed(names)}
    found = get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message with the suggestion for an unknown name, such as "; did you mean `track`?".

    Return an empty text if no known name is near.
    """
    meant = suggest(name, known)
    return f"; did you mean `{meant}`?" if meant else ""
