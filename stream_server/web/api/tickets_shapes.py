"""Tickets: what opens one stream."""

from typing import Annotated

import msgspec
from msgspec import Meta


class Ticket(msgspec.Struct):
    """What opens one stream, in its URL."""

    ticket: Annotated[str, Meta(description="for `?ticket=`, once")]
    expires_in: Annotated[int, Meta(ge=1, description="seconds")]
