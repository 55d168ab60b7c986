"""What a valid token says: its user, or the limits of a reader, who has no account."""

from dataclasses import dataclass

import msgspec

from stream_server.security.external_identity import Profile

READER_SCOPES = frozenset({"stream"})
"""The scopes of a reader token, no more and no fewer."""


class Reader(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits that a reader token sets to its streams. It has no user, so these streams show public events only.

    Attributes:
        within: A rule that each event must match in addition to the filters of the stream. "" if the token has none.
        max_streams: Most streams that one process keeps open with the token. 0 if the token has no such limit.
    """

    within: str = ""
    max_streams: int = 0


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a valid token.

    Attributes:
        sub: The user's id. Empty for a reader token.
        scopes: Names of the permissions that the token gives, such as ``read`` or ``stream``.
        jti: The token's id.
        iat: When the token was issued, in seconds since 1970.
        exp: When the token expires, in seconds since 1970.
        profile: What another issuer says about its user ``sub``, who has no id of this server yet. None otherwise.
        session: Id of the log-in session that ends the token, or an empty string. Only this server issues such tokens.
        reader: What a reader token says of its streams. None for the token of a user.
    """

    sub: str
    scopes: frozenset[str]
    jti: str
    iat: float
    exp: float
    session: str = ""
    profile: Profile | None = None
    reader: Reader | None = None
