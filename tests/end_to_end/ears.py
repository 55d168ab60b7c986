"""People at the server, the streams through which they listen to one another, and what they were told."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer, Message

EARS = ("own", "track", "follow", "@me")


class Person:
    """Somebody with an id, who does things over HTTP and listens."""

    def __init__(self, api: Api, uid: str) -> None:
        self.api = api
        self.uid = uid

    async def does(self, method: str, path: str, **body: Any) -> Any:
        """One request that must succeed; its answer, decoded."""
        return await self.api.done(method, f"/v1/{path}", token=mint(self.uid), json=body or None)

    async def posts(self, message: str, **more: Any) -> str:
        """The id of a new status."""
        return str((await self.api.post(self.uid, message, **more))["id"])

    async def follows(self, other: "Person") -> None:
        """Follow somebody, or ask to."""
        await self.does("PUT", f"users/me/following/{other.uid}")

    async def protects(self) -> None:
        """Write for approved followers from now on."""
        await self.does("PATCH", "users/me", protected=True)

    async def own(self, since: str | None = None, **parameters: str) -> Consumer:
        """One's own stream."""
        return await self.hears("/v1/stream/user", since, **parameters)

    async def hears(self, path: str = "/v1/stream", since: str | None = None, **parameters: str) -> Consumer:
        """A stream."""
        given = parameters | ({} if since is None else {"since": since})
        return await self.api.stream(given, uid=self.uid, path=path)


async def persons(api: Api, count: int) -> list[Person]:
    """New people who do not know each other."""
    logins = ["p" + uuid.uuid4().hex[:12] for _ in range(count)]
    ids = await api.users(logins)
    return [Person(api, ids[login]) for login in logins]


async def settle(api: Api, *consumers: Consumer) -> None:
    """Wait until each stream has come to the head of the log: what it was not told by then it will not be told."""
    head = await api.head()
    for consumer in consumers:
        await consumer.reached(head)


def told(consumer: Consumer, *kinds: str) -> list[tuple[str, str]]:
    """(kind, id of what it is about) of the events, in order; only of ``kinds`` if some are given."""
    return [(event["kind"], about(event)) for event in consumer.events if not kinds or event["kind"] in kinds]


def about(event: Message) -> str:
    """What an event tells of, by id."""
    for noun in ("message", "notification", "comment", "status", "target", "list", "group", "user"):
        if noun in event:
            return str(event[noun]["id"])
    raise AssertionError(event)


def word() -> str:
    """A word that nobody else uses."""
    return "w" + uuid.uuid4().hex[:12]


async def close(consumers: Iterable[Consumer]) -> None:
    """Leave all these streams."""
    for consumer in consumers:
        await consumer.close()


async def ear(kind: str, person: Person, author: Person, term: str, since: str | None = None) -> Consumer:
    """A stream of a person: their own, or one that tracks a term, or follows an author, or all whom they follow."""
    if kind == "own":
        return await person.own(since)
    asked = {"track": {"track": term}, "follow": {"follow": author.uid}, "@me": {"follow": "@me"}}[kind]
    return await person.hears(since=since, **asked)


async def ears(
    people: Mapping[str, Person], author: Person, term: str, since: str | None = None
) -> dict[str, Consumer]:
    """Each of these streams for each of the people."""
    return {
        f"{name} {kind}": await ear(kind, person, author, term, since)
        for name, person in people.items()
        for kind in EARS
    }


def hearing(opened: Mapping[str, Consumer], event: tuple[str, str]) -> set[str]:
    """Whose streams were told of an event, and how often: a second time would be another name."""
    return {
        f"{name}{'' if number == 0 else ' again'}"
        for name, consumer in opened.items()
        for number, one in enumerate([one for one in told(consumer) if one == event])
    }


async def befriended(api: Api) -> tuple[Person, dict[str, Person]]:
    """A protected author, and beside the author a follower with consent, one who has asked, and a stranger."""
    author, follower, asking, stranger = await persons(api, 4)
    await author.protects()
    for person in (follower, asking):
        await person.follows(author)
    await author.does("PUT", f"users/me/requests/{follower.uid}")
    return author, {"author": author, "follower": follower, "asking": asking, "stranger": stranger}


FRIENDS = {"author own", "author track", "author follow"} | {f"follower {ear}" for ear in EARS}
"""Those that hear of a protected author: all of the follower, and of the author, who follows nobody, all but one."""
