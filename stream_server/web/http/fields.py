"""Types of the members of bodies, queries and answers, each with its limits.

The module does no I/O. Each alias carries the limits that msgspec checks, and the description that the OpenAPI
document and the error messages use. The ``check_*`` functions hold the limits that JSON schema cannot express. They
raise ValueError with a sentence such as "`name` must not be blank"; ``validation`` turns it into an API error.
"""

import re
import unicodedata
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

MAX_META_BYTES = 4096
"""Largest ``meta`` of a status, in bytes of JSON."""

MAX_META_DEPTH = 16
"""Deepest nesting of ``meta``. Deep JSON is small to send, but costs stack in the decoder of every client."""

LOGIN_PATTERN = re.compile(r"[A-Za-z0-9_]{1,20}")
"""A complete login; use it with ``fullmatch``."""

# `$` also matches before a final line feed, so the patterns end with a look-ahead.
Login = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,20}$(?!\n)", description="1 to 20 letters, digits or _")]
DisplayName = Annotated[
    str, Meta(min_length=1, max_length=50, description="1 to 50 code points, no control characters")
]
Description = Annotated[
    str, Meta(max_length=200, description="up to 200 code points, no control characters other than line feed")
]
Email = Annotated[
    str,
    Meta(
        max_length=254,
        pattern=r"^[^@\s\x00-\x20\x7f]{1,64}@[^@\s\x00-\x20\x7f]+$(?!\n)",
        description="an address such as ada@example.org",
    ),
]
Password = Annotated[str, Meta(min_length=8, max_length=256)]
Id = Annotated[str, Meta(pattern=r"^[0-9]{1,20}$(?!\n)", description="a decimal number")]
Language = Annotated[
    str,
    Meta(
        max_length=35,
        pattern=r"^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$(?!\n)",
        description="a BCP 47 language tag such as en-GB",
    ),
]
Longitude = Annotated[float, Meta(ge=-180, le=180)]
Latitude = Annotated[float, Meta(ge=-90, le=90)]
HttpUrl = Annotated[
    str,
    Meta(
        max_length=2048,
        pattern=r"^https?://[^\s\x00-\x20\x7f]+$(?!\n)",
        description="a URL that begins with http:// or https://",
    ),
]
Secret = Annotated[str, Meta(min_length=1, max_length=512)]
NonNegativeInt = Annotated[int, Meta(ge=0)]
Timestamp = Annotated[
    str, Meta(extra_json_schema={"format": "date-time"}, description="ISO 8601 in UTC, with milliseconds")
]
Cursor = Annotated[str, Meta(description="opaque; valid only for the list that returned it")]

_BIDI_CONTROLS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
"""Bidirectional control characters (Unicode Annex 9, section 2)."""

_CONTROL_NAMES = {"": "", "\n": " other than line feed", "\n\t": " other than line feed and tab"}


class PatchBody(msgspec.Struct, forbid_unknown_fields=True):
    """Base of the bodies of PATCH. A member that the client omits is ``UNSET`` and stays unchanged."""

    def present_members(self) -> dict[str, Any]:
        """Return the members that the client sent, by name."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}


def check_name(name: str) -> None:
    """Raise ValueError for a name without visible characters, or with control characters.

    Bidirectional controls count as control characters, because they would reverse the text beside the name.
    """
    if not any(unicodedata.category(c)[0] in "LNPS" for c in name):
        raise ValueError("`name` must not be blank")
    if any(unicodedata.bidirectional(c) in _BIDI_CONTROLS for c in name):
        raise ValueError("`name` must not contain control characters")
    check_text("name", name)


def check_text(member: str, text: str, *, allowed_controls: str = "", may_be_blank: bool = True) -> None:
    """Raise ValueError if ``text`` has control characters outside ``allowed_controls``, or is blank against the rule.

    Args:
        member: Name of the member, for the message.
        text: The text to check.
        allowed_controls: ``""``, line feed, or line feed and tab.
        may_be_blank: Whether the text may consist of white space only.
    """
    if not may_be_blank and not text.strip():
        raise ValueError(f"`{member}` must not be blank")
    if any(unicodedata.category(c) == "Cc" and c not in allowed_controls for c in text):
        raise ValueError(f"`{member}` must not contain control characters{_CONTROL_NAMES[allowed_controls]}")


def check_meta(meta: dict[str, Any]) -> None:
    """Raise ValueError for a ``meta`` that is too large or too deep."""
    if len(msgspec.json.encode(meta)) > MAX_META_BYTES:
        raise ValueError(f"`meta` must have at most {MAX_META_BYTES} bytes of JSON")
    if nesting_depth(meta) > MAX_META_DEPTH:
        raise ValueError(f"`meta` must have at most {MAX_META_DEPTH} levels of nesting")


def nesting_depth(value: object) -> int:
    """Return how many objects and lists are nested in ``value``. The loop goes level by level to save stack."""
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return depth
