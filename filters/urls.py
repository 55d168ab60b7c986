"""Links in a text by the rules of twitter-text: with ``http(s)://``, or bare if the top-level domain is known.

A hand-written scan over runs of host characters replaces one large regular expression. Each step takes time linear in
the length of the text, so no text can make it slow.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from filters.tlds import MAX_TLD_CHARS, TLDS
from filters.unicode_classes import ACCENTED_LATIN, BIDI_CONTROLS, CYRILLIC

_NOT_IN_RUN = rf"""\s\x00-\x1f\x7f!"#$%&'()*+,/:;<=>?@\[\\\]^`{{|}}~\ufffe\ufeff\uffff{BIDI_CONTROLS}"""
_RUN_WITH_DOT = re.compile(rf"(?:[{_NOT_IN_RUN}]++|[^.{_NOT_IN_RUN}]++(?!\.))*+([^{_NOT_IN_RUN}]++)")
"""The next run of host characters that has a dot. The possessive repetitions pass all other runs in one linear scan."""

_ASCII_STRETCH = re.compile(rf"[A-Za-z0-9_.\-{ACCENTED_LATIN}]+")
_PROTOCOL = re.compile(r"https?://\Z", re.IGNORECASE)
_ASCII_NAME = re.compile(r"[A-Za-z0-9\-]+")
_PORT = re.compile(r":[0-9]+")
_IN_PATH = rf"[A-Za-z0-9{CYRILLIC}{ACCENTED_LATIN}!*';:=+,.$/%#\[\]\-\u2013_~@|&]"
_BRACKETED = rf"\({_IN_PATH}*+(?:\({_IN_PATH}++\){_IN_PATH}*+)?\)"
_PATH = re.compile(rf"/(?:{_IN_PATH}++|{_BRACKETED})*+")
_PATH_END = re.compile(rf"[A-Za-z0-9{CYRILLIC}{ACCENTED_LATIN}=_#/+\-)]")
_QUERY = re.compile(r"\?[A-Za-z0-9!?*'@();:&=+$/%#\[\]\-_.,~|]++")
_QUERY_END = re.compile(r"[A-Za-z0-9_&=#/\-]")
_SHORT_PATH = re.compile(r"t\.co(/[A-Za-z0-9]+)", re.IGNORECASE)
"""Host and path of a link of Twitter's shortener, whose paths have only letters and digits."""

_FORBIDDEN_BEFORE = re.compile(r"[A-Za-z0-9@\uff20$#\uff03\ufffe\ufeff\uffff]")
_FORBIDDEN_BEFORE_BARE = re.compile(r"[A-Za-z0-9@\uff20$#\uff03\ufffe\ufeff\uffff\-_./]")
_FORBIDDEN_AFTER = re.compile(r"[A-Za-z0-9@+\-]")

MAX_LABEL_CHARS = 63  # of one label of a host name, including punycode (RFC 1035)

MAX_SHORT_PATH_CHARS = 41  # of a path of the shortener, with the slash
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
    if len(short[1]) > MAX_SHORT_PATH_CHARS:
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
    """Return a label such as ``xn--p1ai`` in its own script. Empty if it stands for no such label."""
    if not name.startswith(_PUNYCODE) or len(name) > MAX_LABEL_CHARS:
        return ""
    try:
        return name[len(_PUNYCODE) :].encode().decode("punycode")
    except UnicodeError:
        return ""


def _url_end(text: str, host_end: int) -> int:
    """Return the end of port, path and query after a host."""
    at = host_end
    if port := _PORT.match(text, at):
        at = port.end()
    if path := _PATH.match(text, at):
        at = _trim_end(text, at, path.end(), _PATH_END)
    return _query_end(text, at)


def _query_end(text: str, at: int) -> int:
    """Return the end of the query that begins at ``at``, or ``at`` if there is none."""
    if query := _QUERY.match(text, at):
        end = _trim_end(text, at, query.end(), _QUERY_END)
        at = end if end > at + 1 else at
    return at


def _trim_end(text: str, start: int, end: int, last: re.Pattern[str]) -> int:
    """Return ``end``, moved back (at most to ``start``) until the character before it may end a link."""
    while end > start and not last.match(text, end - 1):
        end -= 1
    return end
