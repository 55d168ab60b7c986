"""What the log lost: said on the log itself, once, and kept so that whoever returns from there can be set back.

Redis may lose the end of the log: a power cut, a failover. Then numbers are used again, and with the clock set back ids
too lie below lost ones, so that neither tells what a client has seen. A feed that remembers what was there says it.
"""

from typing import NamedTuple

from stream_server.events import redis_position
from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.redis.scripts import Scripts


class RecordedRollback(NamedTuple):
    """After ``resume_after`` the log goes on for whoever had what was lost; ``recorded_at`` is where that was said just now.

    It is None where another had said so.
    """

    resume_after: Position
    recorded_at: Position | None


class Rollbacks:
    """What one store's log lost."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def record(self, last_kept: Position, lost: Position) -> RecordedRollback | None:
        """Say on the log that what came after ``last_kept`` is gone, as far as ``lost`` at least.

        From then on no id is made below ``lost``. None means that it is there after all. Raises Unavailable while Redis
        takes no writes. Made twice it is told once, so it may be repeated.
        """
        told = await self._scripts.call("log_record_rollback", keys.META, *last_kept, *lost)
        if not told:
            return None
        start, *word = told
        return RecordedRollback(
            redis_position.parse_cursor(start), redis_position.parse_reply_position(word[0]) if word else None
        )
