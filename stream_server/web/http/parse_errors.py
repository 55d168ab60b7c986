"""Makes the record that aiohttp keeps of bytes that are not HTTP small, before it waits for its answer."""

from collections import deque
from typing import Any

from aiohttp.http_parser import RawRequestMessage


def shrink_last_error(messages: deque[Any]) -> bool:
    """Return whether the last message is the record of an error. If so, take the received bytes out of it.

    Its error has the bytes as text, of four characters each. Its traceback refers to the record: a cycle, which would
    stay until a full garbage collection. A client could send any number of such bytes.
    """
    if not messages or isinstance(messages[-1][0], RawRequestMessage):
        return False
    record, payload = messages.pop()
    error = record.exc
    error.__traceback__ = error.__context__ = error.__cause__ = None
    error.args, error.message = (), ""
    messages.append((type(record)(record.status, error, ""), payload))
    return True
