"""A strict parser of server-sent events (WHATWG HTML, section 9.2)."""

import json
from collections.abc import Iterator
from typing import Any

FIELDS = {"id", "event", "data", "retry"}


class Broken(AssertionError):
    """The server sent something malformed."""


class EventStream:
    """Parser of server-sent events. ``last_id`` and ``retry_ms`` are the values that an EventSource would have."""

    def __init__(self) -> None:
        self.last_id = ""
        self.retry_ms: int | None = None
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Yield the messages that are complete now. Raises Broken unless ``id`` and ``event`` agree with the data."""
        blocks = (self._rest + chunk).split(b"\n\n")
        self._rest = blocks.pop()
        for block in blocks:
            message = self._message(block.decode())
            if message is not None:
                yield message

    def _message(self, block: str) -> dict[str, Any] | None:
        fields = [self._field(line) for line in block.split("\n") if not line.startswith(":")]
        names = [name for name, _ in fields]
        if len(set(names)) != len(names):
            raise Broken(f"a field is there twice: {block!r}")
        found = dict(fields)
        self.last_id = found.get("id", self.last_id)
        self.retry_ms = int(found["retry"]) if "retry" in found else self.retry_ms
        if "data" not in found:
            return None
        message: dict[str, Any] = json.loads(found["data"])
        if found.get("event") != message["kind"] or found.get("id") != message["cursor"]:
            raise Broken(f"the block says other than its data: {block!r}")
        return message

    @staticmethod
    def _field(line: str) -> tuple[str, str]:
        name, colon, value = line.partition(": ")
        if not colon or name not in FIELDS or "\r" in value or "\0" in value:
            raise Broken(f"no field: {line!r}")
        return name, value


class Lines:
    """Parser of newline-delimited JSON: each line must be one object."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            message = json.loads(line.decode())
            if not isinstance(message, dict) or "\r" in line.decode():
                raise Broken(f"no object: {line!r}")
            yield message
