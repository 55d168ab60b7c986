"""Ingest: the writes of another site as lines of JSON. Each is answered by a line, in order, while others arrive."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

import msgspec
from aiohttp import hdrs, web

from stream_server.errors import ApiError, TooLarge, Unavailable, UnsupportedMediaType
from stream_server.events.one_line import keep_on_one_line
from stream_server.store.social.ingest import Ingested
from stream_server.web.api.ingest_lines import LINES, LineAnswer, ParsedLine, name_parameter, parse_line
from stream_server.web.http.app_keys import CLAIMS, CONFIG, HUB, OPENING, REQUEST_ID, SHUTDOWN, STORE, WRITE_GUARD
from stream_server.web.http.authentication import check_token_again, token_digest
from stream_server.web.http.body import MAX_BODY_BYTES, read_content_type, refuse_codings
from stream_server.web.http.cors import add_cors_headers
from stream_server.web.http.line_reader import Line, LineReader
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.responses import X_REQUEST_ID
from stream_server.web.limits.rate_limits import WRITES
from stream_server.web.route import Request, Route
from stream_server.web.streaming.framing import NDJSON
from stream_server.web.streaming.response_head import STREAM_HEADERS

_encoder = msgspec.json.Encoder()

CHECK_SECONDS = 0.5
"""Seconds between two looks at the token and at the shutdown, while no line arrives."""


async def ingest(request: Request) -> web.StreamResponse:
    """``POST /v1/ingest``: write the lines of another site, and answer each with a line."""
    known = {NDJSON, "application/ndjson", "application/jsonl", "application/x-jsonlines"}
    if read_content_type(request).media_type not in known:
        raise UnsupportedMediaType(f"send {NDJSON}: one JSON object a line", param="Content-Type")
    refuse_codings(request.headers)
    app, limits = request.app, request.app[LIMITS]
    app[WRITE_GUARD].refuse_writes()
    request[OPENING].give_back()
    with limits.running(request, limits.ingests):
        await app[STORE].ingest.begin(request[CLAIMS].sub, token_digest(request[CLAIMS].jti)[:32])
        return await IngestExchange(request).run()


class Batch(NamedTuple):
    """Lines that go to Redis together. ``parsed`` has the write or the refusal of each. ``next_line`` follows them."""

    lines: Sequence[Line]
    parsed: Sequence[ParsedLine | ApiError]
    next_line: int


class IngestExchange:
    """One request of ingest. It reads lines in batches, writes each batch in one round trip, and sends its answers.

    While Redis writes one batch, the next one is read and parsed. The next one is written after the answers of the
    first were sent, if none of them is a failure of the server. While the client takes no answers, no third batch is
    read.
    """

    def __init__(self, request: Request) -> None:
        assert isinstance(request, web.BaseRequest)  # aiohttp reads all requests whose bodies have lines
        self._request = request
        self._ingest = request.app[STORE].ingest
        self._message_max_chars = request.app[CONFIG].message_max_chars
        self._lines = LineReader(request.content, MAX_BODY_BYTES)
        self._response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: NDJSON, **STREAM_HEADERS})
        self._next_line = 1
        self._reading: asyncio.Task[Batch] | None = None
        self._timelines = deque[Awaitable[object]]()

    async def run(self) -> web.StreamResponse:
        """Answer all lines. A failure of this server, or the end of the token, is the last answer."""
        headers = self._response.headers
        headers[X_REQUEST_ID] = self._request[REQUEST_ID]
        add_cors_headers(self._request, headers)
        await self._response.prepare(self._request)
        try:
            self._read_ahead()
            while self._reading is not None:
                batch = await self._reading
                self._read_ahead()
                await self._answer(batch)
        except ApiError as error:
            await self._send([LineAnswer.of(self._next_line, error)])
            self._response.force_close()
        finally:
            if self._reading is not None:  # a batch that will not be written
                self._reading.cancel()
                await asyncio.wait({self._reading})
                _ = self._reading.cancelled() or self._reading.exception()  # or asyncio logs an error that nobody took
        while self._timelines:
            await self._timelines.popleft()
        await self._response.write_eof()
        return self._response

    def _read_ahead(self) -> None:
        """Begin to read the next batch in a task, unless the body has ended."""
        self._reading = None if self._lines.is_finished else asyncio.create_task(self._read(), name="ingest batch")

    async def _read(self) -> Batch:
        # Redis needs 10 to 30 ms for a hundred lines, between which it serves others. The event loop is held while a
        # batch is parsed, so one of 64 KiB takes no further line.
        lines = await self._lines.take(100, 64 * 1024, CHECK_SECONDS)
        return Batch(lines, [self._parse(line) for line in lines], self._lines.next_number)

    async def _answer(self, batch: Batch) -> None:
        """Write a batch, and send its answers. Raises ApiError if the ingest must end."""
        app = self._request.app
        if app[HUB].is_stopping:
            message = "this server is shutting down; send this line and those behind it again"
            raise Unavailable(message, retry_after=app[SHUTDOWN].next_retry_after())
        app[WRITE_GUARD].refuse_writes()
        await check_token_again(self._request)
        results = await self._write(batch.parsed)
        failure = next((result for result in results if isinstance(result, ApiError) and result.status >= 500), None)
        answered = results if failure is None else results[: results.index(failure)]
        numbered = zip(batch.lines, answered, batch.parsed, strict=False)
        await self._send([LineAnswer.of(line.number, result, parsed) for line, result, parsed in numbered])
        self._next_line = batch.next_line
        if failure is not None:
            self._next_line = batch.lines[len(answered)].number
            raise failure

    def _parse(self, line: Line) -> ParsedLine | ApiError:
        try:
            if line.text is None:
                raise TooLarge("the line is too long")
            return parse_line(line.text, self._ingest, self._message_max_chars, self._request[CLAIMS].sub)
        except ApiError as error:
            return error

    async def _write(self, parsed: Sequence[ParsedLine | ApiError]) -> list[Ingested | ApiError]:
        """Write the valid lines in one round trip. Return the result or error of each line, in their order."""
        writes = [each.write for each in parsed if isinstance(each, ParsedLine)]
        if not writes:
            return [each for each in parsed if isinstance(each, ApiError)]
        written, timelines = await self._ingest.write(writes)
        self._timelines.append(timelines)
        # Two batches are answered while their timelines are still written. With one, Redis would stand still until the
        # server has heard of the timelines and has sent the next batch.
        if len(self._timelines) > 2:
            await self._timelines.popleft()
        results = iter(written)
        return [each if isinstance(each, ApiError) else name_parameter(each.write.op, next(results)) for each in parsed]

    async def _send(self, answers: Sequence[LineAnswer]) -> None:
        if answers:
            await self._response.write(keep_on_one_line(_encoder.encode_lines(answers)))


# fmt: off
ROWS: tuple[Route, ...] = (
    Route("POST", "/v1/ingest", ingest, "ingest", response=LineAnswer, lines=LINES, media_type=NDJSON,
          is_streaming=True, limits=(WRITES,), extra_error_statuses=(415,)),
)
# fmt: on
