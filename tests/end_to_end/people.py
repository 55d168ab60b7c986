"""Users of the server, the streams that they open, and the events that these streams receive."""

import uuid
from collections.abc import Iterable
from typing import Any

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer, Message


class Person:
    """A user who sends requests and opens streams."""

    def __init__(self, api: Api, uid: str) -> None:
        self.api = api
        self.uid = uid

    async def request(self, method: str, path: str, **body: Any) -> Any:
        return await self.api.done(method, f"/v1/{path}", token=mint(self.uid), json=body or None)

    async def post(self, message: str, **more: Any) -> str:
        return str((await self.api.post(self.uid, message, **more))["id"])

    async def follow(self, other: "Person") -> None:
        await self.request("PUT", f"users/me/following/{other.uid}")

    async def protect(self) -> None:
        await self.request("PATCH", "users/me", protected=True)

    async def own_stream(self, since: str | None = None, **parameters: str) -> Consumer:
        return await self.stream("/v1/stream/user", since, **parameters)

    async def stream(self, path: str = "/v1/stream", since: str | None = None, **parameters: str) -> Consumer:
        given = parameters | ({} if since is None else {"since": since})
        return await self.api.stream(given, uid=self.uid, path=path)


async def create_people(api: Api, count: int) -> list[Person]:
    """Create users who do not follow each other."""
    logins = ["p" + uuid.uuid4().hex[:12] for _ in range(count)]
    ids = await api.users(logins)
    return [Person(api, ids[login]) for login in logins]


async def settle(api: Api, *consumers: Consumer) -> None:
    """Wait until each stream has passed the present head of the log."""
    head = await api.head()
    for consumer in consumers:
        await consumer.reached(head)


def received(consumer: Consumer, *kinds: str) -> list[tuple[str, str]]:
    """Return (kind, id) of the events in order, only of ``kinds`` if there are any."""
    return [(event["kind"], about(event)) for event in consumer.events if not kinds or event["kind"] in kinds]


def about(event: Message) -> str:
    for noun in ("message", "notification", "comment", "status", "target", "list", "group", "user"):
        if noun in event:
            return str(event[noun]["id"])
    raise AssertionError(event)


def word() -> str:
    return "w" + uuid.uuid4().hex[:12]


async def close(consumers: Iterable[Consumer]) -> None:
    for consumer in consumers:
        await consumer.close()


async def protected_author(api: Api) -> tuple[Person, dict[str, Person]]:
    """Create a protected author, an accepted follower, a user who has asked to follow, and a stranger."""
    author, follower, asking, stranger = await create_people(api, 4)
    await author.protect()
    for person in (follower, asking):
        await person.follow(author)
    await author.request("PUT", f"users/me/requests/{follower.uid}")
    return author, {"author": author, "follower": follower, "asking": asking, "stranger": stranger}
