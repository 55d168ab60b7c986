"""Actions on lists, groups, talks and notifications."""

import json
from typing import Any

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from tests.property.model.moves import Move, made_id
from tests.property.model.notices import Notice
from tests.property.model.walk import Walk

KINDS = ("public", "private", "announcement")
NEVER = str(2**53 - 1)
"""An id that is not made before the year 2093."""


async def list_create(walk: Walk, a: int, b: int, c: int) -> None:
    uid, name, private = walk.user(a), f"l{len(walk.trace)}", b % 2 == 0
    ask = walk.store.lists.create(uid, name, "", private, IdempotencyKey.generate())

    def model(made: bytes | None) -> None:
        walk.world.lists.create(made_id(made), uid, name, private=private)

    made = await walk.do(f"list_create {uid} {private}", ask, model)
    if made is not None:
        walk.lists.append(made_id(made))
        walk.owners[made_id(made)] = uid


async def list_update(walk: Walk, a: int, b: int, c: int) -> None:
    list_id = walk.any_of(walk.lists, b)
    uid, name, private = walk.owner(list_id, a, c), f"l{c % 2}", c % 3 == 0
    ask = walk.store.lists.update(uid, list_id, {"name": name, "private": private}, IdempotencyKey.generate())
    await walk.do(
        f"list_update {uid} {list_id} {private}", ask,
        lambda _: walk.world.lists.update(uid, list_id, name, private=private),
    )  # fmt: skip


async def list_delete(walk: Walk, a: int, b: int, c: int) -> None:
    list_id = walk.any_of(walk.lists, b)
    uid = walk.owner(list_id, a, c)
    ask = walk.store.lists.delete(uid, list_id, IdempotencyKey.generate())
    await walk.do(f"list_delete {uid} {list_id}", ask, lambda _: walk.world.lists.delete(uid, list_id))


async def list_add(walk: Walk, a: int, b: int, c: int) -> None:
    list_id = walk.any_of(walk.lists, b)
    uid, member = walk.owner(list_id, a, c), walk.user_or_unknown(a)
    ask = walk.store.lists.add_member(uid, list_id, member, IdempotencyKey.generate())
    await walk.do(f"list_add {uid} {list_id} {member}", ask, lambda _: walk.world.lists.add(uid, list_id, member))
    walk.on.setdefault(list_id, []).append(member)


async def list_remove(walk: Walk, a: int, b: int, c: int) -> None:
    """Remove a member, mostly one who is on the list."""
    list_id = walk.any_of(walk.lists, b)
    uid, member = walk.owner(list_id, a, c), walk.user_or_unknown(a)
    on = walk.on.get(list_id)
    if on and a % 4:
        member = on[a % len(on)]
    ask = walk.store.lists.remove_member(uid, list_id, member, IdempotencyKey.generate())
    await walk.do(f"list_remove {uid} {list_id} {member}", ask, lambda _: walk.world.lists.remove(uid, list_id, member))


async def follow_listed(walk: Walk, a: int, b: int, c: int) -> None:
    list_id = walk.any_of(walk.lists, c)
    source, target = walk.owner(list_id, a, b), walk.user_or_unknown(b)
    ask = walk.store.follows.follow(source, target, IdempotencyKey.generate(), list_id)
    await walk.do(
        f"follow_listed {source} {target} {list_id}", ask,
        lambda _: walk.world.follow_listed(source, target, list_id),
    )  # fmt: skip


async def unfollow_listed(walk: Walk, a: int, b: int, c: int) -> None:
    list_id = walk.any_of(walk.lists, c)
    source, target = walk.owner(list_id, a, b), walk.user_or_unknown(b)
    ask = walk.store.follows.unfollow(source, target, IdempotencyKey.generate(), list_id)
    await walk.do(
        f"unfollow_listed {source} {target} {list_id}", ask,
        lambda _: walk.world.unfollow_listed(source, target, list_id),
    )  # fmt: skip


async def group_create(walk: Walk, a: int, b: int, c: int) -> None:
    uid, name, kind = walk.user(a), f"g{len(walk.trace)}", KINDS[b % 3]
    ask = walk.store.groups.create(uid, name, kind, "", IdempotencyKey.generate())
    made = await walk.do(
        f"group_create {uid} {kind}", ask, lambda made: walk.world.groups.create(made_id(made), uid, name, kind)
    )
    if made is not None:
        walk.groups.append(made_id(made))
        walk.owners[made_id(made)] = uid


async def group_update(walk: Walk, a: int, b: int, c: int) -> None:
    gid = walk.any_of(walk.groups, b)
    uid, name = walk.owner(gid, a, c), f"g{c % 2}"
    ask = walk.store.groups.update(uid, gid, {"name": name}, IdempotencyKey.generate())
    await walk.do(f"group_update {uid} {gid}", ask, lambda _: walk.world.groups.update(uid, gid, name))


async def group_delete(walk: Walk, a: int, b: int, c: int) -> None:
    gid = walk.any_of(walk.groups, b)
    uid = walk.owner(gid, a, c)
    ask = walk.store.groups.delete(uid, gid, IdempotencyKey.generate())
    await walk.do(f"group_delete {uid} {gid}", ask, lambda _: walk.world.groups.delete(uid, gid))


async def group_join(walk: Walk, a: int, b: int, c: int) -> None:
    uid, gid = walk.user(a), walk.any_of(walk.groups, b)
    ask = walk.store.groups.join(uid, gid, IdempotencyKey.generate())
    await walk.do(f"group_join {uid} {gid}", ask, lambda _: walk.world.groups.join(uid, gid))


async def group_add(walk: Walk, a: int, b: int, c: int) -> None:
    gid = walk.any_of(walk.groups, b)
    uid, member = walk.owner(gid, a, c), walk.user_or_unknown(a)
    ask = walk.store.groups.add_member(uid, gid, member, IdempotencyKey.generate())
    await walk.do(f"group_add {uid} {gid} {member}", ask, lambda _: walk.world.groups.add(uid, gid, member))


async def group_leave(walk: Walk, a: int, b: int, c: int) -> None:
    """Leave a group, or remove a member."""
    gid = walk.any_of(walk.groups, b)
    uid, member = walk.owner(gid, a, c), walk.user_or_unknown(a)
    if c % 3:
        uid = walk.user(a)
        member = uid
    ask = walk.store.groups.remove_member(uid, gid, member, IdempotencyKey.generate())
    await walk.do(f"group_leave {uid} {gid} {member}", ask, lambda _: walk.world.groups.remove(uid, gid, member))


async def talk_open(walk: Walk, a: int, b: int, c: int) -> None:
    uid = walk.user(a)
    others = [walk.user_or_unknown(b)] if c % 3 else [walk.user_or_unknown(b), walk.user_or_unknown(c)]
    name = "n" if c % 2 else None

    def model(made: tuple[bytes, bool] | None) -> None:
        new = walk.world.talks.open(made_id(made and made[0]), uid, others, name)
        assert made is None or made[1] == new, walk.because("the talk of two is one")

    made = await walk.do(
        f"talk_open {uid} {others}", walk.store.talks.open(uid, others, name, IdempotencyKey.generate()), model
    )
    if made is not None and made[1]:
        walk.talks.append(made_id(made[0]))
        walk.parties[made_id(made[0])] = [uid, *others]


async def talk_send(walk: Walk, a: int, b: int, c: int) -> None:
    talk = walk.any_of(walk.talks, b)
    uid, text = walk.party(talk, a, c), f"t{len(walk.trace)}"
    ask = walk.store.talks.send_message(uid, talk, text, IdempotencyKey.generate())
    made = await walk.do(
        f"talk_send {uid} {talk}", ask, lambda made: walk.world.talks.send(made_id(made), uid, talk, text)
    )
    if made is not None:
        walk.messages.append(made_id(made))


async def talk_read(walk: Walk, a: int, b: int, c: int) -> None:
    talk, message = walk.any_of(walk.talks, b), walk.any_of(walk.messages, c)
    uid = walk.party(talk, a, c)
    ask = walk.store.talks.mark_read(uid, talk, message, IdempotencyKey.generate())
    await walk.do(f"talk_read {uid} {talk} {message}", ask, lambda _: walk.world.talks.read(uid, talk, message))


async def mark_read(walk: Walk, a: int, b: int, c: int) -> None:
    uid = walk.user(a)
    page = await walk.store.notifications.list_notifications(uid, PageRequest(count=200))
    found = json.loads(page.items[b % len(page.items)]) if page.items and c % 8 else None
    ask = walk.store.notifications.mark_read(uid, NEVER if found is None else found["id"], IdempotencyKey.generate())
    notice = None if found is None else notice_of(found)
    await walk.do(f"mark_read {uid} {notice}", ask, lambda _: walk.world.notices.mark_read(uid, notice))


def notice_of(found: dict[str, Any]) -> Notice:
    comment = found.get("comment")
    on = comment["status"] if comment else found.get("status", {}).get("id", "")
    return Notice(found["kind"], found["source"]["id"], on, comment["id"] if comment else "")


COLLECTION_MOVES: dict[str, tuple[int, Move]] = {
    "list_create": (2, list_create),
    "list_update": (1, list_update),
    "list_delete": (1, list_delete),
    "list_add": (4, list_add),
    "list_remove": (2, list_remove),
    "follow_listed": (2, follow_listed),
    "unfollow_listed": (1, unfollow_listed),
    "group_create": (2, group_create),
    "group_update": (1, group_update),
    "group_delete": (1, group_delete),
    "group_join": (3, group_join),
    "group_add": (2, group_add),
    "group_leave": (2, group_leave),
    "talk_open": (2, talk_open),
    "talk_send": (3, talk_send),
    "talk_read": (1, talk_read),
    "mark_read": (1, mark_read),
}
"""The weight and the function of each move, by name."""
