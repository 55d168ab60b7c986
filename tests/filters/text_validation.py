"""Whether a whole text is a login, a list, a hashtag or a link by twitter-text.

A link is judged by its grammar (RFC 3986, with letters of any script in the host). This allows more than links
found in a text: ports, user names, numeric hosts and any top-level domain.
"""

import re
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from filters.entities import Indices, extract_entities, find_mentions_and_lists
from filters.tables import CYRILLIC

_URL = re.compile(r"(?:([^:/?#]+)://)?([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_PORT = re.compile(r":[0-9]{1,5}\Z")
_URL_CHARACTER = rf"[A-Za-z0-9\-._~{CYRILLIC}!$&'()*+,;=:]|%[0-9A-Fa-f]{{2}}"
_USER = re.compile(rf"(?:{_URL_CHARACTER})*")
_PATH = re.compile(rf"(?:{_URL_CHARACTER}|[@|/])*")
_QUERY = re.compile(rf"(?:{_URL_CHARACTER}|[@|/?])*")
_EDGE = r"(?:[A-Za-z0-9]|[^\x00-\x7f\s])"
_LABEL = re.compile(rf"{_EDGE}(?:(?:{_EDGE}|[_\-])*{_EDGE})?")
_TOP_LABEL = re.compile(rf"(?![0-9]){_EDGE}(?:(?:{_EDGE}|-)*{_EDGE})?")


def is_login(text: str) -> bool:
    return _is_whole(text, [mention.indices for mention, slug in find_mentions_and_lists(text) if not slug])


def is_list(text: str) -> bool:
    return _is_whole(text, [mention.indices for mention, slug in find_mentions_and_lists(text) if slug])


def is_hashtag(text: str) -> bool:
    return _is_whole(text, [tag.indices for tag in extract_entities(text).hashtags])


def is_url(text: str, *, protocol: bool = True) -> bool:
    """Whether ``text`` is a link by its grammar. Without ``protocol``, ``http://`` and ``https://`` are optional."""
    found = _URL.fullmatch(text)
    if found is None:
        return False
    scheme, authority, path, query, fragment = (group or "" for group in found.groups())
    if scheme.lower() not in ({"http", "https"} if protocol else {"", "http", "https"}):
        return False
    rest = _PATH.fullmatch(path) and _QUERY.fullmatch(query) and _QUERY.fullmatch(fragment)
    return rest is not None and _is_authority(authority)


def _is_whole(text: str, found: Sequence[Indices]) -> bool:
    return list(found) == [(0, len(text))]


def _is_authority(authority: str) -> bool:
    user, _, place = authority.rpartition("@")
    host = _PORT.sub("", place)
    return _USER.fullmatch(user) is not None and (_is_domain(host) or _is_address(host))


def _is_domain(host: str) -> bool:
    """Two labels or more without a hyphen at either end. The last two have no underscore."""
    labels = host.split(".")
    return (
        len(labels) > 1
        and all(map(_LABEL.fullmatch, labels))
        and "_" not in labels[-2]
        and _TOP_LABEL.fullmatch(labels[-1]) is not None
    )


def _is_address(host: str) -> bool:
    try:
        if host.startswith("[") and host.endswith("]"):
            IPv6Address(host[1:-1])
        else:
            IPv4Address(host)
    except AddressValueError:
        return False
    return True
