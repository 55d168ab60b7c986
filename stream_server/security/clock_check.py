"""Notices that this machine's clock is wrong: by the times of tokens with valid signatures, and by Redis' clock."""

import logging

logger = logging.getLogger(__name__)

SUSPECT_USERS = 3
"""So many users in a row whose tokens have wrong times make the clock suspect. One may have forgotten an old token."""

MAX_SKEW_SECONDS = 2.0
"""Accepted difference of the clocks of Redis and a server in seconds. Ids and times use Redis' clock, tokens that of
the server."""

TOKENS_LATE = (
    "the last tokens of several users, all with valid signatures, have expired or are from the future: "
    "compare the clock of this machine with that of the issuer"
)

CLOCKS_DIFFER = "the clocks of Redis and this machine differ by %.1f s: run NTP on both"


class ClockCheck:
    """Collects the signs that the clock of this machine is wrong. The log has a line when a sign appears.

    ``warnings`` has the sentences for the operator.
    """

    def __init__(self) -> None:
        self._late_users: set[str] = set()
        self._skew = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        late = (TOKENS_LATE,) if len(self._late_users) >= SUSPECT_USERS else ()
        return (*late, self._skew) if self._skew else late

    def accept_token(self) -> None:
        """Note a valid token whose times are right. The users in a row are counted anew."""
        self._late_users.clear()

    def refuse_token(self, user: str) -> None:
        """Note a token of ``user`` with a valid signature that has expired, or is from the future."""
        if len(self._late_users) < SUSPECT_USERS and user not in self._late_users:
            self._late_users.add(user)
            if len(self._late_users) == SUSPECT_USERS:
                logger.warning(TOKENS_LATE)

    def compare(self, theirs: float, started: float, ended: float) -> str:
        """Note Redis' time ``theirs``, which it told between ``started`` and ``ended`` by this machine's clock.

        All are in seconds since 1970. Return the warning, or an empty text if the clocks agree.
        """
        skew = max(started - theirs, theirs - ended, 0.0)
        had_skew, self._skew = bool(self._skew), ""
        if skew > MAX_SKEW_SECONDS:
            self._skew = CLOCKS_DIFFER % skew
            if not had_skew:
                logger.warning(CLOCKS_DIFFER, skew)
        return self._skew
