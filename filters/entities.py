"""Mentions, hashtags, cashtags and links in a text, by the rules of twitter-text. Indices count code points.

A link begins with ``http(s)://``, or is bare if its top-level domain is known. A hand-written scan over runs of host
characters finds links, in the place of one large regular expression. Every step takes time linear in the length of the
text, so no text can make it slow.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from filters.table_data import COMBINING_MARKS, INVISIBLE, NEWER_LETTERS, NON_DECIMAL_NUMBERS
from filters.tables import ACCENTED_LATIN, BIDI_CONTROLS, CYRILLIC, LETTERS_AND_DIGITS, MAX_TLD_CHARS, TLDS

_NOT_IN_RUN = rf"""\s\x00-\x1f\x7f!"#$%&'()+*,/:;<=>?@\[\\\]^`{{|}}~\ufffe\ufeff\uffff{BIDI_CONTROLS}"""
_RUN_WITH_DOT = re.compile(
    rf"(?:[{_NOT_IN_RUN}]+(?![{_NOT_IN_RUN}])|[^.{_NOT_IN_RUN}]+(?![^{_NOT_IN_RUN}]))*([^.{_NOT_IN_RUN}]*\.[^{_NOT_IN_RUN}]*)"
)
"""The next run of host characters that has a dot. Each lookahead lets a part of the text before it match in one way
only, so the scan is linear, also where no run has a dot."""

_ASCII_STRETCH = re.compile(rf"[A-Za-z0-9_.\-{ACCENTED_LATIN}]+")
_PROTOCOL = re.compile(r"https?://\Z", re.IGNORECASE)
_ASCII_NAME = re.compile(r"[A-Za-z0-9\-]+")
_PORT = re.compile(r":[0-9]+")
_IN_PATH = rf"[A-Za-z0-9{CYRILLIC}{ACCENTED_LATIN}!*';:=+,.$/%#\[\]\-\u2013_~@|&]"
_PATH = re.compile(rf"/(?:{_IN_PATH}+|\({_IN_PATH}*(?:\({_IN_PATH}+\){_IN_PATH}*)?\))*")
_PATH_END = re.compile(rf"[A-Za-z0-9{CYRILLIC}{ACCENTED_LATIN}=_#/+\-)]")
_QUERY = re.compile(r"\?[A-Za-z0-9!?*'@();:&=+$/%#\[\]\-_.,~|]+")
_QUERY_END = re.compile(r"[A-Za-z0-9_&=#/\-]")
_SHORT_PATH = re.compile(r"t\.co(/[A-Za-z0-9]+)", re.IGNORECASE)
"""Host and path of a link of Twitter's shortener, whose paths have only letters and digits."""

_FORBIDDEN_BEFORE = re.compile(r"[A-Za-z0-9@\uff20$\uff04#\uff03\ufffe\ufeff\uffff]")
_FORBIDDEN_BEFORE_BARE = re.compile(r"[A-Za-z0-9@\uff20$\uff04#\uff03\ufffe\ufeff\uffff\-_./]")
_FORBIDDEN_AFTER = re.compile(r"[A-Za-z0-9@+\-]")

MAX_LABEL_CHARS = 63  # of one label of a host name, including punycode (RFC 1035)

_PUNYCODE = "xn--"
"""The beginning of a label of a host that stands for one in another script."""


class UrlSpan(NamedTuple):
    """Start and end of a link in a text, in code points, and whether it begins with ``http://`` or ``https://``."""

    start: int
    end: int
    protocol: bool


def find_urls(text: str) -> Iterator[UrlSpan]:
    """Find all links of a text in order. Links do not overlap."""
    at = free = 0
    while run := find_dotted_run(text, at):
        start, end = run
        at = end
        for span in _find_protocol_url(text, start, end, free) or _find_bare_urls(text, start, end):
            yield span
            at = free = span.end


def find_dotted_run(text: str, at: int) -> tuple[int, int] | None:
    """Return start and end of the next run of host characters that can hold a host, or None if there is none.

    Such a run has a dot between two other characters of it. The search begins at ``at``.
    """
    while text.find(".", at) >= 0 and (run := _RUN_WITH_DOT.match(text, at)):
        if "." in run[1].strip("."):  # unlike the last word of a sentence
            return run.span(1)
        at = run.end()
    return None


def _find_protocol_url(text: str, start: int, end: int, free: int) -> list[UrlSpan]:
    """Return a list with the link whose host begins at ``start``, or an empty list if no protocol precedes the host.

    ``free`` is the end of the previous link. The protocol must not begin before it.
    """
    protocol = _PROTOCOL.search(text, max(free, start - 8), start)
    if protocol is None:
        return []
    begin = protocol.start()
    if begin and _FORBIDDEN_BEFORE.match(text, begin - 1):
        return []
    host_end = _host_end(text, start, end, end)
    if host_end is None:
        return []
    short = _SHORT_PATH.match(text, start)
    if short is None:
        return [UrlSpan(begin, _url_end(text, host_end), protocol=True)]
    if len(short[1]) > 41:  # with the slash
        return []
    return [UrlSpan(begin, _query_end(text, short.end()), protocol=True)]


def _find_bare_urls(text: str, start: int, end: int) -> Iterator[UrlSpan]:
    for stretch in _ASCII_STRETCH.finditer(text, start, end):
        begin = stretch.start()
        if begin and _FORBIDDEN_BEFORE_BARE.match(text, begin - 1):
            continue
        host_end = _host_end(text, begin, stretch.end(), end)
        if host_end is not None:
            yield UrlSpan(begin, _url_end(text, host_end), protocol=False)


def _host_end(text: str, start: int, end: int, limit: int) -> int | None:
    """Return the end of the longest host in ``text[start:end]``, or None if there is no host.

    Only the top-level domain may extend beyond ``end``, up to ``limit``: ``end`` may be where the ASCII characters end,
    and the top-level domain may be in another script.
    """
    best = None
    at = start
    labels = text[start:end].split(".")
    for label in labels[:-1]:
        if not _is_label(label):
            break
        at += len(label) + 1
        top = _tld_length(text, at, limit) if "_" not in label else 0
        if top:
            best = at + top
    return best


def _is_label(label: str) -> bool:
    if not label or label[0] in "-_" or label[-1] in "-_" or len(label) > MAX_LABEL_CHARS:
        return False
    if label.isascii():
        return True
    # A label that IDNA cannot encode is invalid.
    return label[:4].lower() != _PUNYCODE and len(label.encode("punycode")) + len(_PUNYCODE) <= MAX_LABEL_CHARS


def _tld_length(text: str, start: int, limit: int) -> int:
    """Return the length of the longest top-level domain that begins at ``start``, or 0."""
    longest = min(limit, start + MAX_TLD_CHARS)
    for stop in range(longest, start, -1) if not text[start:longest].isascii() else ():
        name = text[start:stop]
        if not name.isascii() and name.lower() in TLDS and not _FORBIDDEN_AFTER.match(text, stop):
            return stop - start
    found = _ASCII_NAME.match(text, start, limit)
    if found is None or _FORBIDDEN_AFTER.match(text, found.end()):
        return 0
    name = found.group().lower()
    return len(name) if name in TLDS or _from_punycode(name) in TLDS else 0


def _from_punycode(name: str) -> str:
    """Return a label such as ``xn--p1ai`` in its own script, or an empty string if the label is not valid Punycode."""
    if not name.startswith(_PUNYCODE) or len(name) > MAX_LABEL_CHARS:
        return ""
    try:
        return name[len(_PUNYCODE) :].encode().decode("punycode")
    except UnicodeError:
        return ""


def _url_end(text: str, host_end: int) -> int:
    """Return the end of a link whose host ends at index ``host_end``: behind its port, path and query, if any."""
    at = host_end
    if port := _PORT.match(text, at):
        at = port.end()
    if path := _PATH.match(text, at):
        at = _trim_end(text, at, path.end(), _PATH_END)
    return _query_end(text, at)


def _query_end(text: str, at: int) -> int:
    """Return where the query of a link ends whose ``?`` is at ``at``. Return ``at`` if there is no query."""
    if query := _QUERY.match(text, at):
        end = _trim_end(text, at, query.end(), _QUERY_END)
        at = end if end > at + 1 else at
    return at


def _trim_end(text: str, start: int, end: int, last: re.Pattern[str]) -> int:
    """Return ``end``, moved back (at most to ``start``) until the character before it may end a link."""
    while end > start and not last.match(text, end - 1):
        end -= 1
    return end


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

_TAG_LETTER = re.compile(rf"(?![{INVISIBLE}])(?:[^\W\d_{NON_DECIMAL_NUMBERS}]|[{NEWER_LETTERS}{COMBINING_MARKS}])")
_NO_NON_DECIMAL_NUMBER = rf"(?![{NON_DECIMAL_NUMBERS}])"
_IN_TAG = (
    rf"{LETTERS_AND_DIGITS}{COMBINING_MARKS}_\u200c\u200d\ua67e\u05be\u05f3\u05f4\uff5e\u301c\u309b\u309c\u30a0\u30fb"
    r"\u3003\u0f0b\u0f0c\u00b7"
)
_TAG = re.compile(rf"[#\uff03](?![\ufe0e\ufe0f\u20e3])((?:{_NO_NON_DECIMAL_NUMBER}[{_IN_TAG}])+)")
_FORBIDDEN_BEFORE_TAG = re.compile(rf"(?![{INVISIBLE}]){_NO_NON_DECIMAL_NUMBER}[{_IN_TAG}&]")
_FORBIDDEN_AFTER_TAG = re.compile(r"[#\uff03]|://")

_CASHTAG = re.compile(
    rf"(?:(?<!\S)|(?<=[{INVISIBLE}]))[$\uff04]([A-Za-z]{{1,6}}(?:[._][A-Za-z]{{1,2}})?)"
    rf"""(?=\Z|[\s!'#%&()*+,\\\-./:;<=>?@\[\]^_{{|}}~$"{INVISIBLE}])"""
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*://", re.IGNORECASE)


def extract_entities(text: str) -> Entities:
    """Find all mentions, hashtags, cashtags and links of the text. Of two that overlap, the one that begins first."""
    mentions: tuple[Mention, ...] = ()
    hashtags: tuple[Hashtag, ...] = ()
    cashtags: tuple[Cashtag, ...] = ()
    urls: list[Url] = []
    if "@" in text or "\uff20" in text:
        mentions = tuple([mention for mention, list_name in find_mentions_and_lists(text) if not list_name])
    if "#" in text or "\uff03" in text:
        hashtags = tuple(_find_hashtags(text))
    if "$" in text or "\uff04" in text:
        cashtags = tuple([Cashtag(found.group(1), found.span()) for found in _CASHTAG.finditer(text)])
    if "." in text:
        for start, end, protocol in find_urls(text):
            url = text[start:end]
            urls.append(Url(url, to_display_url(url), url if protocol else f"http://{url}", (start, end)))
    entities = Entities(mentions, hashtags, cashtags, tuple(urls))
    return _without_overlaps(entities) if urls and (mentions or hashtags or cashtags) else entities


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
        at, end = found.span()
        is_in_word = at > 0 and _FORBIDDEN_BEFORE_MENTION.match(text, at - 1)  # or in a mail address
        if is_in_word and not _RETWEET.search(text[max(0, at - 4) : at]):
            continue
        if not _FORBIDDEN_AFTER_MENTION.match(text, end):
            yield Mention(found.group(1), (at, end)), found.group(2) or ""


def _find_hashtags(text: str) -> Iterator[Hashtag]:
    for found in _TAG.finditer(text):
        start, end = found.span()
        if start and _FORBIDDEN_BEFORE_TAG.match(text, start - 1):
            continue
        if _TAG_LETTER.search(found.group(1)) and not _FORBIDDEN_AFTER_TAG.match(text, end):
            yield Hashtag(found.group(1), (start, end))


def to_display_url(url: str) -> str:
    """Return a link as it is displayed and tracked: without protocol, ``www.`` and slashes at the end."""
    if scheme := _SCHEME.match(url):
        url = url[scheme.end() :]
    if url[:4].lower() == "www.":
        url = url[4:]
    return url.rstrip("/")


def _without_overlaps(found: Entities) -> Entities:
    """Return the entities except those that begin inside another one: a tag in a link, a link in ``#日本a.com``."""
    spans = sorted([entity.indices for family in found for entity in family])
    kept, free = set[Indices](), 0
    for start, end in spans:
        if start >= free:
            kept.add((start, end))
            free = end
    if len(kept) == len(spans):
        return found
    return Entities._make(tuple(entity for entity in family if entity.indices in kept) for family in found)
