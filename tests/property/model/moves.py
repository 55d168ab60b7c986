"""Actions of a walk, chosen by small numbers: valid ones, and ones that must be refused."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.statuses import StatusDraft
from tests.property.model.state import Comment, Status
from tests.property.model.walk import LOGINS, UNKNOWN, Walk

Move = Callable[[Walk, int, int, int], Awaitable[None]]

TAGS = ("tea", "Été")


def made_id(made: bytes | None) -> str:
    """The id of a new object, or an unknown id if there is none."""
    return UNKNOWN if made is None else str(json.loads(made)["id"])


def words(walk: Walk, author: str, number: int) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """A message, the users it mentions, and its folded tags."""
    message = f"m{len(walk.trace)}"
    mentions: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    if number % 3 == 1:
        login = LOGINS[number % len(walk.people)]
        message += f" @{login.upper()}"
        mentioned = walk.people[number % len(walk.people)]
        # A user that is hidden from the author is not resolved.
        mentions = (mentioned,) if walk.world.access.knows(author, mentioned) else ()
    if number % 4 == 3:
        tag = TAGS[number % len(TAGS)]
        message += f" #{tag}"
        tags = (tag.casefold(),)
    return message, mentions, tags


async def _post(walk: Walk, uid: str, text: int | None, **more: str) -> None:
    message, mentions, tags = words(walk, uid, text) if text is not None else ("", (), ())

    def model(made: bytes | None) -> None:
        walk.world.posts.create(
            Status(id=made_id(made), uid=uid, message=message, mentions=mentions, tags=tags, **more)
        )

    ask = walk.store.statuses.create(uid, StatusDraft(message=message, **more), IdempotencyKey.generate())  # type: ignore[arg-type]  # mypy: ** of str
    made = await walk.do(f"post {uid} {message!r} {more}", ask, model)
    if made is not None:
        walk.statuses.append(made_id(made))
        walk.owners[made_id(made)] = uid


async def post(walk: Walk, a: int, b: int, c: int) -> None:
    await _post(walk, walk.user_or_unknown(a), b)


async def burst(walk: Walk, a: int, b: int, c: int) -> None:
    """Three posts, so that timelines overflow."""
    for _ in range(3):
        await _post(walk, walk.user(a), b)


async def reply(walk: Walk, a: int, b: int, c: int) -> None:
    await _post(walk, walk.user(a), c, in_reply_to=walk.any_of(walk.statuses, b))


async def repost(walk: Walk, a: int, b: int, c: int) -> None:
    await _post(walk, walk.user(a), None, origin=walk.any_of(walk.statuses, b))


async def quote(walk: Walk, a: int, b: int, c: int) -> None:
    await _post(walk, walk.user(a), c, origin=walk.any_of(walk.statuses, b))


async def group_post(walk: Walk, a: int, b: int, c: int) -> None:
    await _post(walk, walk.user(a), c, group=walk.any_of(walk.groups, b))


async def group_repost(walk: Walk, a: int, b: int, c: int) -> None:
    group = walk.any_of(walk.groups, c)
    await _post(walk, walk.user(a), None, group=group, origin=walk.any_of(walk.statuses, b))


async def group_reply(walk: Walk, a: int, b: int, c: int) -> None:
    group = walk.any_of(walk.groups, c)
    await _post(walk, walk.user(a), b, group=group, in_reply_to=walk.any_of(walk.statuses, b))


async def delete(walk: Walk, a: int, b: int, c: int) -> None:
    sid = walk.any_of(walk.statuses, b)
    uid = walk.owner(sid, a, c)
    ask = walk.store.statuses.delete(uid, sid, IdempotencyKey.generate())
    await walk.do(f"delete {uid} {sid}", ask, lambda _: walk.world.posts.delete(uid, sid))


async def follow(walk: Walk, a: int, b: int, c: int) -> None:
    source, target = walk.user(a), walk.user_or_unknown(b)

    def model(made: bytes | None) -> None:
        asked = walk.world.relations.follow(source, target)
        if made is not None:
            assert json.loads(made) == {"following": not asked, "requested": asked}, walk.because("answered otherwise")

    await walk.do(
        f"follow {source} {target}", walk.store.follows.follow(source, target, IdempotencyKey.generate()), model
    )


async def unfollow(walk: Walk, a: int, b: int, c: int) -> None:
    source, target = walk.user(a), walk.user_or_unknown(b)
    ask = walk.store.follows.unfollow(source, target, IdempotencyKey.generate())
    await walk.do(f"unfollow {source} {target}", ask, lambda _: walk.world.relations.unfollow(source, target))


def _between(verb: str, noun: str, *, mine: bool = False) -> Move:
    """An action between two users: a method of a noun of the store, and of the model's relations."""

    async def move(walk: Walk, a: int, b: int, c: int) -> None:
        source, target = walk.user(a), walk.user_or_unknown(b)
        asking = [one for one, other in walk.world.ground.asks if other == source]
        if mine and asking and c % 4:
            target = asking[0]
        ask = getattr(getattr(walk.store, noun), verb)(source, target, IdempotencyKey.generate())
        model = getattr(walk.world.relations, verb)
        await walk.do(f"{verb} {source} {target}", ask, lambda _: model(source, target))

    return move


async def update(walk: Walk, a: int, b: int, c: int) -> None:
    uid = walk.user(a)
    changes: dict[str, str | bool | None] = {}
    if b % 3 != 1:
        changes["protected"] = c % 3 == 0
    if b % 3 != 0:
        changes["bio"] = (None, "one", "two")[c % 3]
    ask = walk.store.users.update(uid, changes, IdempotencyKey.generate())
    await walk.do(f"update {uid} {changes}", ask, lambda _: walk.world.people.update(uid, changes))


async def protect(walk: Walk, a: int, b: int, c: int) -> None:
    uid = walk.user(a)
    changes: dict[str, str | bool | None] = {"protected": c % 3 != 0}
    ask = walk.store.users.update(uid, changes, IdempotencyKey.generate())
    await walk.do(f"protect {uid} {changes}", ask, lambda _: walk.world.people.update(uid, changes))


async def suspend(walk: Walk, a: int, b: int, c: int) -> None:
    uid = walk.user_or_unknown(b)
    ask = walk.store.suspensions.suspend(walk.admin, uid, IdempotencyKey.generate())
    await walk.do(f"suspend {uid}", ask, lambda _: walk.world.people.suspend(uid))


async def reinstate(walk: Walk, a: int, b: int, c: int) -> None:
    gone = [one.id for one in walk.world.ground.people.values() if one.suspended]
    uid = gone[b % len(gone)] if gone else walk.user_or_unknown(b)
    ask = walk.store.suspensions.reinstate(walk.admin, uid, IdempotencyKey.generate())
    await walk.do(f"reinstate {uid}", ask, lambda _: walk.world.people.reinstate(uid))


def _on_status(verb: str, noun: str) -> Move:

    async def move(walk: Walk, a: int, b: int, c: int) -> None:
        uid, sid = walk.user(a), walk.any_of(walk.statuses, b)
        ask = getattr(getattr(walk.store, noun), verb)(uid, sid, IdempotencyKey.generate())
        model = getattr(walk.world.marks, verb)
        await walk.do(f"{verb} {uid} {sid}", ask, lambda _: model(uid, sid))

    return move


async def comment(walk: Walk, a: int, b: int, c: int) -> None:
    uid, sid = walk.user(a), walk.any_of(walk.statuses, b)
    message, mentions, _ = words(walk, uid, c)

    def model(made: bytes | None) -> None:
        walk.world.comments.create(Comment(made_id(made), uid, sid, message, mentions))

    made = await walk.do(
        f"comment {uid} {sid} {message!r}",
        walk.store.comments.create(uid, sid, message, IdempotencyKey.generate()),
        model,
    )
    if made is not None:
        walk.comments.append(made_id(made))
        walk.owners[made_id(made)] = uid


async def uncomment(walk: Walk, a: int, b: int, c: int) -> None:
    one = walk.any_of(walk.comments, b)
    uid = walk.owner(one, a, c)
    ask = walk.store.comments.delete(uid, one, IdempotencyKey.generate())
    await walk.do(f"uncomment {uid} {one}", ask, lambda _: walk.world.comments.delete(uid, one))


async def batch(walk: Walk, a: int, b: int, c: int) -> None:
    source, follows, leaves = (
        walk.user(a),
        [walk.user_or_unknown(b), walk.user_or_unknown(c)],
        [walk.user_or_unknown(b + c)],
    )

    def model(made: Any) -> None:
        expected = [walk.world.batched("follow", source, uid) for uid in follows]
        expected += [walk.world.batched("unfollow", source, uid) for uid in leaves]
        assert made is None or [tuple(one) for one in made] == expected, walk.because("outcomes differ")

    ask = walk.store.follows.change_many(source, follows, leaves, IdempotencyKey.generate())
    await walk.do(f"batch {source} {follows} {leaves}", ask, model)


MOVES: dict[str, tuple[int, Move]] = {
    "post": (6, post),
    "burst": (2, burst),
    "reply": (4, reply),
    "repost": (3, repost),
    "quote": (3, quote),
    "group_post": (3, group_post),
    "group_reply": (1, group_reply),
    "group_repost": (1, group_repost),
    "delete": (3, delete),
    "follow": (6, follow),
    "unfollow": (3, unfollow),
    "batch": (1, batch),
    "approve": (3, _between("approve", "follow_requests", mine=True)),
    "refuse": (1, _between("refuse", "follow_requests", mine=True)),
    "block": (2, _between("block", "blocks")),
    "unblock": (1, _between("unblock", "blocks")),
    "mute": (1, _between("mute", "mutes")),
    "unmute": (1, _between("unmute", "mutes")),
    "protect": (3, protect),
    "update": (1, update),
    "suspend": (1, suspend),
    "reinstate": (1, reinstate),
    "like": (4, _on_status("like", "likes")),
    "unlike": (2, _on_status("unlike", "likes")),
    "keep": (2, _on_status("add", "favorites")),
    "drop": (1, _on_status("remove", "favorites")),
    "comment": (3, comment),
    "uncomment": (2, uncomment),
}
"""The weight and the function of each move, by name."""
