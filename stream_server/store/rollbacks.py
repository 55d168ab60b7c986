"""What the log lost: said on the log itself, once, and kept so that whoever returns from there can be set back.

Redis may lose the end of the log: a power cut, a failover. Then numbers are used again, and with the clock set back ids
too lie below lost ones, so that neither tells what a client has seen. A feed that remembers what was there says it.
"""

from typing import NamedTuple

from stream_server.events import Position
from stream_server.store import keys, position
from stream_server.store.scripts import Scripts


class Loss(NamedTuple):
    """After ``start`` the log goes on for whoever had what was lost; ``told`` is where that was said just now.

    It is None where another had said so.
    """

    start: Position
    told: Position | None


class Rollbacks:
    """What one store's log lost."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def tell(self, survivor: Position, lost: Position) -> Loss | None:
        """Say on the log that what came after ``survivor`` is gone, as far as ``lost`` at least.

        From then on no id is made below ``lost``. None means that it is there after all. Raises Unavailable while Redis
        takes no writes. Made twice it is told once, so it may be repeated.
        """
        told = await self._scripts.read("rollback", keys.META, *survivor, *lost)
        if not told:
            return None
        start, *word = told
        return Loss(position.of_cursor(start), position.parse(word[0]) if word else None)
