"""Set-up and look-ups that tests of likes, comments, groups and others share."""

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

import msgspec
import pytest

from stream_server.errors import ApiError
from stream_server.events.position import LOG_START
from stream_server.store import keys
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key


def items_of(page: Page) -> list[bytes]:
    """The items of a page one by one, as JSON."""
    return [bytes(item) for item in msgspec.json.decode(b"[%b]" % page.body, type=list[msgspec.Raw])]


class LoggedEntry(NamedTuple):
    """A log entry, decoded."""

    kind: str
    audience: str
    wire: dict[str, Any]


async def logged(store: Store, *kinds: str) -> list[LoggedEntry]:
    """The log entries of these kinds, or all, in log order."""
    entries = await store.log.read(LOG_START, 10_000)
    return [LoggedEntry(e.kind, e.audience, json.loads(e.wire)) for e in entries if not kinds or e.kind in kinds]


async def notified(store: Store, uid: str) -> list[tuple[str, str]]:
    """The kinds and sources of the user's notifications on the log, in log order."""
    found = [json.loads(one) for one in await told(store, uid)]
    return [(one["kind"], one["source"]["id"]) for one in found]


async def told(store: Store, uid: str) -> list[bytes]:
    """The JSON of a user's notifications on the log, as the user gets them, oldest first."""
    entries = await store.log.read(LOG_START, 1000)
    begin, end = b'{"notification":', b"}"
    wires = [one.wire for one in entries if one.kind == "notification" and uid in one.audience_users]
    assert all(wire.startswith(begin) and wire.endswith(end) for wire in wires)
    return [wire[len(begin) : -len(end)] for wire in wires]


def stored_notifications(raw: Any, uid: str) -> set[str]:
    return {name.decode() for name in raw.zrange(keys.key_for("notices", uid), 0, -1)}


def ids(page: Page | Iterable[bytes]) -> list[str]:
    items = items_of(page) if isinstance(page, Page) else page
    return [json.loads(item)["id"] for item in items]


async def read_pages(read: Callable[[PageRequest], Awaitable[Page]], count: int) -> list[Page]:
    """All pages of a list, each of ``count`` items."""
    pages = [await read(PageRequest(count))]
    while pages[-1].next is not None:
        pages.append(await read(PageRequest(count, before=pages[-1].next)))
    return pages


async def refusal(awaited: Awaitable[object]) -> tuple[int, str, str | None]:
    """Status, code and parameter of the error that the awaited call must raise."""
    with pytest.raises(ApiError) as caught:
        await awaited
    return caught.value.status, caught.value.error_code, caught.value.param


async def post(store: Store, uid: str, group: str | None, **more: Any) -> str:
    """Post a status with the tag ``club``, in a group or, with None, in no group. Returns the id."""
    return str((await People(store).status(uid, "hello #club", group=group, **more))["id"])


async def protect(store: Store, uid: str, *, on: bool = True) -> None:
    await store.users.update(uid, {"protected": on}, new_key())


async def befriend(store: Store, source: str, target: str) -> None:
    """Follow, with an approved request if the target is protected."""
    answer = await store.follows.follow(source, target, new_key())
    if json.loads(answer)["requested"]:
        await store.follow_requests.approve(target, source, new_key())


async def group(store: Store, kind: str, owner: str, *members: str) -> str:
    """Create a group with these members. Returns the id."""
    gid = str(json.loads(await store.groups.create(owner, "g", kind, "", new_key()))["id"])
    for uid in members:
        await store.groups.add_member(owner if kind == "private" else uid, gid, uid, new_key())
    return gid


async def suspend(store: Store, admin: str, uid: str) -> None:
    await store.suspensions.suspend(admin, uid, new_key())


_READERS: dict[bytes, Callable[[Any, bytes], Any]] = {
    b"hash": lambda asking, name: asking.hgetall(name),
    b"zset": lambda asking, name: asking.zrange(name, 0, -1, withscores=True),
    b"set": lambda asking, name: asking.smembers(name),
    b"stream": lambda asking, name: asking.xlen(name),
    b"string": lambda asking, name: asking.get(name),
}


def dump(raw: Any) -> dict[bytes, Any]:
    """All keys and values of Redis, without kept answers. A stream counts by its length."""
    names = [name for name in raw.keys("*") if not name.startswith(b"{core}:request:")]
    with raw.pipeline(transaction=False) as asking:
        for name in names:
            asking.type(name)
        kinds = asking.execute()
        for name, kind in zip(names, kinds, strict=True):
            _READERS[kind](asking, name)
        return dict(zip(names, asking.execute(), strict=True))


async def notifications(store: Store, uid: str, **piece: Any) -> list[dict[str, Any]]:
    """Return one page of a user's notifications, newest first."""
    page = await store.notifications.list_notifications(uid, PageRequest(**piece))
    return [json.loads(item) for item in items_of(page)]
