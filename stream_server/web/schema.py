"""What JSON bodies may hold: one class a body, the limits beside the members.

A member that is not here is refused by name, and so is one of another type: nothing is guessed or converted.
"""

import re
import unicodedata
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.errors import ApiError, BadRequest, TooLarge
from stream_server.store import draft
from stream_server.web.body import read_json
from stream_server.web.keys import CONFIG

Body = TypeVar("Body", bound=msgspec.Struct)

META_MAX_BYTES = 4096
META_MAX_DEPTH = 16
"""Deep JSON is small to send and costs a decoder's stack, each client's too."""

MAX_MEDIA = 4
MAX_BATCH = 200
MAX_ADMIN_BATCH = 1000

LOGIN = re.compile(r"[A-Za-z0-9_]{1,20}")

# `$` matches before a last line feed as well, hence the look-ahead.
Login = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,20}$(?!\n)", description="1 to 20 letters, digits or _")]
Name = Annotated[str, Meta(min_length=1, max_length=50, description="1 to 50 code points, no control characters")]
Email = Annotated[str, Meta(max_length=254, pattern=r"^[^@\s\x00-\x20\x7f]{1,64}@[^@\s\x00-\x20\x7f]+$(?!\n)")]
Password = Annotated[str, Meta(min_length=8, max_length=256)]
Id = Annotated[str, Meta(pattern=r"^[0-9]{1,20}$(?!\n)", description="a decimal number")]
Language = Annotated[str, Meta(max_length=35, pattern=r"^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$(?!\n)")]
Longitude = Annotated[float, Meta(ge=-180, le=180)]
Latitude = Annotated[float, Meta(ge=-90, le=90)]
Link = Annotated[str, Meta(max_length=2048, pattern=r"^https?://[^\s\x00-\x20\x7f]+$(?!\n)")]
Secret = Annotated[str, Meta(min_length=1, max_length=512)]


class NewUser(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/users``."""

    login: Login
    name: Name
    email: Email
    password: Password

    def __post_init__(self) -> None:
        check_name(self.name)


class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """The query of ``GET /v1/users/available``."""

    login: Login | None = None
    email: Email | None = None


class NewSession(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/sessions``: a login or an e-mail with the password, or a refresh token."""

    login: Annotated[str, Meta(max_length=20)] | None = None
    email: Annotated[str, Meta(max_length=254)] | None = None
    password: Annotated[str, Meta(max_length=256)] | None = None
    refresh_token: Secret | None = None


class Location(draft.Location, frozen=True, forbid_unknown_fields=True):
    """A point, in degrees (WGS 84)."""

    lon: Longitude
    lat: Latitude


class Place(draft.Place, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A named place; ``box`` is west, south, east, north, with west > east across the date line."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    country: Annotated[str, Meta(pattern=r"^[A-Za-z]{2}$(?!\n)", description="ISO 3166-1 alpha-2")] | None = None
    box: tuple[Longitude, Latitude, Longitude, Latitude] | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.box is not None and (self.box[1] >= self.box[3] or self.box[0] == self.box[2]):
            raise ValueError("`box`: south must be below north, and west not equal to east")


class Media(draft.Media, frozen=True, forbid_unknown_fields=True):
    """A link to what the author shows; it is not fetched."""

    url: Link
    type: Literal["image", "video", "gif", "audio"]


class NewStatus(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/statuses``; ``message`` may be empty only with ``origin``, which makes it a repost."""

    message: str = ""
    location: Location | None = None
    place: Place | None = None
    in_reply_to: Id | None = None
    origin: Id | None = None
    lang: Language | None = None
    media: Annotated[list[Media], Meta(max_length=MAX_MEDIA)] = []
    meta: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in self.message):
            raise ValueError("`message`: no control characters but line feed and tab")
        if self.meta is not None:
            check_meta(self.meta)


class FollowBatch(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/users/me/following``: at most 200 ids in both lists together."""

    follow: list[Id] = []
    unfollow: list[Id] = []


class NewAccount(msgspec.Struct, forbid_unknown_fields=True):
    """One user of an admin's batch, without a password: nobody logs in as them until they are given one."""

    login: Login
    name: Name

    def __post_init__(self) -> None:
        check_name(self.name)


class AccountBatch(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/admin/users``: 1 to 1,000 of them."""

    users: Annotated[list[NewAccount], Meta(min_length=1)]


def check_name(name: str) -> None:
    """Raises ValueError for a name that is blank or has control characters."""
    if not name.strip() or any(unicodedata.category(c) == "Cc" for c in name):
        raise ValueError("`name`: not blank, no control characters")


def check_meta(meta: dict[str, Any]) -> None:
    """Raises ValueError for a ``meta`` that is too large or too deep."""
    if len(msgspec.json.encode(meta)) > META_MAX_BYTES:
        raise ValueError(f"`meta`: at most {META_MAX_BYTES} bytes of JSON")
    if depth(meta) > META_MAX_DEPTH:
        raise ValueError(f"`meta`: at most {META_MAX_DEPTH} levels deep")


def depth(value: object) -> int:
    """How many objects and lists are inside one another; level by level, so that depth costs no stack."""
    level, found = [value], 0
    while level := [one for one in level if isinstance(one, dict | list)]:
        found += 1
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return found


async def read_body_as(kind: type[Body], request: web.Request) -> tuple[Body, bytes]:
    """The request's JSON body, checked, and its bytes as they came; raises errors.ApiError naming the member."""
    body = await read_json(request, request.app[CONFIG].body_max_bytes)
    return decode(kind, body), body


def decode(kind: type[Body], body: bytes) -> Body:
    """``body`` as a ``kind``; raises BadRequest (or TooLarge for a list that is too long) naming the member."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from None
    except RecursionError:
        raise BadRequest("the JSON is nested too deeply", code="malformed_body") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest("the body is not JSON in UTF-8", code="malformed_body") from None


def convert(kind: type[Body], parameters: dict[str, str]) -> Body:
    """A query's parameters as a ``kind``; raises BadRequest naming the parameter."""
    try:
        return msgspec.convert(parameters, kind)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from None


_PATH = re.compile(r"(?P<text>.*) - at `\$\.?(?P<path>[^`]*)`\Z", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`\Z", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`\Z", re.DOTALL)
_NAMED = re.compile(r"`(\w+)`: (.*)\Z", re.DOTALL)


def _refusal(text: str) -> ApiError:
    """Our refusal for msgspec's, which tells the member's path at the end of a sentence."""
    located = _PATH.match(text)
    text, path = (located["text"], located["path"]) if located else (text, "")
    for pattern, code, message in (
        (_UNKNOWN, "unknown_parameter", "no such member here"),
        (_MISSING, "missing_parameter", "this member is needed"),
    ):
        if found := pattern.match(text):
            return BadRequest(message, code=code, param=_join(path, found[1]))
    if named := _NAMED.match(text):
        return BadRequest(named[2], param=_join(path, named[1]))
    if not path:
        return BadRequest("the body must be a JSON object", code="malformed_body")
    if text.startswith("Expected `array` of length <="):
        return TooLarge(text.replace("`", ""), code="too_many", param=path)
    return BadRequest(text.replace("`", ""), param=path)


def _join(path: str, member: str) -> str:
    """A path as clients write it, ``location.lat``; a made-up member's name is cut short."""
    shown = member[:64]
    return f"{path}.{shown}" if path else shown
