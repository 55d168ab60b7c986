"""The turn of a request that reads the log backwards: a preview, counts, a recent search, or a page of events."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stream_server.events.position import EPOCH_MS, Position
from stream_server.web.http.app_keys import HUB, STORE
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits.processor_time import Payer
from stream_server.web.route import AppValues, Request
from stream_server.web.streaming.stream_plan import wait_for_head


@asynccontextmanager
async def looking_back(request: Request) -> AsyncIterator[Payer]:
    """Let a request look back in its turn. A user has one such request at a time.

    A context, whose value pays for the time of matching. Raises `RateLimited` if the user has one already, or has taken
    too much processor time.
    """
    limits = request.app[LIMITS]
    payer = limits.payer(request)
    with limits.running(request, limits.previews):
        await payer.run_in_turn(lambda: None)  # what there is to match is known later, and is charged then
        yield payer


async def find_before(app: AppValues, number: int) -> Position | None:
    """Return the position of the last entry before the id ``number``. None if the log has none.

    The hub has all that the log has by then. Else a look back would find posts whose deletes the hub has not read yet.
    """
    located = await app[STORE].log.look_up((number >> 12) + EPOCH_MS, number & 4095)
    await wait_for_head(app[HUB], located.head)
    return located.previous
