"""The table of rate limits. The numbers are settings; a limit of 0 means that there is no limit."""

from enum import Enum
from typing import NamedTuple

from stream_server.config.settings import Config

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
        setting: Name of the setting with the number of uses in a window. Also the name of the counter.
        window_seconds: Length of the window, which begins with the first use.
        noun: What the limit counts, in the plural, for the message of a refusal.
    """

    setting: str
    window_seconds: int
    subject: Subject
    noun: str

    def maximum(self, config: Config) -> int:
        """Return the number of uses that the settings allow in a window; 0 means any number."""
        return int(getattr(config, self.setting))


READS = RateLimit("limit_reads", MINUTE, Subject.USER, "reads")
WRITES = RateLimit("limit_writes", MINUTE, Subject.USER, "writes")
STATUSES = RateLimit("limit_statuses", MINUTE, Subject.USER, "statuses, comments and messages")
WRITE_BYTES = RateLimit("limit_write_bytes", HOUR, Subject.USER, "bytes of writes")
FOLLOWS = RateLimit("limit_follows", DAY, Subject.USER, "follows, and people added to lists and groups")
REPORTS = RateLimit("limit_reports", DAY, Subject.USER, "reports")
TALKS = RateLimit("limit_talks", DAY, Subject.USER, "new talks")
CONNECTS = RateLimit("limit_connects", QUARTER_HOUR, Subject.USER, "connects to streams")
DIALECT_CONNECTS = RateLimit("reconnect_limit", QUARTER_HOUR, Subject.USER, "connects to this stream")
POLLS = RateLimit("limit_polls", MINUTE, Subject.USER, "polls")
TICKETS = RateLimit("limit_tickets", MINUTE, Subject.USER, "tickets")
TRIALS = RateLimit("limit_rule_trials", MINUTE, Subject.USER, "explanations and previews of rules")
LOG_INS = RateLimit("limit_log_ins", QUARTER_HOUR, Subject.LOGIN_AND_ADDRESS, "log-ins of this account")
LOG_INS_OF_ACCOUNT = RateLimit("limit_log_ins_of_account", QUARTER_HOUR, Subject.LOGIN, "log-ins of this account")
LOG_INS_OF_ADDRESS = RateLimit("limit_log_ins_of_address", QUARTER_HOUR, Subject.ADDRESS, "log-ins from this address")
SIGN_UPS = RateLimit("limit_sign_ups", HOUR, Subject.ADDRESS, "sign-ups from this address")
LOOKUPS = RateLimit("limit_lookups", MINUTE, Subject.ADDRESS, "questions for free names from this address")
ANONYMOUS = RateLimit("limit_anonymous", MINUTE, Subject.ADDRESS, "requests without a valid token from this address")
FILES = RateLimit("limit_files", MINUTE, Subject.ADDRESS, "files of the console from this address")

RATE_LIMITS: tuple[RateLimit, ...] = (
    READS, WRITES, WRITE_BYTES, STATUSES, FOLLOWS, REPORTS, TALKS, CONNECTS, DIALECT_CONNECTS, POLLS,
    TICKETS, TRIALS, LOG_INS, LOG_INS_OF_ACCOUNT, LOG_INS_OF_ADDRESS, SIGN_UPS, LOOKUPS, ANONYMOUS, FILES,
)  # fmt: skip
"""All rate limits."""
