"""The types of the members of bodies and answers, each with its limits, and reading a body as one of the shapes.

A member that its shape does not have is refused by name, and so is one of another type: nothing is guessed.
"""

import re
import unicodedata
from typing import Annotated, Any, TypeVar

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.errors import ApiError, BadRequest, TooLarge
from stream_server.web.http.app_keys import CONFIG
from stream_server.web.http.body import read_json_body, refuse_deep_json
from stream_server.web.http.validation_wording import describe_violation

BodyType = TypeVar("BodyType", bound=msgspec.Struct)

MAX_META_BYTES = 4096
MAX_META_DEPTH = 16
"""Deep JSON is small to send and costs a decoder's stack, each client's too."""

LOGIN_PATTERN = re.compile(r"[A-Za-z0-9_]{1,20}")

# `$` matches before a last line feed as well, hence the look-ahead.
Login = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,20}$(?!\n)", description="1 to 20 letters, digits or _")]
DisplayName = Annotated[
    str, Meta(min_length=1, max_length=50, description="1 to 50 code points, no control characters")
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
    str, Meta(max_length=35, pattern=r"^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$(?!\n)", description="BCP 47, such as en-GB")
]
Longitude = Annotated[float, Meta(ge=-180, le=180)]
Latitude = Annotated[float, Meta(ge=-90, le=90)]
HttpUrl = Annotated[
    str,
    Meta(max_length=2048, pattern=r"^https?://[^\s\x00-\x20\x7f]+$(?!\n)", description="begins http:// or https://"),
]
Secret = Annotated[str, Meta(min_length=1, max_length=512)]
NonNegativeInt = Annotated[int, Meta(ge=0)]
Timestamp = Annotated[
    str, Meta(extra_json_schema={"format": "date-time"}, description="ISO 8601 in UTC, with milliseconds")
]
Cursor = Annotated[str, Meta(description="opaque; good for the list that gave it")]


_BIDI_CONTROLS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
"""Bidirectional controls (Unicode Annex 9 §2)."""


def check_name(name: str) -> None:
    """Raises ValueError for a name in which nothing is to be seen, or that has control characters.

    Those that turn the direction of text count too: they would turn what stands beside the name.
    """
    if not any(unicodedata.category(c)[0] in "LNPS" for c in name):
        raise ValueError("`name`: not blank")
    if any(unicodedata.category(c) == "Cc" or unicodedata.bidirectional(c) in _BIDI_CONTROLS for c in name):
        raise ValueError("`name`: no control characters")


def check_meta(meta: dict[str, Any]) -> None:
    """Raises ValueError for a ``meta`` that is too large or too deep."""
    if len(msgspec.json.encode(meta)) > MAX_META_BYTES:
        raise ValueError(f"`meta`: at most {MAX_META_BYTES} bytes of JSON")
    if nesting_depth(meta) > MAX_META_DEPTH:
        raise ValueError(f"`meta`: at most {MAX_META_DEPTH} levels deep")


def nesting_depth(value: object) -> int:
    """How many objects and lists are inside one another; level by level, so that depth costs no stack."""
    level, found = [value], 0
    while level := [one for one in level if isinstance(one, dict | list)]:
        found += 1
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return found


async def read_body_as(body_type: type[BodyType], request: web.Request) -> tuple[BodyType, bytes]:
    """The request's JSON body, checked, and its bytes as they came; raises errors.ApiError naming the member."""
    body = await read_json_body(request, request.app[CONFIG].body_max_bytes)
    return decode_body(body_type, body), body


def decode_body(body_type: type[BodyType], body: bytes) -> BodyType:
    """``body`` as a ``body_type``; raises BadRequest (or TooLarge for a list that is too long) naming the member."""
    refuse_deep_json(body)
    try:
        return msgspec.json.decode(body, type=body_type)
    except msgspec.ValidationError as error:
        raise to_api_error(str(error), body_type) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest("the body is not JSON in UTF-8", code="malformed_body") from None


_MEMBER_PATH = re.compile(r"(?P<text>.*) - at `\$\.?(?P<path>[^`]*)`\Z", re.DOTALL)
_UNKNOWN_MEMBER = re.compile(r"Object contains unknown field `(.*)`\Z", re.DOTALL)
_MISSING_MEMBER = re.compile(r"Object missing required field `(.*)`\Z", re.DOTALL)
_NAMED_MEMBER = re.compile(r"`(\w+)`: (.*)\Z", re.DOTALL)


def to_api_error(text: str, struct_type: type) -> ApiError:
    """Our refusal for msgspec's of a ``struct_type``, which tells the member's path at the end of a sentence."""
    located = _MEMBER_PATH.match(text)
    text, path = (located["text"], located["path"]) if located else (text, "")
    for pattern, code, message in (
        (_UNKNOWN_MEMBER, "unknown_parameter", "no such member here"),
        (_MISSING_MEMBER, "missing_parameter", "this member is needed"),
    ):
        if found := pattern.match(text):
            return BadRequest(message, code=code, param=_join_path(path, found[1]))
    if named := _NAMED_MEMBER.match(text):
        return BadRequest(named[2], param=_join_path(path, named[1]))
    if not path:
        return BadRequest("the body must be a JSON object", code="malformed_body")
    if text.startswith("Expected `array` of length <="):
        return TooLarge(text.replace("`", ""), code="too_many", param=path)
    return BadRequest(describe_violation(text, struct_type, path), param=path)


def _join_path(path: str, member: str) -> str:
    """A path as clients write it, ``location.lat``; a made-up member's name is cut short."""
    shown = member[:64]
    return f"{path}.{shown}" if path else shown
