"""An entry for named users is decoded only where somebody needs its content."""

from typing import Any

import msgspec
import pytest

from filters.narrowing import PERSONAL_KINDS
from stream_server.events.entry import INTERNAL_KINDS, RIGHTS_KINDS, Entry, parse_published
from stream_server.hub.router import VISIBILITY_CHANGE_KINDS
from tests.stream_server.hub.world import Socket, World
from tests.waiting import eventually

PAIR = {"source": {"id": "7"}, "target": {"id": "8"}}
STATUS = {"status": {"id": "5", "uid": "8", "message": "tea"}}
COMMENT = {"id": "6", "uid": "7", "message": "cup"}
LISTED = {"list": {"id": "3", "uid": "7"}}

READ_BY_NOBODY: dict[str, dict[str, Any]] = {
    "request": PAIR, "unrequest": PAIR, "message": {"message": {"id": "1", "uid": "7", "message": "psst"}},
    "notification": {"notification": {"id": "1", "kind": "follow", "source": {"id": "8"}}},
    "like": {"source": {"id": "7"}, **STATUS}, "unlike": {"source": {"id": "7"}, **STATUS},
    "comment": {"comment": COMMENT, **STATUS},
    "list_create": LISTED, "list_update": LISTED, "list_delete": LISTED,
    "list_add": {**LISTED, "user": {"id": "8"}}, "list_remove": {**LISTED, "user": {"id": "8"}},
}  # fmt: skip
"""The kinds whose content concerns nobody but the streams of the users to whom the entry is addressed."""

READ_BY_THE_HUB: dict[str, dict[str, Any]] = {
    "uncomment": {"comment": {"id": "6", "uid": "7"}, **STATUS},  # the ring keeps the ids of what was deleted
    **dict.fromkeys(("follow", "unfollow", "block", "unblock", "mute", "unmute"), PAIR),  # they change viewers
}
"""The other kinds that scripts address to users. A blocked user, for example, is not in the audience of the block."""


def published(world: World, kind: str, wire: dict[str, Any], users: str = "7") -> Entry:
    """Let the hub take a published entry as the feed makes it."""
    at = world._next()
    body = msgspec.json.encode({"wire": wire})
    entry = parse_published(f"{at.entry_id} {at.n} {kind} users:{users} ".encode() + body)
    world.hub.publish(entry)
    return entry


def cursors(socket: Socket, kind: str) -> list[object]:
    return [message["cursor"] for message in socket.messages() if message["kind"] == kind]


@pytest.mark.parametrize("kind", READ_BY_NOBODY)
async def test_an_entry_for_absent_users_stays_undecoded_until_one_of_them_reads_it(world: World, kind: str) -> None:
    """The stream of another user is live meanwhile. The addressed user gets the entry from the ring, and then live."""
    _, other = world.open_user_stream("9")
    begin = world.hub.head
    entry = published(world, kind, READ_BY_NOBODY[kind])
    assert not entry._is_decoded
    _, socket = world.open_user_stream("7", since=begin)
    await world.until_live(2)
    live = published(world, kind, READ_BY_NOBODY[kind])
    await eventually(lambda: cursors(socket, kind) == [entry.position.cursor, live.position.cursor])
    assert cursors(other, kind) == []
    assert world.hub.counters.malformed == 0


@pytest.mark.parametrize("kind", READ_BY_THE_HUB)
async def test_an_entry_that_changes_what_others_see_is_applied_although_its_users_are_absent(
    world: World, kind: str
) -> None:
    world.open_user_stream("9")
    assert published(world, kind, READ_BY_THE_HUB[kind])._is_decoded


def test_each_kind_that_a_process_must_apply_is_decoded() -> None:
    """A new kind has to be put into one of the two tables."""
    addressed = {*READ_BY_NOBODY, *READ_BY_THE_HUB}
    assert {kind for kind in PERSONAL_KINDS if not kind.startswith("group_")} <= addressed
    assert not READ_BY_NOBODY.keys() & (VISIBILITY_CHANGE_KINDS | RIGHTS_KINDS | {*INTERNAL_KINDS, "delete"})


async def test_a_published_body_that_is_no_event_is_counted_where_it_is_read(world: World) -> None:
    """The stream goes on behind it, as behind such an entry of the log."""
    _, socket = world.open_user_stream("7")
    published(world, "message", {})
    good = published(world, "message", READ_BY_NOBODY["message"])
    await eventually(lambda: cursors(socket, "message") == [good.position.cursor])
    assert world.hub.counters.malformed == 1
