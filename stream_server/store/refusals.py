"""What a script answers when it refuses, and what its caller is told.

Scripts refuse by ``<WORD> <noun> [<parameter>]``; Redis itself by words of its own, which stand somewhere in the text
when a command inside a script was refused (6.2 wraps them). Nothing was written then: a script's first write is the one
that fails. But for what the user of Redis may not do: that is looked at for each command as it comes.
"""

from redis.exceptions import ResponseError

from stream_server.errors import ApiError, BadRequest, Conflict, Forbidden, Internal, NotFound, TooLarge, Unavailable
from stream_server.store import budget

REDIS = (
    "OOM", "READONLY", "LOADING", "MISCONF", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOAUTH",
)  # fmt: skip
"""Redis cannot write now, and may later."""

STOPPED = "killed by user"
"""Somebody has ended the script by SCRIPT KILL, which Redis allows only before its first write."""

DENIED = ("The user executing the script can't", "ACL failure in script")
"""Redis' ACL forbids a command in the middle of a script; what came before it stays written."""

NOT_YOURS = {
    "group": "only members may post, comment or like in it, and only its owner may announce or change it",
    "list": "only its owner may change a list",
    "comment": "only its author, or that of its status, may delete a comment",
}
"""What is said where a noun has another owner than an author."""

TOO_MANY = {
    "lists": "at most 1,000 lists a user",
    "members": "at most 5,000 members of a list or a group",
    "groups": "at most 1,000 groups a user",
    "rules": "at most 1,000 rules a user",
}
"""What there may be no more of."""

REFUSED = {
    "ONESELF": "somebody other than oneself",
    "BLOCKED": "you block them: unblock them first",
    "ELSEWHERE": "what is posted in a group is answered and repeated there only",
    "PROTECTED": "only its author may repost what is protected",
    "OWNER": "its owner does not leave a group, only delete it",
    "BY_THEMSELVES": "people join a group that is not private by themselves",
    "STATUSLESS": "this report is of no status",
}
"""Words of scripts for a request that cannot be; the parameter at fault follows the word."""


def refused(error: ResponseError) -> ApiError:
    """The error for a script's, or Redis', refusal."""
    word, _, what = str(error).partition(" ")
    made = _of_script(word, what)
    if made is not None:
        return made
    if any(_says(error, name) for name in REDIS) or STOPPED in str(error):
        return Unavailable("the data store takes no writes at the moment; nothing was written", retry_after=1)
    return Internal("the data store refused a command")


def refused_write(error: ResponseError) -> ApiError:
    """The same for a script that writes: one that was stopped in its middle may have written."""
    return budget.unknown() if any(text in str(error) for text in DENIED) else refused(error)


def demoted(error: ResponseError) -> bool:
    """Whether this is said by one that is no primary, or by a replica that has lost its own."""
    return _says(error, "READONLY") or _says(error, "MASTERDOWN")


def _says(error: ResponseError, name: str) -> bool:
    """redis-py keeps the word apart from the text where it knows it."""
    return getattr(error, "status_code", None) == name or f"{name} " in str(error)


def _of_script(word: str, what: str) -> ApiError | None:
    """``what`` is a noun, and after a blank the parameter that named it, if one did."""
    noun, _, param = what.partition(" ")
    named = param or None
    if word in REFUSED:
        return BadRequest(REFUSED[word], param=noun)
    match word:
        case "NOT_FOUND":
            made: ApiError | None = NotFound(f"there is no such {noun}", param=named)
        case "DECIDED":
            return Conflict(f"this {noun} was decided otherwise", code="duplicate")
        case "TAKEN":
            made = Conflict(f"this {noun} is taken", code=f"{noun}_taken", param=noun)
        case "DUPLICATE":
            made = Conflict("this key was used before, with another request", code="duplicate", param=noun)
        case "NOT_YOURS":
            made = Forbidden(NOT_YOURS.get(noun, "only its author may do this"), code="not_yours", param=named)
        case "TOO_MANY":
            made = TooLarge(TOO_MANY[noun], code="too_many", param=named)
        case "SUSPENDED":
            made = Forbidden("this account is suspended", code="suspended")
        case _:
            made = None
    return made
