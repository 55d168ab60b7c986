"""What a script answers when it refuses, and what its caller is told.

Scripts refuse by ``<WORD> <what>``; Redis itself by words of its own, which stand somewhere in the text when a
command inside a script was refused (6.2 wraps them). Nothing was written then: a script's first write is the one
that fails.
"""

from redis.exceptions import ResponseError

from stream_server.errors import ApiError, BadRequest, Conflict, Forbidden, Internal, NotFound, Unavailable

REDIS = (
    "OOM", "READONLY", "LOADING", "MISCONF", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOAUTH",
)  # fmt: skip
"""Redis cannot write now, and may later."""


def refused(error: ResponseError) -> ApiError:
    """The error for a script's, or Redis', refusal."""
    word, _, what = str(error).partition(" ")
    made = _of_script(word, what)
    if made is not None:
        return made
    if getattr(error, "status_code", None) in REDIS or any(f"{name} " in str(error) for name in REDIS):
        return Unavailable("the data store takes no writes at the moment; nothing was written", retry_after=1)
    return Internal("the data store refused a command")


def _of_script(word: str, what: str) -> ApiError | None:
    match word:
        case "NOT_FOUND":
            return _not_found(what)
        case "TAKEN":
            return Conflict(f"this {what} is taken", code=f"{what}_taken", param=what)
        case "DUPLICATE":
            return Conflict("this key was used before, with another request", code="duplicate", param=what)
        case "NOT_YOURS":
            return Forbidden("only its author may do this", code="not_yours")
        case "ONESELF":
            return BadRequest("nobody follows oneself", param=what)
    return None


def _not_found(what: str) -> NotFound:
    """``what`` is a noun, or the parameter that named what is not there."""
    if what in {"user", "status"}:
        return NotFound(f"there is no such {what}")
    noun = "user" if what == "id" else "status"
    return NotFound(f"there is no such {noun}", param=what)
