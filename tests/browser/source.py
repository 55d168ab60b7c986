"""An EventSource in a tab, and the messages that it received."""

from dataclasses import dataclass, field
from typing import Any, Self

from playwright.async_api import Page, Request

from tests.waiting import eventually

SCRIPT = """
url => {
  window.heard = [];
  window.gaveUp = false;
  const source = new EventSource(url);
  for (const kind of ["hello", "post", "delete", "heartbeat", "gap", "warning", "effective", "goodbye"])
    source.addEventListener(kind, e => heard.push({ id: e.lastEventId, kind: e.type, message: JSON.parse(e.data) }));
  source.onerror = () => { window.gaveUp = source.readyState === EventSource.CLOSED; };
}
"""


@dataclass
class Source:
    """An EventSource in a tab. ``requests`` are the requests for streams that the tab sent, in order."""

    tab: Page
    requests: list[Request] = field(default_factory=list)

    @classmethod
    async def opened(cls, tab: Page, site: str, path: str) -> Self:
        """Open ``site`` in the tab. There, open an EventSource at ``path``, which may be a whole URL."""
        made = cls(tab)
        tab.on("request", lambda request: made.requests.append(request) if "/v1/stream?" in request.url else None)
        await tab.goto(site)
        await tab.evaluate(SCRIPT, path)
        return made

    async def until(self, kind: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until ``count`` messages of a kind were received, and return all of that kind."""

        async def found() -> list[dict[str, Any]]:
            events = [one for one in await self.heard() if one["kind"] == kind]
            return events if len(events) >= count else []

        return await eventually(found, what=f"{count} of {kind}")

    async def until_closed(self) -> None:
        """Wait for an error after which the EventSource does not reconnect."""
        await eventually(lambda: self.tab.evaluate("gaveUp"), what="an error for good")

    async def heard(self) -> list[dict[str, Any]]:
        return list(await self.tab.evaluate("heard"))
