"""The record of rollbacks: Redis lost the end of the log, and an entry on the log says so.

Redis loses the end of the log in a power cut or a failover. It then uses entry numbers again. If its clock was set
back, new ids may also be below lost ids. So neither the number nor the id tells which entries a client has seen. A feed
that remembers the lost entries records the rollback once. Clients that return with a lost cursor are then set back.
"""

from typing import NamedTuple

from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.redis import positions
from stream_server.store.redis.scripts import Scripts


class RecordedRollback(NamedTuple):
    """A rollback as it is recorded on the log.

    Attributes:
        resume_after: Position after which the log continues for clients that had lost entries.
        recorded_at: Position of the new entry that records the rollback, or None if it was recorded before.
    """

    resume_after: Position
    recorded_at: Position | None


class Rollbacks:
    """Records the rollbacks of one log."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def record(self, last_kept: Position, lost: Position) -> RecordedRollback | None:
        """Record on the log that the entries after ``last_kept``, up to ``lost`` at least, are gone.

        From then on Redis assigns no id below ``lost``. Return None if ``lost`` is on the log after all. The call may
        be repeated: the same rollback is recorded once. Raises `Unavailable` while Redis accepts no writes.
        """
        reply = await self._scripts.call("log_record_rollback", keys.META, *last_kept, *lost)
        if not reply:
            return None
        start, *recorded = reply
        recorded_at = positions.parse_reply_position(recorded[0]) if recorded else None
        return RecordedRollback(positions.parse_cursor(start), recorded_at)
