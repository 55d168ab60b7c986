"""The trace of one request in Redis: its calls, and the position of its entry."""

from typing import NamedTuple

from stream_server.events.position import Position


class RedisCall(NamedTuple):
    """One round trip to Redis, with its times in ns since 1970."""

    started_ns: int
    ended_ns: int
    command_count: int


class RequestTrace:
    """Records of one request. Only requests that are traced have one.

    Attributes:
        calls: The round trips to Redis, in order.
        written: Position of the newest log entry that the request wrote, None if it wrote none.
    """

    __slots__ = ("calls", "written")

    def __init__(self) -> None:
        self.calls: list[RedisCall] = []
        self.written: Position | None = None
