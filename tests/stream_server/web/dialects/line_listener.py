"""A client of streams whose messages end with CR LF, and which say that they live by a line end alone."""

import json
from collections.abc import Iterator
from typing import Any

import aiohttp

from tests.end_to_end.consumer import Consumer
from tests.end_to_end.sse import Lines


class Crlf(Lines):
    """Splits at CR LF and nowhere else; an empty line is an empty message."""

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The messages that are complete now."""
        *lines, self._rest = (self._rest + chunk).split(b"\r\n")
        for line in lines:
            assert b"\n" not in line
            yield json.loads(line) if line else {}


class Listener(Consumer):
    """What came, in order; ``signs`` counts the signs of life."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        super().__init__(response, "ndjson")
        self.parser = Crlf()

    @property
    def tweets(self) -> list[dict[str, Any]]:
        """The messages with Tweets."""
        return [message for message in self.messages if "data" in message]

    @property
    def texts(self) -> list[str]:
        """What they say."""
        return [message["data"]["text"] for message in self.tweets]

    @property
    def signs(self) -> int:
        """How many line ends stood alone."""
        return self.messages.count({})
