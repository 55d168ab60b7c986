"""OAuth 1.0a as clients of v1.1 send it (RFC 5849 §3.5): in the Authorization header, in a form, or in the query.

``oauth_token`` is a token of this server, which is the proof by itself. The signature is not looked at: it would prove
that the client knows two secrets, which nobody here gave to anyone.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote

SCHEME = "oauth"
TOKEN_PARAMETER = "oauth_token"  # noqa: S105 - the name of a parameter

_HEADER_PARAMETER = re.compile(r'([a-z_]{1,40})\s*=\s*"([^"]*)"')


def find_token(authorization: str, parameters: Mapping[str, str]) -> str | None:
    """The token in the header or, without a header, in the parameters of a request; None where there is none."""
    scheme, _, credentials = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip() or None
    if scheme.lower() == SCHEME:
        return _token_in_header(credentials) or None
    return None if scheme else parameters.get(TOKEN_PARAMETER) or None


def _token_in_header(credentials: str) -> str | None:
    """``oauth_token`` of what follows ``OAuth`` in the header, a list of ``name="value"``; None if it is not there."""
    return next(
        (unquote(value) for name, value in _HEADER_PARAMETER.findall(credentials) if name == TOKEN_PARAMETER), None
    )
