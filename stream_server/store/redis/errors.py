"""The errors for a Redis that cannot be reached or does not answer."""

from stream_server.errors import OutcomeUnknown, Unavailable


def unavailable_error() -> Unavailable:
    """Make the error for a request that Redis did not execute."""
    return Unavailable("the data store cannot be reached; nothing was written", retry_after=1)


def outcome_unknown_error() -> OutcomeUnknown:
    """Make the error for a write that Redis may have executed."""
    return OutcomeUnknown(
        "the data store did not answer; the write may have been made. Repeat it with the same Idempotency-Key; "
        "without one it may be made twice",
        retry_after=1,
    )
