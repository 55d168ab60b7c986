"""Whether the server is well, and what it is."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http.error_shapes import ErrorDetail
from stream_server.web.http.fields import NonNegativeInt


class LivenessAnswer(msgspec.Struct):
    """The process answers."""

    alive: bool


class ReadinessAnswer(msgspec.Struct):
    """Whether an event that is written now would arrive; ``error`` says why not."""

    ready: bool
    lag_ms: Annotated[NonNegativeInt, Meta(description="how far behind the log, in milliseconds")]
    stopping: bool
    cursor: Annotated[str, Meta(description="the newest entry of the log that is known here")]
    error: ErrorDetail | UnsetType = UNSET


class OpenApiDocument(msgspec.Struct):
    """A document of OpenAPI 3.1."""

    openapi: str
    info: dict[str, Any]
    servers: list[dict[str, Any]]
    tags: list[dict[str, Any]]
    paths: dict[str, Any]
    components: dict[str, Any]


class ServerIndex(msgspec.Struct):
    """What this is, and where to begin."""

    name: str
    version: str
    docs: str
    openapi: Annotated[str, Meta(description="the path of this document")]
    sign_up: str
    log_in: str
    post: str
    stream: str
    poll: str
    metrics: str
