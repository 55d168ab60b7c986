"""The clients of Jetstream: the same program as `bench.reader`, but an event is a WebSocket frame.

An event carries the time of Jetstream's receipt, ``"time_us":<digits>``, in microseconds of the wall clock. The frames
of a server are not masked, so the mark is found without taking them apart. Pings are not answered, because Jetstream
waits longer for the answer than a measurement takes.
"""

import time

from bench import reader

MARK = b'"time_us":'
"""The bytes before the time of an event."""

DIGITS = 16
"""Digits of that time."""


class WebSocketClients(reader.Clients):
    """All connections."""

    accepted = b" 101 "

    def _count(self, client: reader.Client, data: bytes) -> None:
        now = time.time_ns()
        first, *rest = data.split(MARK)
        last = rest[-1] if rest else first
        # The end of a read may cut a mark. Its beginning waits for the next read.
        if rest and len(last) < DIGITS:
            client.carry = MARK + rest.pop()
        else:
            client.carry = last[-len(MARK) + 1 :]
        if self.measuring:
            self.events += len(rest)
            for part in rest:
                self.delays.append(now - 1000 * int(part[:DIGITS]))


if __name__ == "__main__":
    reader.main(WebSocketClients)
