"""Writers that send requests without a pause.

They repeat an unanswered request under one key until its outcome is known.
"""

import asyncio
import random
import uuid
from collections.abc import Sequence
from typing import Any

import aiohttp

from tests.end_to_end.api import mint
from tests.end_to_end.random_faults.ledger import Deed, Ledger, Message
from tests.end_to_end.random_faults.site import Site

WORDS = ("storm", "calm", "harbour", "night", "ferry", "gull")
PLACES = ((-122.5, 37.5), (13.4, 52.5), (0.0, 0.0))
LONGEST_WAIT_SECONDS = 0.3
"""The longest wait before a retry. It is shorter than the server's `Retry-After`, because the run is short."""

NOT_SENT = -1
"""The code of an attempt without a connection: nothing was sent."""

NOT_THERE = (403, 404)
"""The status codes for a like or unlike of a post that was deleted meanwhile."""


class Writer:
    """An author who posts, edits, deletes, follows and likes, one request after another, each to a random server.

    Attributes:
        keyed: Share of the posts that are sent with a key. Others are not repeated if their outcome is unknown.
        edits: Whether the author edits. The last release has no edits.
    """

    keyed = 1.0
    edits = True

    def __init__(self, site: Site, ledger: Ledger, people: Sequence[str], which: int, seed: int) -> None:
        self.uid = people[which]
        self._site = site
        self._ledger = ledger
        self._others = [uid for uid in people if uid != self.uid]
        self._chance = random.Random(seed)
        self._mine: list[str] = []
        self._following: set[str] = set()
        self._liked: set[str] = set()
        self._token = mint(self.uid, ttl=86_400)
        self._stopping = False

    def stop(self) -> None:
        """Finish the current request and begin no other."""
        self._stopping = True

    async def run(self) -> None:
        self._stopping = False
        async with self._site.session() as session:
            while not self._stopping:
                await self._one(session)
                await self._rest()

    async def _rest(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, 0.04))  # the pace of the load; it waits for nothing

    def _text(self) -> str:
        """Return a text that no other post has."""
        return f"{' '.join(self._chance.sample(WORDS, 2))} {len(self._ledger.deeds)}"

    async def _one(self, session: aiohttp.ClientSession) -> None:
        acts = [(50, self._post), (12, self._delete), (14, self._follow), (14, self._like)]
        if self.edits:
            acts.append((20, self._edit))
        act = self._chance.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        await act(session)

    async def _post(self, session: aiohttp.ClientSession) -> None:
        text = self._text()
        deed = self._ledger.begin(self.uid, "post", text)
        body: Message = {"message": text}
        if self._chance.random() < 0.3:
            lon, lat = self._chance.choice(PLACES)
            body["location"] = {"lon": lon, "lat": lat}
        keyed = self._chance.random() < self.keyed
        answer = await self._settled(session, deed, "POST", "statuses", body, keyed=keyed)
        if deed.written:
            deed.status, deed.subject = answer, answer["id"]
            self._mine.append(deed.subject)
            self._site.posted.append(deed.subject)

    async def _edit(self, session: aiohttp.ClientSession) -> None:
        """Edit one of the newest statuses, so that many are edited more than once, and soon after a like or an edit."""
        if self._mine:
            status, text = self._chance.choice(self._mine[-8:]), self._text()
            deed = self._ledger.begin(self.uid, "edit", status)
            answer = await self._settled(session, deed, "PATCH", f"statuses/{status}", {"message": text})
            if deed.written:
                assert answer["message"] == text, (deed, answer)
                deed.status = answer

    async def _delete(self, session: aiohttp.ClientSession) -> None:
        if self._mine:
            await self._delete_at(session, self._chance.randrange(len(self._mine)))

    async def _delete_at(self, session: aiohttp.ClientSession, at: int) -> None:
        status = self._mine.pop(at)
        deed = self._ledger.begin(self.uid, "delete", status)
        await self._settled(session, deed, "DELETE", f"statuses/{status}")

    async def _follow(self, session: aiohttp.ClientSession) -> None:
        await self._toggle(session, self._following, self._chance.choice(self._others), "follow", "following")

    async def _like(self, session: aiohttp.ClientSession) -> None:
        if self._site.posted:
            status = self._chance.choice(self._site.posted[-40:])
            await self._toggle(session, self._liked, status, "like", "likes")

    async def _toggle(self, session: aiohttp.ClientSession, now: set[str], subject: str, kind: str, path: str) -> None:
        begins = subject not in now
        deed = self._ledger.begin(self.uid, kind if begins else f"un{kind}", subject)
        await self._settled(session, deed, "PUT" if begins else "DELETE", f"users/me/{path}/{subject}")
        if deed.written:
            (now.add if begins else now.discard)(subject)

    async def _settled(
        self, session: aiohttp.ClientSession, deed: Deed, method: str, path: str, body: Message | None = None, *,
        keyed: bool = True,
    ) -> Any:  # fmt: skip
        """Repeat the request until its outcome is known. After `unavailable`, sometimes give it up."""
        headers = {"Authorization": f"Bearer {self._token}"}
        if keyed:
            headers["Idempotency-Key"] = f"{self.uid}-{uuid.uuid4().hex}"
        certain = True
        while True:
            status, answer = await self._sent(session, method, path, headers, body)
            deed.answers.append((status, answer["error"]["message"] if status == 503 else ""))
            if 200 <= status < 300:
                deed.outcome = "written"
                return answer
            if status in NOT_THERE and deed.kind in ("like", "unlike"):
                deed.outcome = "refused"
                return None
            refused = status == 503 and answer["error"]["code"] == "unavailable"
            certain = certain and (refused or status == NOT_SENT)
            assert status in (0, NOT_SENT, 503), (deed, status, answer)
            if not certain and not keyed:
                deed.outcome = "unknown"
                return None
            if certain and refused and self._chance.random() < 0.5:
                deed.outcome = "given up"
                return None
            await asyncio.sleep(self._chance.uniform(0.05, LONGEST_WAIT_SECONDS))  # the retry interval of a client

    async def _sent(
        self, session: aiohttp.ClientSession, method: str, path: str, headers: dict[str, str], body: Message | None
    ) -> tuple[int, Any]:
        """Make one attempt at a random server.

        Return status and answer; the status is 0 if the connection broke, or NOT_SENT.
        """
        url = f"{self._site.address(self._chance)}/v1/{path}"
        try:
            async with session.request(method, url, headers=headers, json=body) as response:
                self._site.answers[response.status] += 1
                return response.status, await response.json() if response.status != 204 else None
        except aiohttp.ClientConnectorError:
            self._site.answers[0] += 1
            return NOT_SENT, None
        except (aiohttp.ClientError, TimeoutError, OSError):
            self._site.answers[0] += 1
            return 0, None
