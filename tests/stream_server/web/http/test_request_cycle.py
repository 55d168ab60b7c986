"""The machine of a connection: events in every order, and bytes cut anywhere, against what the bytes say."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_server.web.http.chunks import BadChunks, ChunkedBody, SizedBody
from stream_server.web.http.connection_states import (
    BODY,
    CLOSED,
    CLOSING,
    HEAD,
    IDLE,
    QUEUED,
    REST,
    RUNNING,
    SENDING,
    STATES,
    Event,
    Eviction,
    ImpossibleEvent,
    Received,
    State,
)
from stream_server.web.http.connection_timeouts import ConnectionTimeouts
from stream_server.web.http.request_cycle import RequestCycle
from stream_server.web.limits.connections import Refusal

Choose = Callable[[Sequence[Any]], Any]

OTHER_CLOCKS = {SENDING: "the clock of unsent bytes", CLOSED: "none, as it is over"}
"""The states without a deadline of their own, and which clock runs instead."""

BODIES = (b"", b"", b"x", b"GET /1 HTTP/1.1\r\nHost: b\r\n\r\n", b"0\r\n\r\n")
"""Some look like a request, or like the end of chunks."""

RUBBISH = (
    b"", b"", b"", b"get / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/0.9\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\nHost: a\n\n", b"GET / HTTP/1.1\r\nHost: a\r\n",
)  # fmt: skip
"""What follows the requests. No request begins of it."""

HISTORIES = 4000
"""Enough that each cell of the table is reached several times."""


class Sent(NamedTuple):
    """A request as its client sends it. ``body`` is None if its framing is invalid."""

    head: bytes
    framed: bytes
    body: bytes | None
    blank: bytes = b""


def make_request(number: int, choose: Choose) -> Sent:
    body, kind = choose(BODIES), choose(("sized", "sized", "chunked", "chunked", "broken"))
    start = b"POST /%d HTTP/1.1\r\nHost: a\r\n" % number
    blank = choose((b"", b"", b"\r\n"))
    if kind == "sized":
        return Sent(start + b"Content-Length: %d\r\n\r\n" % len(body), body, body, blank)
    head = start + b"Transfer-Encoding: chunked\r\n\r\n"
    pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    if kind == "broken":
        return Sent(head, framed + b"no chunk\r\n", None, blank)
    return Sent(head, framed + b"0\r\n\r\n", body, blank)


class CountingCycle(RequestCycle):
    """Counts how often an event came in a state."""

    def __init__(self, pairs: Counter[tuple[State, Event]]) -> None:
        super().__init__()
        self.pairs = pairs

    def move(self, event: Event) -> None:
        self.pairs[self.state, event] += 1
        super().move(event)


class History:
    """One connection without a socket. Its client, handlers and server do what they may do, in any order.

    Attributes:
        begun: What the handler of each request got of its body.
        is_disturbed: Whether something has ended the connection that is not its client's bytes.
    """

    def __init__(self, choose: Choose, pairs: Counter[tuple[State, Event]]) -> None:
        self.cycle = CountingCycle(pairs)
        self.choose = choose
        self.requests = [make_request(number, choose) for number in range(choose(range(5)))]
        rubbish = choose(RUBBISH)
        self.data = b"".join(each.blank + each.head + each.framed for each in self.requests) + rubbish
        self.begun: list[bytearray] = []
        self.is_disturbed = self.is_unsent = self.must_expect_body = self.is_answered = False
        self.refusal: Refusal | None = None

    def run(self, steps: int) -> None:
        doings = (self.receive, self.receive, self.handle, self.handle, self.act_as_kernel, self.pause, self.disturb)
        for _ in range(steps):
            self.choose(doings)()
            self.check()

    def finish(self) -> None:
        """Let all go on without a disturbance. Then each request that came wholly must have been answered."""
        self.cycle.is_body_paused = self.is_unsent = False
        self.check()
        while self.data or self.cycle.state in {QUEUED, BODY, RUNNING}:
            self.is_unsent = self.cycle.is_body_paused = False
            before = len(self.data), self.cycle.state, len(self.begun)
            self.receive()
            self.handle(answers=self.choose((True, False)) or not self.data)
            self.check()
            if not self.data and before == (0, self.cycle.state, len(self.begun)) and self.cycle.state is BODY:
                break  # the rest of the body never comes
        if self.is_disturbed or self.refusal:
            return
        broken = next((n for n, each in enumerate(self.requests) if each.body is None), None)
        assert len(self.begun) == (len(self.requests) if broken is None else broken + 1)
        for request, body in zip(self.requests, self.begun, strict=False):
            assert request.body is None or unframed(request, bytes(body)) == request.body

    def check(self) -> None:
        """Go on as `Connection` does, and look at what must always hold."""
        self.pump()
        cycle = self.cycle
        if cycle.state in {CLOSING, CLOSED}:
            assert cycle.kept_bytes == 0
        assert cycle.state is not SENDING or self.is_unsent
        assert cycle.kept_bytes >= len(cycle.held)
        for request, body in zip(self.requests, self.begun, strict=False):
            assert (request.body or b"").startswith(unframed(request, bytes(body))) or request.body is None

    def pump(self) -> None:
        cycle = self.cycle
        while True:
            before = cycle.state, len(cycle.held), len(self.begun)
            if cycle.state in {HEAD, IDLE}:
                head = cycle.take_request_head()
                if isinstance(head, bytes):
                    head = cycle.line_refusal() or head
                if isinstance(head, Refusal):
                    self.refusal = head
                    assert len(self.begun) == len(self.requests), "a request was refused"
                    cycle.move(Event.REFUSAL)
                elif head is not None:
                    self.begin(head)
            elif cycle.state is SENDING and not self.is_unsent:
                cycle.move(Event.SENT)
            elif cycle.state in {BODY, REST} and not cycle.is_body_paused:
                try:
                    self.begun[-1] += cycle.take_part()
                except BadChunks:
                    assert self.requests[len(self.begun) - 1].body is None
            if before == (cycle.state, len(cycle.held), len(self.begun)):
                return

    def begin(self, head: bytes) -> None:
        number = len(self.begun)
        assert not number or self.is_answered, "a request began before the one before it was answered"
        assert head == self.requests[number].head
        self.begun.append(bytearray())
        self.is_answered, self.must_expect_body = False, True
        assert self.cycle.request_head == head
        if self.choose((True, False)):
            self.cycle.move(Event.START)
            assert not self.cycle.request_head

    def receive(self) -> None:
        """Receive some bytes, unless the client has shut down its sending side."""
        size = self.choose((1, 2, 30, 1000))
        piece, self.data = self.data[:size], self.data[size:]
        if not self.cycle.has_input_ended:
            self.cycle.receive(piece)
        self.pump()

    def handle(self, *, answers: bool | None = None) -> None:
        """Let the queue or the handler of the last request do something. It may not know that the connection ended."""
        cycle, choose = self.cycle, self.choose
        if not self.begun or self.is_answered:
            return
        if cycle.state is QUEUED:
            head = cycle.request_head
            cycle.move(Event.START)
            assert head == self.requests[len(self.begun) - 1].head
            if choose((True, False, False)):
                cycle.queue(head)
            return
        if self.must_expect_body:
            self.must_expect_body = False
            request = self.requests[len(self.begun) - 1]
            if choose((True, False)):
                cycle.note_stream()
            if request.framed:
                chunked = b"chunked" in request.head
                cycle.expect_body(ChunkedBody() if chunked else SizedBody(len(request.framed)))
        elif answers if answers is not None else choose((True, False)):
            self.is_answered = True
            if cycle.state not in {CLOSING, CLOSED}:
                cycle.move(Event.ANSWERED)

    def act_as_kernel(self) -> None:
        self.is_unsent = self.choose((True, False))

    def pause(self) -> None:
        self.cycle.is_body_paused = self.choose((True, False))

    def disturb(self) -> None:
        """Let something happen that may end the connection, in a state in which `Connection` may do it."""
        cycle, state = self.cycle, self.cycle.state
        event = self.choose((None, None, None, "end of input", *Event))
        if event == "end of input":
            self.is_disturbed = True
            cycle.end_input()
            return
        is_possible = {
            Event.CLOSE: state is not CLOSED,
            Event.DRAIN: state is not CLOSED,
            Event.ABORT: state is not CLOSED,
            Event.DEADLINE: bool(state.deadline),
            Event.EVICTION: state.eviction is not Eviction.NEVER,
            Event.REFUSAL: cycle.kept_bytes > 0,
            Event.DETACH: state in {BODY, RUNNING} and not cycle.has_input_ended,
        }
        if is_possible.get(event, False):
            self.is_disturbed = True
            cycle.move(event)


def unframed(request: Sent, part: bytes) -> bytes:
    """Return the data of the chunks that a handler got, or what it got of a sized body."""
    if b"chunked" not in request.head:
        return part
    data, at = b"", 0
    while (line := re.compile(rb"([0-9a-f]+)\r\n").match(part, at)) is not None:
        size = int(line[1], 16)
        data += part[line.end() : line.end() + size]
        at = line.end() + size + 2
    assert at == len(part), "a handler gets whole chunks"
    return data


@given(st.data())
def test_requests_are_answered_one_by_one_whatever_happens(data: st.DataObject) -> None:
    history = History(lambda among: data.draw(st.sampled_from(among)), Counter())
    history.run(data.draw(st.integers(0, 40)))
    history.finish()


def test_each_cell_of_the_table_is_reached_and_no_other_pair() -> None:
    """The pairs without a cell raise an error, so a history that reached one would fail."""
    pairs = Counter[tuple[State, Event]]()
    for seed in range(HISTORIES):
        history = History(random.Random(seed).choice, pairs)
        history.run(40)
        history.finish()
    table = {(state, event) for state in STATES for event in state.moves}
    assert set(pairs) == table, table ^ set(pairs)


def test_a_pair_without_a_cell_is_an_error() -> None:
    for state in STATES:
        for event in set(Event) - set(state.moves):
            cycle = RequestCycle()
            cycle.state = state
            with pytest.raises(ImpossibleEvent, match=f"{event.name} in {state.name}"):
                cycle.move(event)


def test_each_state_has_a_deadline_and_says_when_it_may_be_closed_to_make_room() -> None:
    limits = ConnectionTimeouts()
    for state in STATES:
        if state in OTHER_CLOCKS:
            assert not state.deadline
        else:
            assert 0 < getattr(limits, state.deadline) <= limits.idle_seconds
            assert Event.DEADLINE in state.moves
        assert state.has_request == (state in {QUEUED, BODY, RUNNING})
        assert (Event.ABORT in state.moves) == (state is not CLOSED)
        assert (Event.EVICTION in state.moves) == (state.eviction is not Eviction.NEVER)
        is_over = state.received is Received.DROPPED
        assert is_over == (state in {CLOSING, CLOSED}) == ({CLOSING, CLOSED} >= set(state.moves.values()))


def test_no_request_begins_behind_the_last_answer() -> None:
    """RFC 9112 §9.6: also if the rest of the body comes after it, with a request behind."""
    cycle = RequestCycle()
    cycle.receive(b"POST /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n")
    assert isinstance(cycle.take_request_head(), bytes)
    cycle.move(Event.START)
    cycle.expect_body(SizedBody(2))
    cycle.move(Event.CLOSE)
    cycle.receive(b"{}GET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (cycle.state, cycle.kept_bytes) == (CLOSING, 0)


def test_half_a_body_ends_with_the_input_however_it_came() -> None:
    for first, after in ((b"abc", b""), (b"", b"abc")):
        cycle = RequestCycle()
        cycle.receive(b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n" + first)
        cycle.take_request_head()
        cycle.move(Event.START)
        cycle.receive(after)
        cycle.end_input()
        cycle.expect_body(SizedBody(9))
        assert (cycle.take_part(), cycle.state) == (b"abc", CLOSING)


def test_a_body_that_is_passed_through_does_not_count() -> None:
    cycle = RequestCycle()
    cycle.receive(b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 600000\r\n\r\n")
    cycle.take_request_head()
    cycle.move(Event.START)
    cycle.expect_body(SizedBody(600_000))
    before = cycle.kept_bytes
    for is_passed in (False, True):
        cycle.receive(bytes(300_000))
        cycle.take_part()
        assert (cycle.kept_bytes > before) is not is_passed
        cycle.pass_through()


def test_a_request_that_runs_counts_with_head_and_body() -> None:
    cycle = RequestCycle()
    cycle.receive(b"POST /1 HTTP/1.1\r\nX: " + b"x" * 1000 + b"\r\nContent-Length: 600000\r\n\r\n")
    half = cycle.kept_bytes
    head = cycle.take_request_head()
    assert isinstance(head, bytes)
    assert half == len(head)
    cycle.move(Event.START)
    assert cycle.kept_bytes == 4 * len(head), "the head is kept as text, too, and as fields"
    cycle.expect_body(SizedBody(600_000))
    sizes = []
    for _ in range(5):
        cycle.receive(bytes(100_000))
        cycle.take_part()
        sizes.append(cycle.kept_bytes - 4 * len(head))
    assert sizes == [100_000, 200_000, 262_144, 262_144, 262_144], "an ingest keeps only a part of its body"
    cycle.move(Event.ANSWERED)
    assert cycle.kept_bytes == 0
