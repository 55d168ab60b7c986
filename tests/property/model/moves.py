"""Actions of a walk, chosen by small numbers: valid ones, and ones that must be refused."""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from operator import attrgetter
from typing import Any

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.social.statuses import StatusDraft
from tests.property.model.notices import Notice
from tests.property.model.state import Comment, Status
from tests.property.model.walk import UNKNOWN, Walk
from tests.stream_server.store.scenes import items_of

Move = Callable[[Walk, int, int, int], Awaitable[None]]
Pick = Callable[[Walk, int, int, int], tuple[Any, ...]]
"""Chooses the arguments of an action."""

TAGS = ("tea", "Été")
KINDS = ("public", "private", "announcement")
NEVER = str(2**53 - 1)
"""An id that is not made before the year 2093."""


def made_id(made: bytes | None) -> str:
    """The id of a new object, or an unknown id if there is none."""
    return UNKNOWN if made is None else str(json.loads(made)["id"])


# Actions with the same arguments in the store and in the model.


def alike(ask: str, model: str, pick: Pick) -> Move:
    """An action whose arguments are the same for the method ``ask`` of the store and ``model`` of the model."""

    async def move(walk: Walk, a: int, b: int, c: int) -> None:
        chosen = pick(walk, a, b, c)
        asked = attrgetter(ask)(walk.store)(*chosen, IdempotencyKey.generate())
        await walk.do(f"{ask} {chosen}", asked, lambda _: attrgetter(model)(walk.world)(*chosen))

    return move


def two_users(walk: Walk, a: int, b: int, c: int) -> tuple[Any, ...]:
    return walk.user(a), walk.user_or_unknown(b)


def who_asked(walk: Walk, a: int, b: int, c: int) -> tuple[Any, ...]:
    """A user, and mostly one who has asked to follow this user."""
    uid, other = two_users(walk, a, b, c)
    asking = [one for one, target in walk.world.ground.asks if target == uid]
    return uid, asking[0] if asking and c % 4 else other


def user_and(made: str) -> Pick:
    """A user, and any object of the kind ``made``."""
    return lambda walk, a, b, c: (walk.user(a), walk.any_of(getattr(walk, made), b))


def own(made: str) -> Pick:
    """Mostly an object of the kind ``made`` with its owner."""

    def pick(walk: Walk, a: int, b: int, c: int) -> tuple[Any, ...]:
        chosen = walk.any_of(getattr(walk, made), b)
        return walk.owner(chosen, a, c), chosen

    return pick


def own_and_member(made: str) -> Pick:
    return lambda walk, a, b, c: (*own(made)(walk, a, b, c), walk.user_or_unknown(a))


def listed_member(walk: Walk, a: int, b: int, c: int) -> tuple[Any, ...]:
    """A list with its owner, and mostly a user who is on it."""
    uid, list_id, member = own_and_member("lists")(walk, a, b, c)
    named = walk.world.ground.lists.get(list_id)
    on = [] if named is None else [*named.members]
    return uid, list_id, on[a % len(on)] if on and a % 4 else member


def group_member(walk: Walk, a: int, b: int, c: int) -> tuple[Any, ...]:
    """A user who leaves a group, or its owner and a member to remove."""
    uid, gid, member = own_and_member("groups")(walk, a, b, c)
    return (walk.user(a), gid, walk.user(a)) if c % 3 else (uid, gid, member)


def message_of_talk(walk: Walk, a: int, b: int, c: int) -> tuple[Any, ...]:
    talk = walk.any_of(walk.talks, b)
    return walk.party(talk, a, c), talk, walk.any_of(walk.messages, c)


# Actions that make something.


async def _make(walk: Walk, kind: str, uid: str, what: str, ask: Awaitable[bytes], model: Callable[[str], Any]) -> None:
    """Make an object of ``kind``, which then belongs to a user. ``model`` gets its id."""
    made = await walk.do(f"{what} by {uid}", ask, lambda made: model(made_id(made)))
    if made is not None:
        getattr(walk, kind).append(made_id(made))
        walk.owners[made_id(made)] = uid


def words(walk: Walk, author: str, number: int) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """A message, the users it mentions, and its folded tags."""
    message = f"m{len(walk.trace)}"
    mentions: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    if number % 3 == 1:
        login = walk.logins[number % len(walk.people)]
        message += f" @{login.upper()}"
        mentioned = walk.people[number % len(walk.people)]
        # A user that is hidden from the author is not resolved.
        mentions = (mentioned,) if walk.world.access.knows(author, mentioned) else ()
    if number % 4 == 3:
        tag = TAGS[number % len(TAGS)]
        message += f" #{tag}"
        tags = (tag.casefold(),)
    return message, mentions, tags


async def _post(walk: Walk, uid: str, text: int | None, **more: Any) -> None:
    message, mentions, tags = words(walk, uid, text) if text is not None else ("", (), ())
    ask = walk.store.statuses.create(uid, StatusDraft(message=message, **more), IdempotencyKey.generate())
    await _make(
        walk, "statuses", uid, f"post {message!r} {more}", ask,
        lambda sid: walk.world.posts.create(
            Status(id=sid, uid=uid, message=message, mentions=mentions, tags=tags, **more)
        ),
    )  # fmt: skip


async def post(walk: Walk, a: int, b: int, c: int) -> None:
    await _post(walk, walk.user_or_unknown(a), b)


async def burst(walk: Walk, a: int, b: int, c: int) -> None:
    """Three posts, so that timelines overflow."""
    for _ in range(3):
        await _post(walk, walk.user(a), b)


async def refer(walk: Walk, a: int, b: int, c: int, *, by: str, has_text: bool = True) -> None:
    """Reply, repost or quote."""
    await _post(walk, walk.user(a), c if has_text else None, **{by: walk.any_of(walk.statuses, b)})


async def edit(walk: Walk, a: int, b: int, c: int) -> None:
    (uid, sid), never = own("statuses")(walk, a, b, c), 10**12
    message, mentions, tags = words(walk, uid, b + c)
    ask = walk.store.statuses.edit(uid, sid, {"message": message}, IdempotencyKey.generate(), never)
    model = walk.world.posts.edit
    await walk.do(f"edit {sid} {message!r}", ask, lambda _: model(uid, sid, message, mentions, tags))


async def group_post(walk: Walk, a: int, b: int, c: int) -> None:
    await _post(walk, walk.user(a), c, group=walk.any_of(walk.groups, b))


async def group_refer(walk: Walk, a: int, b: int, c: int, *, by: str, has_text: bool) -> None:
    """Reply or repost in a group."""
    group, other = walk.any_of(walk.groups, c), walk.any_of(walk.statuses, b)
    await _post(walk, walk.user(a), b if has_text else None, **{"group": group, by: other})


async def comment(walk: Walk, a: int, b: int, c: int) -> None:
    uid, sid = walk.user(a), walk.any_of(walk.statuses, b)
    message, mentions, _ = words(walk, uid, c)
    ask = walk.store.comments.create(uid, sid, message, IdempotencyKey.generate())
    await _make(
        walk, "comments", uid, f"comment {sid} {message!r}", ask,
        lambda cid: walk.world.comments.create(Comment(cid, uid, sid, message, mentions)),
    )  # fmt: skip


async def list_create(walk: Walk, a: int, b: int, c: int) -> None:
    uid, name, private = walk.user(a), f"l{len(walk.trace)}", b % 2 == 0
    ask = walk.store.lists.create(uid, name, "", private, IdempotencyKey.generate())
    create = walk.world.lists.create
    await _make(walk, "lists", uid, f"list_create {private}", ask, lambda lid: create(lid, uid, name, private=private))


async def group_create(walk: Walk, a: int, b: int, c: int) -> None:
    uid, name, kind = walk.user(a), f"g{len(walk.trace)}", KINDS[b % 3]
    ask = walk.store.groups.create(uid, name, kind, "", IdempotencyKey.generate())
    create = walk.world.groups.create
    await _make(walk, "groups", uid, f"group_create {kind}", ask, lambda gid: create(gid, uid, name, kind))


async def talk_send(walk: Walk, a: int, b: int, c: int) -> None:
    talk = walk.any_of(walk.talks, b)
    uid, text = walk.party(talk, a, c), f"t{len(walk.trace)}"
    ask = walk.store.talks.send_message(uid, talk, text, IdempotencyKey.generate())
    send = walk.world.talks.send
    await _make(walk, "messages", uid, f"talk_send {talk}", ask, lambda mid: send(mid, uid, talk, text))


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


# Other actions.


async def follow(walk: Walk, a: int, b: int, c: int) -> None:
    source, target = two_users(walk, a, b, c)

    def model(made: bytes | None) -> None:
        asked = walk.world.relations.follow(source, target)
        if made is not None:
            assert json.loads(made) == {"following": not asked, "requested": asked}, walk.because("answered otherwise")

    ask = walk.store.follows.follow(source, target, IdempotencyKey.generate())
    await walk.do(f"follow {source} {target}", ask, model)


async def change_listed(walk: Walk, a: int, b: int, c: int, *, verb: str) -> None:
    """Follow or unfollow, and put on a list or remove from it."""
    list_id = walk.any_of(walk.lists, c)
    source, target = walk.owner(list_id, a, b), walk.user_or_unknown(b)
    ask = getattr(walk.store.follows, verb)(source, target, IdempotencyKey.generate(), list_id)
    model = getattr(walk.world, f"{verb}_listed")
    await walk.do(f"{verb}_listed {source} {target} {list_id}", ask, lambda _: model(source, target, list_id))


async def batch(walk: Walk, a: int, b: int, c: int) -> None:
    source, follows = walk.user(a), [walk.user_or_unknown(b), walk.user_or_unknown(c)]
    leaves = [walk.user_or_unknown(b + c)]

    def model(made: Any) -> None:
        expected = [walk.world.batched("follow", source, uid) for uid in follows]
        expected += [walk.world.batched("unfollow", source, uid) for uid in leaves]
        assert made is None or [tuple(one) for one in made] == expected, walk.because("outcomes differ")

    ask = walk.store.follows.change_many(source, follows, leaves, IdempotencyKey.generate())
    await walk.do(f"batch {source} {follows} {leaves}", ask, model)


async def _update(walk: Walk, uid: str, changes: dict[str, str | bool | None]) -> None:
    ask = walk.store.users.update(uid, changes, IdempotencyKey.generate())
    await walk.do(f"update {uid} {changes}", ask, lambda _: walk.world.people.update(uid, changes))


async def update(walk: Walk, a: int, b: int, c: int) -> None:
    changes: dict[str, str | bool | None] = {}
    if b % 3 != 1:
        changes["protected"] = c % 3 == 0
    if b % 3 != 0:
        changes["bio"] = (None, "one", "two")[c % 3]
    await _update(walk, walk.user(a), changes)


async def protect(walk: Walk, a: int, b: int, c: int) -> None:
    await _update(walk, walk.user(a), {"protected": c % 3 != 0})


async def judge(walk: Walk, a: int, b: int, c: int, *, verb: str) -> None:
    """Suspend any user, or reinstate one who is suspended."""
    gone = [one.id for one in walk.world.ground.people.values() if one.suspended and verb == "reinstate"]
    uid = gone[b % len(gone)] if gone else walk.user_or_unknown(b)
    ask = getattr(walk.store.suspensions, verb)(walk.admin, uid, IdempotencyKey.generate())
    await walk.do(f"{verb} {uid}", ask, lambda _: getattr(walk.world.people, verb)(uid))


async def erase(walk: Walk, a: int, b: int, c: int) -> None:
    """Delete an account, now and then, with all that the jobs do. Another user takes the place among the people."""
    at = b % len(walk.people)
    uid = walk.people[at] if c % 3 else UNKNOWN

    async def ask() -> None:
        await walk.store.accounts.delete(walk.admin, uid, IdempotencyKey.generate())
        await walk.pause()

    def model(_: Any) -> None:
        walk.world.accounts.delete(uid, walk.world.posts, walk.world.comments)
        walk.world.timelines.settle()

    await walk.pause()
    await walk.do(f"erase {uid}", ask(), model)
    if uid in walk.people:
        walk.logins[at] = f"n{next(walk.newcomers)}"
        walk.people[at] = await walk.sign_up(walk.logins[at])


async def list_update(walk: Walk, a: int, b: int, c: int) -> None:
    (uid, list_id), name, private = own("lists")(walk, a, b, c), f"l{c % 2}", c % 3 == 0
    ask = walk.store.lists.update(uid, list_id, {"name": name, "private": private}, IdempotencyKey.generate())
    model = walk.world.lists.update
    await walk.do(f"list_update {uid} {list_id}", ask, lambda _: model(uid, list_id, name, private=private))


async def group_update(walk: Walk, a: int, b: int, c: int) -> None:
    (uid, gid), name = own("groups")(walk, a, b, c), f"g{c % 2}"
    ask = walk.store.groups.update(uid, gid, {"name": name}, IdempotencyKey.generate())
    await walk.do(f"group_update {uid} {gid}", ask, lambda _: walk.world.groups.update(uid, gid, name))


async def mark_read(walk: Walk, a: int, b: int, c: int) -> None:
    uid = walk.user(a)
    page = await walk.store.notifications.list_notifications(uid, PageRequest(count=200))
    found = json.loads(items_of(page)[b % len(items_of(page))]) if items_of(page) and c % 8 else None
    ask = walk.store.notifications.mark_read(uid, NEVER if found is None else found["id"], IdempotencyKey.generate())
    notice = None if found is None else notice_of(found)
    await walk.do(f"mark_read {uid} {notice}", ask, lambda _: walk.world.notices.mark_read(uid, notice))


def notice_of(found: dict[str, Any]) -> Notice:
    comment = found.get("comment")
    on = comment["status"] if comment else found.get("status", {}).get("id", "")
    return Notice(found["kind"], found["source"]["id"], on, comment["id"] if comment else "")


MOVES: dict[str, tuple[int, Move]] = {
    "post": (6, post),
    "burst": (2, burst),
    "reply": (4, partial(refer, by="in_reply_to")),
    "repost": (3, partial(refer, by="origin", has_text=False)),
    "quote": (3, partial(refer, by="origin")),
    "group_post": (3, group_post),
    "group_reply": (1, partial(group_refer, by="in_reply_to", has_text=True)),
    "group_repost": (1, partial(group_refer, by="origin", has_text=False)),
    "edit": (4, edit),
    "delete": (3, alike("statuses.delete", "posts.delete", own("statuses"))),
    "follow": (6, follow),
    "unfollow": (3, alike("follows.unfollow", "relations.unfollow", two_users)),
    "batch": (1, batch),
    "approve": (3, alike("follow_requests.approve", "relations.approve", who_asked)),
    "refuse": (1, alike("follow_requests.refuse", "relations.refuse", who_asked)),
    "block": (2, alike("blocks.block", "relations.block", two_users)),
    "unblock": (1, alike("blocks.unblock", "relations.unblock", two_users)),
    "mute": (1, alike("mutes.mute", "relations.mute", two_users)),
    "unmute": (1, alike("mutes.unmute", "relations.unmute", two_users)),
    "protect": (3, protect),
    "update": (1, update),
    "suspend": (1, partial(judge, verb="suspend")),
    "erase": (1, erase),
    "reinstate": (1, partial(judge, verb="reinstate")),
    "like": (4, alike("likes.like", "marks.like", user_and("statuses"))),
    "unlike": (2, alike("likes.unlike", "marks.unlike", user_and("statuses"))),
    "keep": (2, alike("favorites.add", "marks.add", user_and("statuses"))),
    "drop": (1, alike("favorites.remove", "marks.remove", user_and("statuses"))),
    "comment": (3, comment),
    "uncomment": (2, alike("comments.delete", "comments.delete", own("comments"))),
    "list_create": (2, list_create),
    "list_update": (1, list_update),
    "list_delete": (1, alike("lists.delete", "lists.delete", own("lists"))),
    "list_add": (4, alike("lists.add_member", "lists.add", own_and_member("lists"))),
    "list_remove": (2, alike("lists.remove_member", "lists.remove", listed_member)),
    "follow_listed": (2, partial(change_listed, verb="follow")),
    "unfollow_listed": (1, partial(change_listed, verb="unfollow")),
    "group_create": (2, group_create),
    "group_update": (1, group_update),
    "group_delete": (1, alike("groups.delete", "groups.delete", own("groups"))),
    "group_join": (3, alike("groups.join", "groups.join", user_and("groups"))),
    "group_add": (2, alike("groups.add_member", "groups.add", own_and_member("groups"))),
    "group_leave": (2, alike("groups.remove_member", "groups.remove", group_member)),
    "talk_open": (2, talk_open),
    "talk_send": (3, talk_send),
    "talk_read": (1, alike("talks.mark_read", "talks.read", message_of_talk)),
    "mark_read": (1, mark_read),
}
"""The weight and the function of each move, by name."""
