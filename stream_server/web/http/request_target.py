"""Shortens the target of a request before any library walks it.

The router looks at a path once for each of its slashes, and yarl decodes the host of an absolute target. Both take
quadratic time, so a target of 64 KiB would hold the event loop for seconds.
"""

from collections.abc import Callable, Iterable
from typing import Any

from aiohttp.http_parser import RawRequestMessage
from yarl import URL

MAX_PATH_CHARS = 4096
"""Longest path of a request in characters, percent-encoded: more than a hashtag of 280 code points takes."""

NOWHERE = URL.build(path="/(too long)", encoded=True)
"""Stands for each path that is longer or deeper than any route. No route has this path."""


class TargetLimit:
    """Replaces the target of a request that cannot be meant for a route.

    An absolute target, such as a proxy gets (RFC 9112 §3.2.2), loses its host: this server serves every host alike.
    """

    def __init__(self, routes: Iterable[str]) -> None:
        """``routes`` are the paths of all routes, with their parameters in braces."""
        self._max_slashes = max((path.count("/") for path in routes), default=0)

    def apply(self, message: RawRequestMessage) -> RawRequestMessage:
        """Return the message with a target that takes little time to read."""
        text = message.path
        if text.startswith("/") and len(text) <= MAX_PATH_CHARS and text.count("/") <= self._max_slashes:
            return message  # the usual case, which needs no look at the URL
        url = message.url
        target = url.relative() if url.absolute else url
        path = target.raw_path
        if len(path) > MAX_PATH_CHARS or path.count("/") > self._max_slashes:
            target = NOWHERE
        return message if target is url else message._replace(url=target)

    def shorten_targets(self, make_request: Callable[..., Any]) -> Callable[..., Any]:
        """Return a factory of requests that applies this limit before it calls ``make_request``."""

        def make(message: RawRequestMessage, *rest: Any) -> Any:
            return make_request(self.apply(message), *rest)

        return make
