"""Posts texts over HTTP: first new statuses, then replies, reposts and quotes of them."""

import asyncio
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from stream_server.store import keys
from tests.command_line import run
from tests.end_to_end.api import Api, mint
from tests.end_to_end.sample_texts import AIRLINES, Draft
from tests.end_to_end.server import environment

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


class Publisher:
    """Posts as many authors. ``happened`` has the server's answers in log order."""

    def __init__(self, api: Api, people: dict[str, str]) -> None:
        self.api = api
        self.people = people
        self.happened: list[dict[str, Any]] = []
        self._tokens = {login: mint(uid) for login, uid in people.items()}

    @property
    def statuses(self) -> list[Status]:
        return [h["status"] for h in self.happened if h["kind"] == "post"]

    async def publish(self, drafts: Iterable[Draft]) -> None:
        """Post ``drafts``, eight at a time. Their ids give the order, because ids rise with the log."""
        todo = iter(drafts)
        done: list[Status] = []

        async def hand() -> None:
            for draft in todo:
                done.append(await self._post(draft))  # noqa: PERF401 - eight tasks share the list and the iterator

        await asyncio.gather(*(hand() for _ in range(8)))
        self.happened += [{"kind": "post", "status": s} for s in sorted(done, key=lambda s: int(s["id"]))]

    async def replay(self, drafts: Iterable[Draft], file: Path) -> None:
        """Post ``drafts`` by the `replay` command. Reads the ids from the log and the statuses over HTTP."""
        _record(drafts, file)
        server = self.api.server
        command = ("replay", file, "--url", server.address, "--data-dir", server.data)
        done = await asyncio.to_thread(run, *command, env=environment())
        assert done.code == 0, done
        ids = self._logged()
        for first in range(0, len(ids), 200):
            asked = ",".join(ids[first : first + 200])
            told = await self.api.done("GET", f"/v1/statuses?ids={asked}", token=mint(self.api.admin))
            statuses = sorted(told["statuses"], key=lambda status: int(status["id"]))
            self.happened += [{"kind": "post", "status": status} for status in statuses]

    def _logged(self) -> list[str]:
        """Return the ids of all new posts on the log."""
        with self.api.server.redis_client() as client:
            rows: Any = client.xrange(keys.LOG)
        posts = [json.loads(fields[b"e"])["wire"]["status"]["id"] for _, fields in rows if fields[b"k"] == b"post"]
        known = {status["id"] for status in self.statuses}
        return [status_id for status_id in posts if status_id not in known]

    async def answer(self, count: int, *, seed: int) -> None:
        """Post ``count`` replies, reposts, quotes and posts with places, in turn."""
        chance = random.Random(seed)
        old, people = self.statuses, sorted(self.people)
        drafts = [Draft(chance.choice(people), LATER[n % len(LATER)](chance, chance.choice(old))) for n in range(count)]
        await self.publish(drafts)

    async def follow(self, source: str, target: str) -> None:
        await self.api.follow(source, target)
        self.happened.append({"kind": "follow", "source": {"id": source}, "target": {"id": target}})

    async def unfollow(self, source: str, target: str) -> None:
        await self.api.unfollow(source, target)
        self.happened.append({"kind": "unfollow", "source": {"id": source}, "target": {"id": target}})

    async def delete(self, count: int, *, seed: int) -> None:
        """Delete ``count`` statuses one after another, so that the order of the deletes is known."""
        for status in random.Random(seed).sample(self.statuses, count):
            await self.api.delete(status["uid"], status["id"])
            self.happened.append({"kind": "delete", "status": {"id": status["id"]}})

    async def _post(self, draft: Draft) -> Status:
        token = self._tokens[draft.author]
        status: Status = await self.api.done("POST", "/v1/statuses", token=token, json=draft.body)
        return status


def _record(drafts: Iterable[Draft], file: Path) -> None:
    file.write_text("".join(json.dumps(_line(draft)) + "\n" for draft in drafts), encoding="utf-8")


def _line(draft: Draft) -> dict[str, Any]:
    point = draft.body.get("location")
    where = None if point is None else [point["lon"], point["lat"]]
    return {"author": draft.author, **draft.body, "location": where}
