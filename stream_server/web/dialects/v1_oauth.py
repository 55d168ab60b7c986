"""Finds the token in a request of OAuth 1.0a (RFC 5849 §3.5): in the Authorization header, a form, or the query.

``oauth_token`` is an access token of this server, which is sufficient proof. The server ignores the signature, because
it never issues the two secrets that a signature proves.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote

SCHEME = "oauth"
TOKEN_PARAMETER = "oauth_token"  # noqa: S105 - the name of a parameter

_HEADER_PARAMETER = re.compile(r'([a-z_]{1,40})\s*=\s*"([^"]*)"')


def find_token(authorization: str, parameters: Mapping[str, str]) -> str | None:
    """Return the token in the header, or without a header that in the parameters; None if there is no token."""
    scheme, _, credentials = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip() or None
    if scheme.lower() == SCHEME:
        return _token_in_header(credentials) or None
    return None if scheme else parameters.get(TOKEN_PARAMETER) or None


def _token_in_header(credentials: str) -> str | None:
    """Return ``oauth_token`` from the list of ``name="value"`` behind ``OAuth`` in the header, or None."""
    return next(
        (unquote(value) for name, value in _HEADER_PARAMETER.findall(credentials) if name == TOKEN_PARAMETER), None
    )
