"""Events by long polling. What a stream sends is no one answer: docs/api.md has its messages."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stream_server.web.http.fields import Cursor


class PolledEvents(msgspec.Struct):
    """The events that matched, and where to go on; ``more`` says that there were more than ``limit``."""

    events: Annotated[list[dict[str, Any]], Meta(description="messages as a stream sends them, one object each")]
    cursor: Cursor
    more: bool
