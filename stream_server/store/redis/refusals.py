"""Refusals: translate the error replies of scripts and of Redis into API errors.

A script refuses with ``<CODE> <noun> [<parameter>]``. Redis refuses with its own codes. If Redis refuses a command
inside a script, its code is inside the text, because Redis 6.2 wraps it. Then the script has written nothing, because
the refused command is its first write. A missing ACL permission is different: Redis checks it at each command.
"""

from redis.exceptions import ResponseError

from stream_server.errors import (
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    InternalError,
    NotFound,
    TooLarge,
    Unavailable,
)
from stream_server.store.redis.errors import outcome_unknown_error

UNAVAILABLE_CODES = (
    "OOM", "READONLY", "LOADING", "MISCONF", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOAUTH",
)  # fmt: skip
"""Codes of Redis that say it cannot write now, but may write later."""

SCRIPT_KILLED_TEXT = "killed by user"
"""Text of the error after SCRIPT KILL. Redis allows it only before the first write of a script."""

ACL_DENIED_TEXTS = ("The user executing the script can't", "ACL failure in script")
"""Texts of errors about a command that Redis' ACL forbids inside a script. Earlier writes of the script remain."""

NOT_YOURS_MESSAGES = {
    "group": "only members may post, comment or like in it, and only its owner may announce or change it",
    "list": "only its owner may change a list",
    "comment": "only the author of a comment or of its status may delete it",
}
"""Messages of the code NOT_YOURS for nouns whose owner is not an author."""

TOO_MANY_MESSAGES = {
    "lists": "at most 1,000 lists a user",
    "members": "at most 5,000 members of a list or a group",
    "groups": "at most 1,000 groups a user",
    "rules": "at most 1,000 rules a user",
}
"""Messages of the code TOO_MANY, by noun."""

BAD_REQUEST_MESSAGES = {
    "ONESELF": "must be another user",
    "BLOCKED": "you block this user; unblock first",
    "ELSEWHERE": "a post in a group can only be replied to or reposted in that group",
    "PROTECTED": "a post of a protected author can only be reposted by the author",
    "OWNER": "the owner cannot leave a group; delete it instead",
    "BY_THEMSELVES": "users join a public group themselves; only members of private groups are added",
    "STATUSLESS": "this report is not about a status",
}
"""Messages of the script codes for invalid requests. The faulty parameter follows the code."""


def to_api_error(error: ResponseError) -> ApiError:
    """Return the API error for an error reply of a script or of Redis."""
    code, _, details = str(error).partition(" ")
    api_error = _parse_script_refusal(code, details)
    if api_error is not None:
        return api_error
    if any(_has_code(error, name) for name in UNAVAILABLE_CODES) or SCRIPT_KILLED_TEXT in str(error):
        return Unavailable("the data store accepts no writes at the moment; nothing was written", retry_after=1)
    return InternalError("the data store refused a command")


def write_error_to_api_error(error: ResponseError) -> ApiError:
    """Return the API error for a script that writes. A script stopped in the middle may have written."""
    is_partial = any(text in str(error) for text in ACL_DENIED_TEXTS)
    return outcome_unknown_error() if is_partial else to_api_error(error)


def is_demoted_primary(error: ResponseError) -> bool:
    """Return whether the server is a replica, or a replica that lost its primary."""
    return _has_code(error, "READONLY") or _has_code(error, "MASTERDOWN")


def _has_code(error: ResponseError, code: str) -> bool:
    """Return whether an error has this code. redis-py removes known codes from the text."""
    return getattr(error, "status_code", None) == code or f"{code} " in str(error)


def _parse_script_refusal(code: str, details: str) -> ApiError | None:
    """Return the API error for a script's refusal, or None. ``details`` is a noun and perhaps a parameter."""
    noun, _, param = details.partition(" ")
    api_param = param or None
    if code in BAD_REQUEST_MESSAGES:
        return BadRequest(BAD_REQUEST_MESSAGES[code], param=noun)
    match code:
        case "NOT_FOUND":
            api_error: ApiError | None = NotFound(f"unknown {noun}", param=api_param)
        case "DECIDED":
            return Conflict(f"this {noun} already has another decision", code="duplicate")
        case "TAKEN":
            api_error = Conflict(f"this {noun} is already in use", code=f"{noun}_taken", param=noun)
        case "DUPLICATE":
            api_error = Conflict("this Idempotency-Key was used with another request", code="duplicate", param=noun)
        case "NOT_YOURS":
            api_error = Forbidden(
                NOT_YOURS_MESSAGES.get(noun, "only its author may do this"), code="not_yours", param=api_param
            )
        case "TOO_MANY":
            api_error = TooLarge(TOO_MANY_MESSAGES[noun], code="too_many", param=api_param)
        case "SUSPENDED":
            api_error = Forbidden("this account is suspended", code="suspended")
        case _:
            api_error = None
    return api_error
