"""The table of rate limits. The setting ``limits`` has their numbers; a limit of 0 means that there is no limit."""

from enum import Enum
from typing import NamedTuple

MINUTE, QUARTER_HOUR, HOUR, DAY = 60, 900, 3600, 86_400
"""Lengths of windows in seconds."""


class Subject(Enum):
    """The kind of subject whose uses a limit counts together."""

    USER = "user"
    ADDRESS = "address"
    LOGIN_AND_ADDRESS = "login and address"
    LOGIN = "login"


class RateLimit(NamedTuple):
    """One row of the table.

    Attributes:
        name: Name of the limit in the setting ``limits``, of its counter and in the metrics.
        window_seconds: Length of the window, which begins with the first use.
        noun: What the limit counts, in the plural, for the message of a refusal.
    """

    name: str
    window_seconds: int
    subject: Subject
    noun: str


READS = RateLimit("reads", MINUTE, Subject.USER, "reads")
WRITES = RateLimit("writes", MINUTE, Subject.USER, "writes")
STATUSES = RateLimit("statuses", MINUTE, Subject.USER, "statuses, comments and messages")
WRITE_BYTES = RateLimit("write_bytes", HOUR, Subject.USER, "bytes of writes")
FOLLOWS = RateLimit("follows", DAY, Subject.USER, "follows, and people added to lists and groups")
REPORTS = RateLimit("reports", DAY, Subject.USER, "reports")
TALKS = RateLimit("talks", DAY, Subject.USER, "new talks")
CONNECTS = RateLimit("connects", QUARTER_HOUR, Subject.USER, "connects to streams")
DIALECT_CONNECTS = RateLimit("dialect_connects", QUARTER_HOUR, Subject.USER, "connects to this stream")
POLLS = RateLimit("polls", MINUTE, Subject.USER, "polls")
TICKETS = RateLimit("tickets", MINUTE, Subject.USER, "tickets")
TRIALS = RateLimit("rule_trials", MINUTE, Subject.USER, "explanations and previews of rules")
LOG_INS = RateLimit("log_ins", QUARTER_HOUR, Subject.LOGIN_AND_ADDRESS, "log-ins of this account")
LOG_INS_OF_ACCOUNT = RateLimit("log_ins_of_account", QUARTER_HOUR, Subject.LOGIN, "log-ins of this account")
LOG_INS_OF_ADDRESS = RateLimit("log_ins_of_address", QUARTER_HOUR, Subject.ADDRESS, "log-ins from this address")
SIGN_UPS = RateLimit("sign_ups", HOUR, Subject.ADDRESS, "sign-ups from this address")
LOOKUPS = RateLimit("lookups", MINUTE, Subject.ADDRESS, "questions for free names from this address")
ANONYMOUS = RateLimit("anonymous", MINUTE, Subject.ADDRESS, "requests without a valid token from this address")
FILES = RateLimit("files", MINUTE, Subject.ADDRESS, "files of the console from this address")

RATE_LIMITS: tuple[RateLimit, ...] = (
    READS, WRITES, WRITE_BYTES, STATUSES, FOLLOWS, REPORTS, TALKS, CONNECTS, DIALECT_CONNECTS, POLLS,
    TICKETS, TRIALS, LOG_INS, LOG_INS_OF_ACCOUNT, LOG_INS_OF_ADDRESS, SIGN_UPS, LOOKUPS, ANONYMOUS, FILES,
)  # fmt: skip
"""All rate limits."""
