"""The one shape of refusals."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stream_server.errors import STATUS_BY_CODE


class ErrorDetail(msgspec.Struct):
    """What was wrong: ``code`` is for programs, ``message`` for people; ``param`` names who is at fault."""

    code: Annotated[str, Meta(extra_json_schema={"enum": list(STATUS_BY_CODE)})]
    message: str
    param: Annotated[str, Meta(description="a query parameter, a body member or a header")] | UnsetType = UNSET
    column: Annotated[int, Meta(ge=1, description="where in a rule, in code points")] | UnsetType = UNSET


class ErrorResponse(msgspec.Struct):
    """Every answer that is not 2xx."""

    error: ErrorDetail
