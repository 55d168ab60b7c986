"""Links in a text, as twitter-text finds them: with ``http(s)://``, or bare where the domain is a known one.

A hand-written scan over runs of host characters instead of one large expression: each step is linear in the text, so
no text can make it slow.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from filters.alphabet import CYRILLIC, DIRECTIONS, LATIN_ACCENTS
from filters.tlds import LONGEST, TLDS

_RUN = re.compile(rf"""[^\s\x00-\x1f\x7f!"#$%&'()*+,/:;<=>?@\[\\\]^`{{|}}~\ufffe\ufeff\uffff{DIRECTIONS}]+""")
_ASCII_STRETCH = re.compile(rf"[A-Za-z0-9_.\-{LATIN_ACCENTS}]+")
_PROTOCOL = re.compile(r"https?://\Z", re.IGNORECASE)
_ASCII_NAME = re.compile(r"[A-Za-z0-9\-]+")
_PORT = re.compile(r":[0-9]+")
_IN_PATH = rf"[A-Za-z0-9{CYRILLIC}{LATIN_ACCENTS}!*';:=+,.$/%#\[\]\-\u2013_~@|&]"
_BRACKETED = rf"\({_IN_PATH}*+(?:\({_IN_PATH}++\){_IN_PATH}*+)?\)"
_PATH = re.compile(rf"/(?:{_IN_PATH}++|{_BRACKETED})*+")
_PATH_END = re.compile(rf"[A-Za-z0-9{CYRILLIC}{LATIN_ACCENTS}=_#/+\-)]")
_QUERY = re.compile(r"\?[A-Za-z0-9!?*'@();:&=+$/%#\[\]\-_.,~|]++")
_QUERY_END = re.compile(r"[A-Za-z0-9_&=#/\-]")
_SHORT_PATH = re.compile(r"/[A-Za-z0-9]+")

_BEFORE_NEVER = re.compile(r"[A-Za-z0-9@\uff20$#\uff03\ufffe\ufeff\uffff]")
_BEFORE_BARE_NEVER = re.compile(r"[A-Za-z0-9@\uff20$#\uff03\ufffe\ufeff\uffff\-_./]")
_AFTER_NEVER = re.compile(r"[A-Za-z0-9@+\-]")

LABEL = 63
"""The most characters of one label of a host, punycode included (RFC 1035)."""

SHORTENER = "t.co"
"""A host whose paths are known: letters and digits, at most ``SHORT_PATH`` characters with the slash."""

SHORT_PATH = 41

_MARKUP_OF_PUNYCODE = len("xn--")


class Span(NamedTuple):
    """Where a link stands, in code points, and whether it says its protocol."""

    start: int
    end: int
    protocol: bool


def spans(text: str) -> Iterator[Span]:
    """All links in order, not overlapping."""
    if "." not in text:
        return
    at = free = 0
    while run := _RUN.search(text, at):
        at = run.end()
        if "." not in run.group():
            continue
        for span in _with_protocol(text, run.start(), run.end(), free) or _bare(text, run.start(), run.end()):
            yield span
            at = free = span.end


def _with_protocol(text: str, start: int, end: int, free: int) -> list[Span]:
    """The link whose host is at ``start``; a protocol before ``free`` is part of the link before."""
    protocol = _PROTOCOL.search(text, max(free, start - 8), start)
    if protocol is None:
        return []
    begin = protocol.start()
    if begin and _BEFORE_NEVER.match(text, begin - 1):
        return []
    host_end = _host_end(text, start, end, end)
    if host_end is None:
        return []
    short = text[start:host_end].lower() == SHORTENER
    if short and (path := _SHORT_PATH.match(text, host_end)) and len(path.group()) > SHORT_PATH:
        return []
    return [Span(begin, _rest_end(text, host_end, short=short), protocol=True)]


def _bare(text: str, start: int, end: int) -> Iterator[Span]:
    for stretch in _ASCII_STRETCH.finditer(text, start, end):
        begin = stretch.start()
        if begin and _BEFORE_BARE_NEVER.match(text, begin - 1):
            continue
        host_end = _host_end(text, begin, stretch.end(), end)
        if host_end is not None:
            yield Span(begin, _rest_end(text, host_end, short=False), protocol=False)


def _host_end(text: str, start: int, end: int, limit: int) -> int | None:
    """Where the longest host of ``text[start:end]`` ends: sub-domains, a domain, a known top-level domain.

    The top-level domain may reach on to ``limit``: a bare host is told by its ASCII part and may end in another script.
    """
    best = None
    at = start
    labels = text[start:end].split(".")
    for label in labels[:-1]:
        if not _is_label(label):
            break
        at += len(label) + 1
        top = _top_length(text, at, limit) if "_" not in label else 0
        if top:
            best = at + top
    return best


def _is_label(label: str) -> bool:
    if not label or label[0] in "-_" or label[-1] in "-_" or len(label) > LABEL:
        return False
    if label.isascii():
        return True
    # A host that IDNA could not encode is no host.
    return label[:4].lower() != "xn--" and len(label.encode("punycode")) + _MARKUP_OF_PUNYCODE <= LABEL


def _top_length(text: str, start: int, limit: int) -> int:
    """The length of the longest top-level domain that begins at ``start``, 0 if there is none."""
    for stop in range(min(limit, start + LONGEST), start, -1):
        name = text[start:stop]
        if not name.isascii() and name.lower() in TLDS and not _AFTER_NEVER.match(text, stop):
            return stop - start
    found = _ASCII_NAME.match(text, start, limit)
    if found is None or _AFTER_NEVER.match(text, found.end()):
        return 0
    name = found.group().lower()
    return len(name) if name in TLDS or (name.startswith("xn--") and len(name) <= LABEL) else 0


def _rest_end(text: str, host_end: int, *, short: bool) -> int:
    """Where port, path and query end that follow a host; the shortener's paths are letters and digits only."""
    at = host_end
    if port := _PORT.match(text, at):
        at = port.end()
    if path := (_SHORT_PATH if short else _PATH).match(text, at):
        at = _trim(text, at, path.end(), _PATH_END)
    if query := _QUERY.match(text, at):
        end = _trim(text, at, query.end(), _QUERY_END)
        at = end if end > at + 1 else at
    return at


def _trim(text: str, start: int, end: int, last: re.Pattern[str]) -> int:
    """``end`` moved back to behind the last character that may end a link, ``start`` at the lowest."""
    while end > start and not last.match(text, end - 1):
        end -= 1
    return end
