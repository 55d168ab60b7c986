"""Types of the members of bodies, queries and answers, each with its limits.

The module does no I/O. Each alias carries the limits that msgspec checks, and the description that the OpenAPI
document and the error messages use. The ``check_*`` functions hold the limits that JSON schema cannot express. They
raise ValueError with a sentence such as "`name` must not be blank"; ``validation`` turns it into an API error.
"""

import re
import unicodedata
from typing import Annotated, Any

import idna
import msgspec
from msgspec import UNSET, Meta

from filters.tokens import blank_emoji

MAX_BIO_CHARS = 500

MAX_META_BYTES = 4096
MAX_META_DEPTH = 16
"""Most levels of nesting in ``meta``. A short JSON can be deep, and depth costs stack in the decoder of each client."""

LOGIN_PATTERN = re.compile(r"[A-Za-z0-9_]{1,20}")

# `$` also matches before a final line feed, so the patterns end with a look-ahead.
Login = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,20}$(?!\n)", description="1 to 20 letters, digits or _")]
LINE_LIMITS = "no control characters other than line feed and tab; CR LF and CR become line feeds"
DisplayName = Annotated[
    str, Meta(min_length=1, max_length=50, description="1 to 50 code points, no control or invisible characters")
]
Description = Annotated[str, Meta(max_length=200, description=f"up to 200 code points, {LINE_LIMITS}")]
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
FOREIGN_ID_PATTERN = re.compile(r"[!#-+\--\[\]-~]{1,255}")
ForeignId = Annotated[
    str,
    Meta(
        pattern=rf"^{FOREIGN_ID_PATTERN.pattern}$(?!\n)",
        description='1 to 255 printable ASCII characters except space, comma, " and \\',
    ),
]
"""An id that another site gave a user or a status. It stands in scripts and parameters without any escape.

It may be as long as the `sub` of an issuer (OpenID Connect Core §2).
"""

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
LogCursor = Annotated[str, Meta(description="a position of the log, as in a stream: it is valid for all filters")]

_PRESENTATIONS = re.compile("[\ufe0e\ufe0f]")
_TAG = re.compile("[\U000e0000-\U000e007f]")
_REGION_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
"""A flag such as that of Scotland: a black flag, the code of the region in tags, and the tag that ends it (UTS #51)."""

_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that Unicode counts as letters or signs, and that have no shape."""

_LINES = "\n\t"
"""The control characters of a text that may have several lines."""

_FORBIDDEN_CONTROLS = {
    "": (re.compile(r"[\x00-\x1f\x7f-\x9f]"), ""),
    _LINES: (re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"), " other than line feed and tab"),
}
"""For each set of allowed control characters, a pattern for all others, of the 65 characters of Unicode's category Cc,
and the words that except the allowed ones."""

_TEXT_LIMITS = {
    "message": (_LINES, True),
    "description": (_LINES, True),
    "bio": (_LINES, False),
    "place": ("", False),
    "note": (_LINES, True),
    "tag": ("", True),
}
"""For each member with text: the control characters that it may have, and whether it may be blank."""


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """Base of the JSON bodies of requests. It refuses unknown members, and control characters in names and texts."""

    def __post_init__(self) -> None:
        """Raise ValueError if ``name`` or a text member has invalid characters."""
        if isinstance(name := getattr(self, "name", None), str):
            check_name(name)
        for member, (controls, may_be_blank) in _TEXT_LIMITS.items():
            if isinstance(text := getattr(self, member, None), str):
                check_text(member, text, allowed_controls=controls, may_be_blank=may_be_blank)


class PatchBody(Body):
    """Base of the bodies of PATCH requests. A member that the client omits is ``UNSET`` and stays unchanged."""

    def present_members(self) -> dict[str, Any]:
        """Return the members that the client sent, as a dictionary by member name."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}


def check_name(name: str) -> None:
    """Raise ValueError for a name that has no visible character, or has control or invisible characters."""
    if not any(unicodedata.category(c)[0] in "LNPS" for c in name):
        raise ValueError("`name` must not be blank")
    if _has_invisible(name):
        raise ValueError("`name` must not contain invisible characters")
    check_text("name", name)


def _has_invisible(text: str) -> bool:
    """Return whether ``text`` has a character that cannot be seen, with which one name could pass for another.

    Emoji may have joiners inside, and flags of regions have tags. Elsewhere the joiners U+200C and U+200D are allowed
    where a script needs them (RFC 5892 appendix A, which PRECIS uses, RFC 8264), and inside a word of Arabic script.
    """
    shown = _REGION_FLAG.sub("", text)
    if _TAG.search(shown) or not _FILLERS.isdisjoint(shown):
        return True
    shown = blank_emoji(_PRESENTATIONS.sub("", shown))
    return any(  # format characters (such as U+202E and U+200B), private use, surrogates and separators of lines
        not _joins(shown, at)
        if character in "\u200c\u200d"
        else unicodedata.category(character) in {"Cf", "Co", "Cs", "Zl", "Zp"}
        for at, character in enumerate(shown)
    )


def _joins(text: str, at: int) -> bool:
    """Return whether the joiner at this index is one that a script needs."""
    neighbours = text[max(0, at - 1) : at] + text[at + 1 : at + 2]
    if len(neighbours) == 2 and all(unicodedata.bidirectional(each) == "AL" for each in neighbours):
        return True
    try:
        return idna.valid_contextj(text, at)
    except ValueError:  # a character beside it has no name
        return False


def check_text(member: str, text: str, *, allowed_controls: str = "", may_be_blank: bool = True) -> None:
    """Raise ValueError for a control character outside ``allowed_controls``, or blank text unless ``may_be_blank``."""
    if not may_be_blank and not text.strip():
        raise ValueError(f"`{member}` must not be blank")
    forbidden, allowed = _FORBIDDEN_CONTROLS[allowed_controls]
    if forbidden.search(text):
        raise ValueError(f"`{member}` must not contain control characters{allowed}")


def check_meta(meta: dict[str, Any]) -> None:
    """Raise ValueError if ``meta`` has over :data:`MAX_META_BYTES` bytes of JSON or :data:`MAX_META_DEPTH` levels."""
    if len(msgspec.json.encode(meta)) > MAX_META_BYTES:
        raise ValueError(f"`meta` must have at most {MAX_META_BYTES} bytes of JSON")
    if nesting_depth(meta) > MAX_META_DEPTH:
        raise ValueError(f"`meta` must have at most {MAX_META_DEPTH} levels of nesting")


def nesting_depth(value: object) -> int:
    """Return how many levels of objects and lists ``value`` has. Uses a loop, because recursion needs more stack."""
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return depth
