"""The shapes of the answer of ``GET /v1/admin/operations``, and of the reports that workers send each other."""

from typing import Annotated

import msgspec
from msgspec import Meta

Time = Annotated[str, Meta(description="ISO 8601 in UTC, with milliseconds")]


class StreamCounts(msgspec.Struct):
    """The numbers of open streams and waiting long polls of one worker, by protocol."""

    sse: int = 0
    ndjson: int = 0
    websocket: int = 0
    v1: Annotated[int, Meta(description="streams of Twitter's API v1.1")] = 0
    v2: Annotated[int, Meta(description="streams of Twitter's API v2")] = 0
    poll: Annotated[int, Meta(description="long polls that wait, and previews of rules")] = 0


class WorkerState(msgspec.Struct):
    """One server process. A worker that does not answer in time is not ``ready``, and its numbers are 0."""

    worker: Annotated[int, Meta(description="its number, from 1")]
    pid: Annotated[int | None, Meta(description="null if the worker does not answer")] = None
    version: str | None = None
    started: Time | None = None
    ready: Annotated[bool, Meta(description="whether new events reach its streams")] = False
    streams: StreamCounts = msgspec.field(default_factory=StreamCounts)
    live: Annotated[int, Meta(description="streams at the head of the log")] = 0
    catching_up: int = 0
    events_published: Annotated[int, Meta(description="entries of the log that it has offered to its streams")] = 0
    events_delivered: Annotated[int, Meta(description="events that it has written, once for each stream")] = 0
    lag_ms: Annotated[int, Meta(description="how far it is behind the log")] = 0
    loop_blocked_seconds: Annotated[float, Meta(description="longest hold of its event loop in the last minute")] = 0
    loop_blocked: Annotated[int, Meta(description="holds of more than 50 ms since its start")] = 0
    memory_bytes: int = 0
    cpu_seconds: float = 0
    requests: Annotated[int, Meta(description="requests that it has answered")] = 0
    refusals: Annotated[dict[str, int], Meta(description="its error answers by code")] = {}


class RedisState(msgspec.Struct):
    """Redis, as the worker that answers sees it. ``reconnects`` is the sum over all workers."""

    memory_bytes: int = 0
    memory_limit_bytes: int = 0
    memory_alarm: Annotated[bool, Meta(description="whether writes are refused, because Redis is nearly full")] = False
    reconnects: int = 0


class LogState(msgspec.Struct):
    """The number of the newest entry, and the length, size and age of the log."""

    number: Annotated[int, Meta(description="the number of the newest entry that a worker has")] = 0
    entries: int = 0
    bytes: int = 0
    age_seconds: Annotated[float, Meta(description="age of the oldest entry, as last measured")] = 0


class JobState(msgspec.Struct):
    """The numbers of background jobs that are due, and that are parked."""

    due: int = 0
    parked: Annotated[int, Meta(description="jobs that failed too often and wait for `stream-server repair`")] = 0


class SlowClient(msgspec.Struct):
    """A stream that is behind the log, or has bytes that its client has not taken."""

    connection: str
    worker: int
    uid: str
    path: str
    parameters: str
    opened: Time
    behind: Annotated[int, Meta(description="entries of the log between its position and the newest")]
    unsent_bytes: int
    percent: Annotated[int, Meta(description="used share of the buffer for unsent bytes, 0 to 100")]


class LimitState(msgspec.Struct):
    """A limit that was met: the name of its setting or of what it limits, how often, and when last."""

    limit: str
    count: int
    last: Time


class ErrorState(msgspec.Struct):
    """A warning or an error of the log, without secrets. Equal ones of a worker are one row with their ``count``."""

    at: Annotated[Time, Meta(description="when it last occurred")]
    worker: int
    logger: str
    message: str
    count: int


class SharedState(msgspec.Struct):
    """The part of a worker's report about Redis, the log, the jobs, the clients, the limits and the errors."""

    redis: RedisState
    log: LogState
    jobs: JobState
    slow_clients: Annotated[list[SlowClient], Meta(description="the 20 that are furthest behind")]
    limits: list[LimitState]
    errors: Annotated[list[ErrorState], Meta(description="the 20 newest")]


class WorkerReport(SharedState):
    """The report that one worker sends to the worker that answers ``GET /v1/admin/operations``."""

    state: WorkerState


class HostState(msgspec.Struct):
    """The state of a server: of all its worker processes, of Redis, of the log and of the jobs."""

    at: Time
    workers: list[WorkerState]
    redis: RedisState
    log: LogState
    jobs: JobState
    slow_clients: Annotated[list[SlowClient], Meta(description="the 20 that are furthest behind")]
    limits: list[LimitState]
    errors: Annotated[list[ErrorState], Meta(description="the 20 newest")]
