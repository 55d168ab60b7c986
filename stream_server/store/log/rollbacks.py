"""The record of rollbacks: if Redis lost the end of the log, an entry on the log says so.

Redis loses the end of the log in a power cut or a failover. It then assigns the same entry numbers again. If its clock
was set back, new ids may also be below lost ids. So neither the number nor the id tells which entries a client has
seen. A feed that remembers the lost entries records the rollback once. A client that returns with a lost cursor then
resumes at the last entry before the loss.
"""

from typing import NamedTuple

from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.redis import replies
from stream_server.store.redis.scripts import Scripts


class RecordedRollback(NamedTuple):
    """A rollback (a loss of the log's end) as it is recorded on the log.

    Attributes:
        resume_after: Position of the last entry before the loss. Clients that received lost entries resume after it.
        recorded_at: Position of the new log entry that records the rollback, or None if an earlier call recorded it.
    """

    resume_after: Position
    recorded_at: Position | None


class Rollbacks:
    """Records rollbacks on one log. A rollback means that Redis lost the end of the log."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def record(self, last_kept: Position, lost: Position) -> RecordedRollback | None:
        """Record on the log that Redis lost the entries after ``last_kept``. ``lost`` is the newest lost entry known.

        Later entries get higher ids than ``lost``. Returns None, recording nothing, if ``lost`` is still on the log.
        Repeated calls record a rollback only once. Raises `Unavailable` while Redis accepts no writes.
        """
        reply = await self._scripts.call("log_record_rollback", keys.META, *last_kept, *lost)
        if not reply:
            return None
        start, *recorded = reply
        recorded_at = replies.parse_reply_position(recorded[0]) if recorded else None
        return RecordedRollback(replies.parse_cursor(start), recorded_at)
