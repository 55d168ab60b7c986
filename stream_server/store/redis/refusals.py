"""The API errors for an unreachable Redis, and for the error replies of scripts and of Redis.

A script refuses with ``REFUSED <CODE> <noun> [<parameter>]``. Redis refuses with its own codes, also a command inside a
script. Then the script has written nothing, because the refused command is its first write. A missing ACL permission is
different: Redis checks it at each command. So is a key that a node of a cluster lacks, because its slot is being moved.
"""

from socket import gaierror

from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    InvalidResponse,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from stream_server import errors
from stream_server.errors import ApiError, BadRequest, Conflict, Forbidden, Unavailable, first_cause, reason_of

UNAVAILABLE_CODES = (
    "OOM", "READONLY", "LOADING", "MISCONF", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOAUTH",
    "NOSCRIPT",
)  # fmt: skip
"""Codes of Redis that say it cannot write now, but may write later.

NOSCRIPT is among them: a script was loaded into one server and called on the next, which took its place meanwhile.
"""

SCRIPT_KILLED_TEXT = "killed by user"
"""Text of the error after SCRIPT KILL. Redis allows it only before the first write of a script."""

CLUSTER_DOWN_TEXT = "while the cluster is down"
"""Text of the error about the first write of a script in a cluster that serves reads only."""

ACL_DENIED_TEXTS = ("The user executing the script can't", "ACL failure in script")
"""Texts of errors about a command that Redis' ACL forbids inside a script, of Redis 7.0 and of newer engines.

Earlier writes of the script remain.
"""

NON_LOCAL_KEY_TEXT = "attempted to access a non local key"
"""Text of the error about a key of a slot that is being moved. Earlier writes of the script remain."""

NOT_YOURS_MESSAGES = {
    "group": "only members may post, comment or like in it, and only its owner may announce or change it",
    "list": "only its owner may change a list",
    "comment": "only the author of a comment or of its status may delete it",
}
"""Messages of the code NOT_YOURS for nouns whose owner is not an author."""

TOO_MANY_MESSAGES = {
    "following": "this user already follows, or asks, as many people as the server allows",
    "lists": "at most 100 lists a user",
    "members": "at most 5,000 members of a list or a group",
    "groups": "at most 1,000 groups a user",
    "invitations": "this user has 1,000 invitations that wait for an answer",
    "subscriptions": "at most 100 subscriptions a user, and 256 KiB of parameters; a part counts as 256 bytes",
    "webhooks": "you have as many webhooks as the server allows; one with parts counts as so many",
    "rules": "at most 1,000 rules a user, and 256 KiB of rules",
}
UNANSWERED_MESSAGES = {
    "talk": "the others have not answered yet; a stranger may send them a few messages only",
    "talks": "one of these users has not answered the talk that you opened before",
    "invitations": "this user has not answered your earlier invitations",
}
BAD_REQUEST_MESSAGES = {
    "ONESELF": "must be another user",
    "BLOCKED": "you block this user; unblock first",
    "ELSEWHERE": "a post in a group can only be replied to or reposted in that group",
    "PROTECTED": "a post of a protected author can only be reposted by the author",
    "OWNER": "the owner cannot leave a group; delete it instead",
    "BY_THEMSELVES": "users join a public group themselves; only members of private groups are added",
    "STATUSLESS": "this report is not about a status",
    "FIXED": "the number of parts is fixed; to change it, delete the subscription and make it again",
    "WORDLESS": "a repost without a message cannot be edited; it shows the original",
}
"""Messages of the script codes for invalid requests. The faulty parameter follows the code."""


def unavailable_error(cause: BaseException | None = None) -> Unavailable:
    """Make the API error for a request that Redis did not execute. ``cause`` is the error that says why."""
    reason = "cannot be reached"
    if isinstance(cause, BusyLoadingError):
        reason = "is still loading its data"
    elif isinstance(cause, AuthenticationError | AuthorizationError):
        reason = "does not let this server in"
    elif isinstance(cause, TimeoutError | RedisTimeoutError):
        reason = "did not answer in time"
    return Unavailable(f"the data store {reason}; nothing was written", retry_after=1)


def describe_for_operator(error: ApiError) -> str:
    """Return what keeps Redis from its work, such as "cannot be reached: …", by the error from which ``error`` came.

    The text may have the address of Redis, so it is for the operator. It has no password.
    """
    cause = first_cause(error)
    if cause is error:
        return f"is unavailable: {error.message}"
    refuses = isinstance(cause, ResponseError | AuthenticationError | AuthorizationError | BusyLoadingError)
    return f"{'refuses' if refuses else 'cannot be reached'}: {reason_for_operator(error)}"


def reason_for_operator(error: BaseException) -> str:
    """Return why Redis does not do its work: the text of the first cause, and one word for its kind in brackets."""
    cause = first_cause(error)
    text, kind = reason_of(cause).rstrip("."), _kind_of_failure(cause)
    return f"{text} ({kind})" if kind and kind not in text else text


def _kind_of_failure(cause: BaseException) -> str:
    """Return the word by which an operator knows a failure. Empty for an error that has such words itself."""
    text, is_connection = str(cause), isinstance(cause, OSError | RedisConnectionError)
    kind = ""
    if isinstance(cause, TimeoutError | RedisTimeoutError):
        kind = "frozen"
    elif isinstance(cause, AuthenticationError | AuthorizationError):
        kind = "no password" if "required" in text else "bad password"
    elif isinstance(cause, BusyLoadingError):
        kind = "loading"
    elif isinstance(cause, InvalidResponse):
        kind = "another program, or TLS"
    elif is_connection and "SSL" in text:
        kind = "TLS"
    elif is_connection and "max number of clients" in text:
        kind = "maxclients"
    elif isinstance(cause, gaierror) or (is_connection and text.startswith("Error -")):
        kind = "DNS"  # redis-py has the negative numbers of getaddrinfo
    return kind


def outcome_unknown_error(
    reason: str = "the data store did not answer; the write may have been made",
) -> errors.OutcomeUnknown:
    """Make the API error for a write that Redis may have executed. ``reason`` says why this is not certain."""
    message = f"{reason}. Repeat it with the same Idempotency-Key; without one it may be made twice"
    return errors.OutcomeUnknown(message, retry_after=1)


def to_api_error(error: ResponseError) -> ApiError:
    """Return the API error for an error reply of a Lua script or of Redis."""
    api_error = _parse_script_refusal(error)
    if api_error is not None:
        return api_error
    if _is_temporary(error):
        return Unavailable("the data store accepts no writes at the moment; nothing was written", retry_after=1)
    return errors.InternalError("the data store refused a command")


def write_error_to_api_error(error: ResponseError) -> ApiError:
    """Return the API error for a failed write script: `OutcomeUnknown` if it may have made some of its changes."""
    is_partial = any(text in str(error) for text in (*ACL_DENIED_TEXTS, NON_LOCAL_KEY_TEXT))
    return outcome_unknown_error() if is_partial else to_api_error(error)


def is_demoted_primary(error: ResponseError) -> bool:
    """Return whether an error reply says that the server is a replica now: code READONLY or MASTERDOWN."""
    return _has_code(error, "READONLY") or _has_code(error, "MASTERDOWN")


def _is_temporary(error: ResponseError) -> bool:
    """Return whether Redis may accept later what it refused. ASK is never followed: its target lacks the other keys."""
    is_elsewhere = isinstance(error, AskError)  # MOVED is one, too
    texts = (SCRIPT_KILLED_TEXT, CLUSTER_DOWN_TEXT, NON_LOCAL_KEY_TEXT)
    return (
        is_elsewhere
        or any(_has_code(error, name) for name in UNAVAILABLE_CODES)
        or any(text in str(error) for text in texts)
    )


def _has_code(error: ResponseError, code: str) -> bool:
    return code_of(error) == code


def code_of(error: ResponseError) -> str:
    """Return the code of an error reply, such as READONLY: its first word, which redis-py takes off some of them."""
    return error.status_code or str(error).partition(" ")[0]


def message_of(error: ResponseError) -> str:
    """Return the text of an error reply without the code, its first word."""
    return str(error) if error.status_code else str(error).partition(" ")[2]


def parse_refusal(error: ResponseError) -> tuple[str, str, str | None]:
    """Return code, noun and parameter of a script's refusal. Redis adds the line of the script behind ``script:``.

    The values for another error mean nothing.
    """
    code, _, details = str(error).partition(" script: ")[0].removeprefix("REFUSED ").partition(" ")
    noun, _, param = details.partition(" ")
    return code, noun, param or None


def _parse_script_refusal(error: ResponseError) -> ApiError | None:
    """Return the API error for a script's refusal, or None for any other error."""
    code, noun, param = parse_refusal(error)
    if code in BAD_REQUEST_MESSAGES:
        return BadRequest(BAD_REQUEST_MESSAGES[code], param=noun)
    found: ApiError | None = None
    match code:
        case "NOT_FOUND":
            found = errors.NotFound(f"unknown {noun}", param=param)
        case "DECIDED":
            found = Conflict(f"this {noun} already has another decision", code="duplicate")
        case "TAKEN":
            found = Conflict(f"this {noun} is already in use", code=f"{noun}_taken", param=noun)
        case "DUPLICATE":
            found = Conflict("this Idempotency-Key was used with another request", code="duplicate", param=noun)
        case "NOT_YOURS":
            message = NOT_YOURS_MESSAGES.get(noun, "only its author may do this")
            found = Forbidden(message, code="not_yours", param=param)
        case "TOO_MANY":
            found = errors.TooLarge(TOO_MANY_MESSAGES[noun], code="too_many", param=param)
        case "UNANSWERED":
            found = Forbidden(UNANSWERED_MESSAGES[noun], code="unanswered", param=param)
        case "WRONG":
            found = Forbidden("the password is wrong", code=f"wrong_{noun}", param=f"current_{noun}")
        case "TOO_LATE":
            found = Forbidden("this status is too old to be edited", code="too_late", param=param)
        case "SUSPENDED":
            found = Forbidden("this account is suspended", code="suspended")
    return found
