"""Mentions, hashtags, cashtags and links in a text, by the rules of twitter-text. Indices count code points.

Every step takes time linear in the length of the text, so no text can make it slow.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from filters.unicode_classes import ACCENTED_LATIN, BIDI_CONTROLS, COMBINING_MARKS, NON_DECIMAL_NUMBERS
from filters.urls import find_urls

Indices = tuple[int, int]
"""Start and end (exclusive) of an entity in code points."""


class Mention(NamedTuple):
    """A mention ``@login`` in a text. ``login`` does not include the ``@``."""

    login: str
    indices: Indices


class Hashtag(NamedTuple):
    """A hashtag ``#text`` in a text. ``text`` does not include the ``#``."""

    text: str
    indices: Indices


class Cashtag(NamedTuple):
    """A cashtag ``$text`` in a text. ``text`` does not include the ``$``."""

    text: str
    indices: Indices


class Url(NamedTuple):
    """A link in a text: ``url`` as written, ``display_url`` without protocol and ``www.``, ``expanded_url`` in full."""

    url: str
    display_url: str
    expanded_url: str
    indices: Indices


class Entities(NamedTuple):
    """The mentions, hashtags, cashtags and links of a text. Each of the four tuples is in text order."""

    mentions: tuple[Mention, ...] = ()
    hashtags: tuple[Hashtag, ...] = ()
    cashtags: tuple[Cashtag, ...] = ()
    urls: tuple[Url, ...] = ()


NO_ENTITIES = Entities()

_MENTION = re.compile(r"[@\uff20]([A-Za-z0-9_]{1,20})(/[A-Za-z][A-Za-z0-9_\-]{0,24})?")
_FORBIDDEN_BEFORE_MENTION = re.compile(r"[A-Za-z0-9_!#$%&*@\uff20]")
_FORBIDDEN_AFTER_MENTION = re.compile(rf"[@\uff20{ACCENTED_LATIN}]|://")
_RETWEET = re.compile(r"(?:\A|[^A-Za-z0-9_+~.\-])[Rr][Tt]:?\Z")

_TAG_SPECIALS = r"_\u200c\u200d\ua67e\u05be\u05f3\u05f4\uff5e\u301c\u309b\u309c\u30a0\u30fb\u3003\u0f0b\u0f0c\u00b7"
_TAG_LETTER = re.compile(rf"[^\W\d_{NON_DECIMAL_NUMBERS}]|[{COMBINING_MARKS}]")
_NO_NON_DECIMAL_NUMBER = rf"(?![{NON_DECIMAL_NUMBERS}])"
_TAG_CHARACTER = rf"{_NO_NON_DECIMAL_NUMBER}[\w{COMBINING_MARKS}{_TAG_SPECIALS}]"
_TAG = re.compile(rf"[#\uff03](?![\ufe0e\ufe0f\u20e3])((?:{_TAG_CHARACTER})++)")
_FORBIDDEN_BEFORE_TAG = re.compile(rf"(?![\ufe0e\ufe0f]){_NO_NON_DECIMAL_NUMBER}[\w{COMBINING_MARKS}{_TAG_SPECIALS}&]")
_FORBIDDEN_AFTER_TAG = re.compile(r"[#\uff03]|://")

_CASHTAG = re.compile(
    rf"(?:(?<!\S)|(?<=[{BIDI_CONTROLS}]))\$([A-Za-z]{{1,6}}(?:[._][A-Za-z]{{1,2}})?)"
    r"""(?=\Z|[\s!'#%&()*+,\\\-./:;<=>?@\[\]^_{|}~$"])"""
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*://", re.IGNORECASE)


def extract_entities(text: str) -> Entities:
    """Find all mentions, hashtags, cashtags and links of the text. Of two that overlap, the one that begins first."""
    found = Entities(
        mentions=tuple(_find_mentions(text)) if "@" in text or "\uff20" in text else (),
        hashtags=tuple(_find_hashtags(text)) if "#" in text or "\uff03" in text else (),
        cashtags=tuple(_find_cashtags(text)) if "$" in text else (),
        urls=tuple(_make_url(text, span.start, span.end, protocol=span.protocol) for span in find_urls(text)),
    )
    return _without_overlaps(found) if found.urls and any(found[:3]) else found


def blank_entities(text: str, entities: Entities) -> str:
    """Return the text with spaces in place of its entities, so that all other characters keep their positions."""
    left = ""
    for start, end in sorted([entity.indices for family in entities for entity in family]):
        left += text[len(left) : start]
        left += " " * (end - len(left))
    return left + text[len(left) :]


def find_mentions_and_lists(text: str) -> Iterator[tuple[Mention, str]]:
    """Return each ``@login`` or ``@login/list`` of a text as a pair: the mention, and ``/list`` or an empty string."""
    for found in _MENTION.finditer(text):
        if _may_begin_mention(text, found.start()) and not _FORBIDDEN_AFTER_MENTION.match(text, found.end()):
            yield Mention(found.group(1), found.span()), found.group(2) or ""


def _may_begin_mention(text: str, at: int) -> bool:
    """Whether an ``@`` at this index can begin a mention: not inside a word or mail address, but after ``RT``."""
    if at == 0 or not _FORBIDDEN_BEFORE_MENTION.match(text, at - 1):
        return True
    return _RETWEET.search(text[max(0, at - 4) : at]) is not None


def _find_mentions(text: str) -> Iterator[Mention]:
    return (mention for mention, list_name in find_mentions_and_lists(text) if not list_name)


def _find_hashtags(text: str) -> Iterator[Hashtag]:
    for found in _TAG.finditer(text):
        start, end = found.span()
        if start and _FORBIDDEN_BEFORE_TAG.match(text, start - 1):
            continue
        if _TAG_LETTER.search(found.group(1)) and not _FORBIDDEN_AFTER_TAG.match(text, end):
            yield Hashtag(found.group(1), (start, end))


def _find_cashtags(text: str) -> Iterator[Cashtag]:
    return (Cashtag(found.group(1), found.span()) for found in _CASHTAG.finditer(text))


def _make_url(text: str, start: int, end: int, *, protocol: bool) -> Url:
    url = text[start:end]
    return Url(url, to_display_url(url), url if protocol else f"http://{url}", (start, end))


def to_display_url(url: str) -> str:
    """Return a link as it is displayed and tracked: without protocol, ``www.`` and slashes at the end."""
    if scheme := _SCHEME.match(url):
        url = url[scheme.end() :]
    if url[:4].lower() == "www.":
        url = url[4:]
    return url.rstrip("/")


def _without_overlaps(found: Entities) -> Entities:
    """Return the entities without those that begin inside another one: a tag in a link, or a link in ``#日本a.com``."""
    spans = sorted([entity.indices for family in found for entity in family])
    kept, free = set[Indices](), 0
    for start, end in spans:
        if start >= free:
            kept.add((start, end))
            free = end
    if len(kept) == len(spans):
        return found
    return Entities._make(tuple(entity for entity in family if entity.indices in kept) for family in found)
