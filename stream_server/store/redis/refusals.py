"""What a script answers when it refuses, and what its caller is told.

Scripts refuse by ``<WORD> <noun> [<parameter>]``; Redis itself by words of its own, which stand somewhere in the text
when a command inside a script was refused (6.2 wraps them). Nothing was written then: a script's first write is the one
that fails. But for what the user of Redis may not do: that is looked at for each command as it comes.
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
from stream_server.store.redis import timeout_budget

UNAVAILABLE_CODES = (
    "OOM", "READONLY", "LOADING", "MISCONF", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOAUTH",
)  # fmt: skip
"""Redis cannot write now, and may later."""

SCRIPT_KILLED_TEXT = "killed by user"
"""Somebody has ended the script by SCRIPT KILL, which Redis allows only before its first write."""

ACL_DENIED_TEXTS = ("The user executing the script can't", "ACL failure in script")
"""Redis' ACL forbids a command in the middle of a script; what came before it stays written."""

NOT_YOURS_MESSAGES = {
    "group": "only members may post, comment or like in it, and only its owner may announce or change it",
    "list": "only its owner may change a list",
    "comment": "only its author, or that of its status, may delete a comment",
}
"""What is said where a noun has another owner than an author."""

TOO_MANY_MESSAGES = {
    "lists": "at most 1,000 lists a user",
    "members": "at most 5,000 members of a list or a group",
    "groups": "at most 1,000 groups a user",
    "rules": "at most 1,000 rules a user",
}
"""What there may be no more of."""

BAD_REQUEST_MESSAGES = {
    "ONESELF": "somebody other than oneself",
    "BLOCKED": "you block them: unblock them first",
    "ELSEWHERE": "what is posted in a group is answered and repeated there only",
    "PROTECTED": "only its author may repost what is protected",
    "OWNER": "its owner does not leave a group, only delete it",
    "BY_THEMSELVES": "people join a group that is not private by themselves",
    "STATUSLESS": "this report is of no status",
}
"""Words of scripts for a request that cannot be; the parameter at fault follows the word."""


def to_api_error(error: ResponseError) -> ApiError:
    """The error for a script's, or Redis', refusal."""
    word, _, what = str(error).partition(" ")
    made = _parse_script_refusal(word, what)
    if made is not None:
        return made
    if any(_has_code(error, name) for name in UNAVAILABLE_CODES) or SCRIPT_KILLED_TEXT in str(error):
        return Unavailable("the data store takes no writes at the moment; nothing was written", retry_after=1)
    return InternalError("the data store refused a command")


def write_error_to_api_error(error: ResponseError) -> ApiError:
    """The same for a script that writes: one that was stopped in its middle may have written."""
    return (
        timeout_budget.outcome_unknown_error()
        if any(text in str(error) for text in ACL_DENIED_TEXTS)
        else to_api_error(error)
    )


def is_demoted_primary(error: ResponseError) -> bool:
    """Whether this is said by one that is no primary, or by a replica that has lost its own."""
    return _has_code(error, "READONLY") or _has_code(error, "MASTERDOWN")


def _has_code(error: ResponseError, code: str) -> bool:
    """redis-py keeps the word apart from the text where it knows it."""
    return getattr(error, "status_code", None) == code or f"{code} " in str(error)


def _parse_script_refusal(code: str, details: str) -> ApiError | None:
    """``details`` is a noun, and after a blank the parameter that named it, if one did."""
    noun, _, param = details.partition(" ")
    named = param or None
    if code in BAD_REQUEST_MESSAGES:
        return BadRequest(BAD_REQUEST_MESSAGES[code], param=noun)
    match code:
        case "NOT_FOUND":
            made: ApiError | None = NotFound(f"there is no such {noun}", param=named)
        case "DECIDED":
            return Conflict(f"this {noun} was decided otherwise", code="duplicate")
        case "TAKEN":
            made = Conflict(f"this {noun} is taken", code=f"{noun}_taken", param=noun)
        case "DUPLICATE":
            made = Conflict("this key was used before, with another request", code="duplicate", param=noun)
        case "NOT_YOURS":
            made = Forbidden(NOT_YOURS_MESSAGES.get(noun, "only its author may do this"), code="not_yours", param=named)
        case "TOO_MANY":
            made = TooLarge(TOO_MANY_MESSAGES[noun], code="too_many", param=named)
        case "SUSPENDED":
            made = Forbidden("this account is suspended", code="suspended")
        case _:
            made = None
    return made
