"""A replay shows nothing that was deleted since, and an `uncomment` reaches the clients that received the comment."""

from typing import Any

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.people import Person, close, create_people, received, settle, word

KINDS = "post,delete,like,unlike,comment,uncomment"


async def _deeds(author: Person, other: Person, term: str) -> tuple[str, list[str]]:
    """Create a status with a like and two comments. Returns the ids of the status and of the comments."""
    status = await author.post(f"status {term}")
    await other.request("PUT", f"users/me/likes/{status}")
    said = [(await other.request("POST", f"statuses/{status}/comments", message=f"{term} {n}"))["id"] for n in range(2)]
    return status, said


async def _replays(people: tuple[Person, ...], start: str, term: str) -> list[Consumer]:
    """Open replays: each person's own stream, a stream by term, and the firehose."""
    found = [await person.own_stream(start) for person in people]
    found.append(await people[0].stream(since=start, track=term, kinds=KINDS))
    found.append(await people[0].api.stream({"firehose": "true", "since": start, "kinds": KINDS}))
    return found


def _wires(consumers: list[Consumer]) -> list[str]:
    return [str(event) for consumer in consumers for event in consumer.events]


async def test_no_replay_shows_a_deleted_status_or_its_reactions(api: Api) -> None:
    """Replayed likes, comments and notifications do not show a status that its author or an administrator deleted."""
    for removed in (False, True):
        author, other = people = tuple(await create_people(api, 2))
        start, term = await api.head(), word()
        status, said = await _deeds(author, other, term)
        await other.request("DELETE", f"comments/{said[0]}")
        if removed:
            report = await other.request("POST", "reports", status=status, reason="spam")
            admin = mint(api.admin, "admin")
            await api.done("PATCH", f"/v1/admin/reports/{report['id']}", token=admin, json={"outcome": "removed"})
        else:
            await author.request("DELETE", f"statuses/{status}")
        replays = await _replays(people, start, term)
        await settle(api, *replays)
        assert not [wire for wire in _wires(replays) if term in wire]
        for consumer in replays:
            assert received(consumer, *KINDS.split(",")) in (
                [("uncomment", said[0]), ("delete", status)],
                [("uncomment", said[0])],
            )
        ended: Any = replays[-1].events[0]["status"]
        assert ended == {"id": status, "uid": author.uid, "deleted": True}
        await close(replays)
