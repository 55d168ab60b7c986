"""One row of the URL table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPEN = ""
"""In the place of a scope: no token is asked for."""

ANY = "*"
"""In the place of a scope: any valid token will do."""


@dataclass(frozen=True, slots=True)
class Route:
    """What is at a path, and who may have it.

    ``needs`` is the scope that the token must hold, :data:`ANY` or :data:`OPEN`; ``query`` names the parameters that
    its query may have, None where the handler reads them itself; ``streams`` says that its answers last.
    """

    method: str
    path: str
    handler: Handler
    needs: str
    query: frozenset[str] | None = frozenset()
    streams: bool = False
