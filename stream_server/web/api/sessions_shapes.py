"""Sessions: log in."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from stream_server.web.api.users_shapes import OwnUser
from stream_server.web.http.fields import Secret


class NewSession(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/sessions``: a login or an e-mail with the password, or a refresh token."""

    login: Annotated[str, Meta(max_length=20)] | None = None
    email: Annotated[str, Meta(max_length=254)] | None = None
    password: Annotated[str, Meta(max_length=256)] | None = None
    refresh_token: Secret | None = None


class Session(msgspec.Struct):
    """An access token and what prolongs it."""

    token: Annotated[str, Meta(description="for `Authorization: Bearer`")]
    token_type: Literal["Bearer"]
    expires_in: Annotated[int, Meta(ge=1, description="seconds")]
    refresh_token: Annotated[str, Meta(description="good for one `POST /v1/sessions`")]
    user: OwnUser
