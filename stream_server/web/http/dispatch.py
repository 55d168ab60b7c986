"""The way of a request to its handler: a route without parameters in its path is found by one look-up.

aiohttp looks for each request at all resources below its path, in several coroutines, and then builds its chain of
middlewares. The server has one middleware, and the paths of the busiest routes have no parameters.
"""

from collections.abc import Awaitable

from aiohttp import hdrs, web

from stream_server.web.route import Handler


class Dispatcher:
    """Handles requests for an app with one middleware. It leaves requests that need aiohttp's own way to aiohttp."""

    def __init__(self, app: web.Application, handle: Handler) -> None:
        """``handle`` is aiohttp's handler of all requests for ``app``."""
        self._app = app
        self._handle = handle
        self._matches: dict[tuple[str, str], web.UrlMappingMatchInfo] = {}
        if len(app.middlewares) == 1:
            self._middleware = app.middlewares[0]
            resources = [each for each in app.router.resources() if isinstance(each, web.PlainResource)]
            self._matches = {(route.method, each.canonical): self._match(route) for each in resources for route in each}

    def _match(self, route: web.AbstractRoute) -> web.UrlMappingMatchInfo:
        """Return what all requests for a route share: it has no parameters, and nothing changes it."""
        found = web.UrlMappingMatchInfo({}, route)
        found.add_app(self._app)
        found.freeze()
        return found

    def __call__(self, request: web.Request) -> Awaitable[web.StreamResponse]:
        """Call the middleware with the handler of the request's route. Return its coroutine, without one around it."""
        found = self._matches.get((request.method, request.rel_url.raw_path))
        if found is None or hdrs.EXPECT in request.headers:
            return self._handle(request)
        request._match_info = found  # noqa: SLF001 - aiohttp's own way sets it so, too
        answer: Awaitable[web.StreamResponse] = self._middleware(request, found.handler)
        return answer
