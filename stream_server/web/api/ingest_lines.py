"""The lines of an ingest and their answers: what each may have, what it may do without, and how it is written."""

import re
import time
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stream_server.errors import ApiError, BadRequest, Conflict
from stream_server.store.social.ingest import Ingest, Ingested, IngestWrite
from stream_server.web.api.people import UserChanges
from stream_server.web.api.statuses import NewStatus, StatusChanges, check_message_text
from stream_server.web.http import validation
from stream_server.web.http.body import normalise_json
from stream_server.web.http.fields import DisplayName, ForeignId, Id, Login
from stream_server.wire.errors import ErrorDetail

_MEMBER = re.compile(r"(user|status)\.(\w+)")
"""The object and the member at the beginning of a parameter such as `status.place.name`."""

_SURROGATES = re.compile(rb"(\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..", re.DOTALL)
"""What to keep (group 1: an escaped backslash, and a whole pair), or half a pair in JSON: an emoji that a site cut in
two. It becomes U+FFFD, as in browsers (Infra §4.6, "convert to a scalar value string")."""

ChangeId = Annotated[ForeignId, Meta(description="the site's own id of this change; with it, the line counts once")]


class IngestedUser(UserChanges, kw_only=True):
    """A user of another site.

    A new user without ``login`` gets one; without ``name``, the login or the foreign id is the name. Of a known user,
    omitted members stay as they are, and null clears one. ``login`` never changes.
    """

    foreign_id: ForeignId
    login: Login | None = None
    name: DisplayName | UnsetType | None = UNSET  # type: ignore[assignment]  # null is no name, as for `login`


class IngestedStatus(NewStatus, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A status of another site. ``author``, ``in_reply_to`` and ``origin`` are foreign ids.

    ``posted`` is the time that the status shows.
    """

    foreign_id: ForeignId
    author: ForeignId
    in_reply_to: ForeignId | None = None
    origin: ForeignId | None = None
    group: str | None = None
    posted: (
        Annotated[
            str,
            Meta(
                pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$(?!\n)",
                description="a time such as 2026-01-31T12:00:00Z, since 1970",
            ),
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group is not None:
            raise ValueError("`group` must be left out: a site's statuses are in no group")


class UserLine(msgspec.Struct, tag_field="op", tag="user", forbid_unknown_fields=True):
    """Creates a user, or changes the profile of a known one."""

    user: IngestedUser
    id: ChangeId | None = None


class PostLine(msgspec.Struct, tag_field="op", tag="post", forbid_unknown_fields=True):
    """Posts a status."""

    status: IngestedStatus


class EditedStatus(StatusChanges, kw_only=True):
    """Changes of a status of another site. Omitted members stay as they are; null clears one."""

    foreign_id: ForeignId


class EditLine(msgspec.Struct, tag_field="op", tag="edit", forbid_unknown_fields=True):
    """Edits a status, whatever its age."""

    status: EditedStatus
    id: ChangeId | None = None


class DeleteLine(msgspec.Struct, tag_field="op", tag="delete", forbid_unknown_fields=True):
    """Deletes a status."""

    status: ForeignId


class FollowLine(msgspec.Struct, tag_field="op", tag="follow", forbid_unknown_fields=True):
    """Makes the source follow the target. Both are foreign ids of users."""

    source: ForeignId
    target: ForeignId
    id: ChangeId | None = None


class UnfollowLine(FollowLine, tag_field="op", tag="unfollow", forbid_unknown_fields=True):
    """Ends the source's follow of the target."""


class BlockLine(FollowLine, tag_field="op", tag="block", forbid_unknown_fields=True):
    """Lets the source block the target. This ends their follows."""


class UnblockLine(FollowLine, tag_field="op", tag="unblock", forbid_unknown_fields=True):
    """Ends the source's block of the target."""


class MuteLine(FollowLine, tag_field="op", tag="mute", forbid_unknown_fields=True):
    """Lets the source mute the target."""


class UnmuteLine(FollowLine, tag_field="op", tag="unmute", forbid_unknown_fields=True):
    """Ends the source's mute of the target."""


class SuspendLine(msgspec.Struct, tag_field="op", tag="suspend", forbid_unknown_fields=True):
    """Suspends a user, and ends the user's streams."""

    user: ForeignId
    id: ChangeId | None = None


class ReinstateLine(SuspendLine, tag_field="op", tag="reinstate", forbid_unknown_fields=True):
    """Ends the suspension of a user."""


class DeleteUserLine(msgspec.Struct, tag_field="op", tag="delete_user", forbid_unknown_fields=True):
    """Deletes the account of a user and all that the user wrote. This cannot be undone."""

    user: ForeignId
    id: ChangeId | None = None


AnyLine = (
    UserLine | PostLine | EditLine | DeleteLine | FollowLine | UnfollowLine | BlockLine | UnblockLine | MuteLine
    | UnmuteLine | SuspendLine | ReinstateLine | DeleteUserLine
)  # fmt: skip
LINES = cast("tuple[type[msgspec.Struct], ...]", get_args(AnyLine))
_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)

_OPTIONAL = {
    "user": frozenset({"login", "name", "bio", "url", "place", "lang"}),
    "status": frozenset({"location", "place", "lang", "media", "meta"}),
}
"""Members that are left out if they are invalid, by the object that has them. The answer names each of them.

To refuse the line instead cost a site all posts of a user whose profile had one invalid member. The members of a status
that are listed here only describe it. An invalid ``protected`` refuses the line: without it everybody would see what
the user writes.
"""


def _op(line: type[msgspec.Struct] | msgspec.Struct) -> str:
    return str(line.__struct_config__.tag)


class ParsedLine(NamedTuple):
    """A line of an ingest that is valid enough to be written.

    ``left_out`` has the errors of its members that are not written.
    """

    write: IngestWrite
    left_out: tuple[ApiError, ...]
    login: str


class LineAnswer(msgspec.Struct):
    """The answer to one line: its number, and the own id of its user or status with a cursor, or an error."""

    line: Annotated[int, Meta(ge=1, description="the number of the line in the body")]
    id: Id | UnsetType = UNSET
    cursor: Annotated[str, Meta(description="the place in streams where the line took effect")] | UnsetType = UNSET
    outcome: Annotated[Literal["created", "updated", "unchanged"], Meta(description="of a user line")] | UnsetType = (
        UNSET
    )
    left_out: Annotated[list[ErrorDetail], Meta(description="members that had no effect, each with its fault")] | (
        UnsetType
    ) = UNSET
    error: ErrorDetail | UnsetType = UNSET

    @classmethod
    def of(cls, line: int, result: Ingested | ApiError, parsed: ParsedLine | ApiError | None = None) -> "LineAnswer":
        """Return the answer to a line: its ``result``, and the errors of members that ``parsed`` has left out."""
        if isinstance(result, ApiError):
            return cls(line, error=_detail(result))
        faults = (*parsed.left_out, *_fault_of_login(parsed.login, result)) if isinstance(parsed, ParsedLine) else ()
        left_out = [_detail(fault) for fault in faults] or UNSET
        return cls(line, result.id, result.position.cursor, cast("Any", result.outcome or UNSET), left_out)


def _detail(error: ApiError) -> ErrorDetail:
    return msgspec.convert(error.body()["error"], ErrorDetail)


def _fault_of_login(login: str, result: Ingested) -> tuple[ApiError, ...]:
    """Return why the user of a line has another login than the line says, or nothing."""
    if not login or login.lower() == result.login.lower():
        return ()
    if result.outcome == "created":
        return (Conflict("this login is already in use", code="login_taken", param="user.login"),)
    return (BadRequest(f"a login never changes; this user's is `{result.login}`", param="user.login"),)


def parse_line(text: bytes, ingest: Ingest, message_max_chars: int, sub: str) -> ParsedLine:
    """Check a line of the user ``sub``, and return its write. Raises ApiError that names the wrong member."""
    line, left_out = _decode(text)
    login = ""
    match line:
        case UserLine(user, change_id):
            profile = user.present_members()
            foreign_id, login = profile.pop("foreign_id"), profile.pop("login") or ""
            if user.name is None:
                del profile["name"]
            write = ingest.user(foreign_id, login, profile, change_id)
        case PostLine(status):
            check_message_text(status.message, message_max_chars, "status.message")
            if not status.message and status.origin is None:
                message = "a status needs a message, or an origin to repost"
                raise BadRequest(message, code="missing_parameter", param="status.message")
            write = ingest.post(status.foreign_id, status.author, status, _parse_posted(status.posted))
        case EditLine(changed, change_id):
            if isinstance(changed.message, str):
                check_message_text(changed.message, message_max_chars, "status.message")
            changes = changed.present_members()
            write = ingest.edit(changes.pop("foreign_id"), changes, change_id)
        case DeleteLine(status_id):
            write = ingest.delete(status_id)
        case FollowLine(source, target, change_id):
            if source == target:
                raise BadRequest("must be another user", param="target")
            write = ingest.change_relation(_op(line), source, target, change_id)
        case SuspendLine(foreign_id, change_id):
            write = ingest.change_suspension(_op(line), foreign_id, change_id, sub)
        case DeleteUserLine(foreign_id, change_id):
            write = ingest.delete_user(foreign_id, change_id, sub)
    return ParsedLine(write, left_out, login)


def _decode(text: bytes) -> tuple[AnyLine, tuple[ApiError, ...]]:
    """Decode a line. Return it with the faults of the members that are left out of it.

    Raises ApiError that names the wrong member if the line cannot do without it.
    """
    text = normalise_json(text)
    with suppress(msgspec.DecodeError, UnicodeDecodeError):  # the line may do without what is wrong
        return _decoder.decode(text), ()
    try:
        members = msgspec.json.decode(_SURROGATES.sub(lambda found: found[1] or rb"\ufffd", text))
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest("the line is not JSON in UTF-8", code="malformed_body") from None
    left_out = list[ApiError]()
    while True:
        try:
            return msgspec.convert(members, AnyLine), tuple(left_out)
        except msgspec.ValidationError as error:
            fault = _fault_of_line(error)
        found = _MEMBER.match(fault.param or "")
        if found is None or found[2] not in _OPTIONAL[found[1]]:
            raise fault
        del members[found[1]][found[2]]
        left_out.append(fault)


def _fault_of_line(error: msgspec.ValidationError) -> ApiError:
    found = validation.to_api_error(str(error), cast("type", AnyLine))
    if found.error_code == "malformed_body":
        return BadRequest("the line must be a JSON object in UTF-8", code="malformed_body")
    if found.param == "op" and found.error_code == "invalid_parameter":
        return BadRequest(f"`op` must be one of {', '.join(_op(line) for line in LINES)}", param="op")
    return found


def _parse_posted(posted: str | None) -> int | None:
    """Return the time in ms since 1970. Raises BadRequest for a time that does not exist, or is in the future."""
    if posted is None:
        return None
    try:
        seconds = datetime.fromisoformat(posted).timestamp()
    except ValueError:
        raise BadRequest("there is no such time", param="status.posted") from None
    if not 0 <= seconds <= time.time() + 60:  # the clock of the site may be ahead of this server's
        raise BadRequest("must be between 1970 and now", param="status.posted")
    return round(seconds * 1000)


def name_parameter(op: str, result: Ingested | ApiError) -> Ingested | ApiError:
    """Return the error with the name that the line has for the parameter: scripts call the target ``id``."""
    if isinstance(result, ApiError) and result.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        param = "target" if result.param == "id" else result.param
        if result.error_code == "suspended":  # scripts do not name the user who acts
            param = "author" if op == "post" else "source"
        if op == "edit":  # only the status can be wrong for a script
            param = "foreign_id"
        result.param = f"status.{param}" if op in {"post", "edit"} and param else param
    return result
