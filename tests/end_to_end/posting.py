"""Putting texts in over HTTP: first what stands for itself, then what answers, repeats and quotes it."""

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

from tests.end_to_end.api import Api, mint
from tests.end_to_end.texts import AIRLINES, Draft

Status = dict[str, Any]
Later = Callable[[random.Random, Status], dict[str, Any]]

LATER: tuple[Later, ...] = (
    lambda _, old: {"message": "same here, flight cancelled", "in_reply_to": old["id"]},
    lambda _, old: {"message": f"@{old['login']} which service?", "in_reply_to": old["id"]},
    lambda _, old: {"message": "", "origin": old["id"]},
    lambda _, old: {"message": "", "origin": old["id"], "lang": "de"},
    lambda _, old: {"message": "worth a flight", "origin": old["id"]},
    lambda chance, _: {"message": f"@{chance.choice(AIRLINES)} typed by hand"},
    lambda chance, _: {"message": f"RT @{chance.choice(AIRLINES)} my flight", "lang": "en"},
    lambda _, __: {"message": "at the bay", "place": {"name": "Bay", "box": [-123.0, 37.0, -121.0, 38.5]}},
    lambda _, __: {"message": "far out", "place": {"name": "Fiji", "box": [176.5, -20.0, -178.0, -15.0]}},
    lambda _, __: {"message": "somewhere", "place": {"name": "nowhere in particular"}},
)


class Press:
    """Posts as many authors at once; ``happened`` is what was answered, in the order of the log."""

    def __init__(self, api: Api, people: dict[str, str]) -> None:
        self.api = api
        self.people = people
        self.happened: list[dict[str, Any]] = []
        self._tokens = {login: mint(uid) for login, uid in people.items()}

    @property
    def statuses(self) -> list[Status]:
        """All statuses so far."""
        return [h["status"] for h in self.happened if h["kind"] == "post"]

    async def print(self, drafts: Iterable[Draft]) -> None:
        """Post ``drafts``, eight at a time; ids are in the order of the log, so they tell the order."""
        todo = iter(drafts)
        done: list[Status] = []

        async def hand() -> None:
            for draft in todo:
                done.append(await self._post(draft))  # noqa: PERF401 - eight hands share one list and one pile

        await asyncio.gather(*(hand() for _ in range(8)))
        self.happened += [{"kind": "post", "status": s} for s in sorted(done, key=lambda s: int(s["id"]))]

    async def answer(self, count: int, *, seed: int) -> None:
        """Post ``count`` replies, reposts, quotes and posts from places, of every sort in turn."""
        chance = random.Random(seed)
        old, people = self.statuses, sorted(self.people)
        drafts = [Draft(chance.choice(people), LATER[n % len(LATER)](chance, chance.choice(old))) for n in range(count)]
        await self.print(drafts)

    async def follow(self, source: str, target: str) -> None:
        """A follow, by ids."""
        await self.api.follow(source, target)
        self.happened.append({"kind": "follow", "source": {"id": source}, "target": {"id": target}})

    async def unfollow(self, source: str, target: str) -> None:
        """Its end."""
        await self.api.unfollow(source, target)
        self.happened.append({"kind": "unfollow", "source": {"id": source}, "target": {"id": target}})

    async def delete(self, count: int, *, seed: int) -> None:
        """Delete ``count`` of the statuses, one after another, since only so their order is known."""
        for status in random.Random(seed).sample(self.statuses, count):
            await self.api.delete(status["uid"], status["id"])
            self.happened.append({"kind": "delete", "status": {"id": status["id"]}})

    async def _post(self, draft: Draft) -> Status:
        token = self._tokens[draft.author]
        status: Status = await self.api.done("POST", "/v1/statuses", token=token, json=draft.body)
        return status
