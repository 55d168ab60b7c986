"""Mutants of the Lua scripts and of reads. The comparison with the model must detect each of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from stream_server.events.visibility import VisibilityFact
from stream_server.store.reads import sight
from stream_server.store.redis.lua_library import LuaLibrary
from stream_server.store.redis.scripts import lua_constants, make_scripts, read_library
from stream_server.store.store import Store


class Mutant(NamedTuple):
    """A mistake: in all files of the library that have the text ``old``, it becomes ``new``. Or reads overlook a fact.

    Attributes:
        moves: Moves that may show the mistake.
        seed: First seed to try, for a mistake that few random lives show.
        overlooked: The facts that reads do not regard.
    """

    name: str
    old: str
    new: str
    moves: tuple[str, ...]
    seed: int = 0
    overlooked: VisibilityFact = VisibilityFact.NONE


LIKING = ("post", "like", "unlike", "like")
GRAPH = ("follow", "unfollow", "block", "post")
SEEING = ("post", "follow", "mute", "block", "reply", "quote", "protect")
TIMES = ("burst", "follow", "unfollow", "post", "follow")
ASKING = ("protect", "follow", "approve", "approve", "unfollow")

IN_GROUPS = ("follow", "group_create", "group_add", "group_join", "group_post", "group_post")

MUTANTS = (
    Mutant("an unlike is not counted", "with_counter_changed(row, 'likes', -1)", "", LIKING),
    Mutant("a like is given twice", "if redis.call('ZSCORE', KEY.likes .. id, uid) then", "if false then", LIKING),
    Mutant("an unlike still notifies", "withdraw_notification(row.uid, 'like', uid, id)", "", LIKING),
    Mutant("a deleted status stays in its place", "redis.call('ZREM', KEY.profile .. uid, id)", "", ("post", "delete")),
    Mutant("a deleted repost is still counted", "'reposts', -1)", "'reposts', 0)", ("post", "repost", "delete")),
    Mutant(
        "an unfollow is not counted",
        "redis.call('HINCRBY', KEY.user .. target.id, 'followers', by)",
        "if starts then redis.call('HINCRBY', KEY.user .. target.id, 'followers', by) end",
        GRAPH,
    ),
    Mutant(
        "a block cuts one way only",
        "local fence, fence_back = end_follow(source, target), end_follow(target, source)",
        "local fence, fence_back = end_follow(source, target), ''",
        GRAPH,
    ),
    Mutant("a block hides nothing", "bits = bits + BLOCKED", "bits = bits", SEEING),
    Mutant("a mute hides nothing", "bits = bits + MUTED", "bits = bits", SEEING),
    Mutant("protection hides nothing", "bits = bits + PROTECTED", "bits = bits", SEEING),
    *(
        Mutant(f"{fact.name} changes no read", "", "", SEEING, overlooked=fact)
        for fact in (VisibilityFact.BLOCKED, VisibilityFact.MUTED, VisibilityFact.PROTECTED, VisibilityFact.FOLLOWER)
    ),
    *(
        Mutant(f"{fact.name} changes no read", "", "", IN_GROUPS, overlooked=fact)
        for fact in (VisibilityFact.PRIVATE_GROUP, VisibilityFact.GROUP_MEMBER)
    ),
    Mutant("a protected post is sent to all", "actor.protected and 'followers:' .. uid or PUBLIC", "PUBLIC", SEEING),
    Mutant(
        "a private group is open",
        "(not kind or kind == 'private') and PRIVATE_GROUP or 0",
        "0",
        ("group_create", "group_post", "group_join"),
    ),
    Mutant(
        "a follow merges nothing",
        "return redis.call('ZRANGE', KEY.profile .. author, 0, TIMELINE_MAX - 1, 'REV')",
        "return {}",
        TIMES,
    ),
    Mutant("no timeline is refilled", "tonumber(size) < TIMELINE_MAX * 3 / 4", "false", TIMES, seed=13),
    Mutant(
        "a timeline is refilled too early",
        "tonumber(size) < TIMELINE_MAX * 3 / 4",
        "tonumber(size) < TIMELINE_MAX",
        TIMES,
        seed=17,
    ),
    Mutant("an approval notifies nobody", "notify(target_id, 'approve', source, '', '', ms, seq, n)", "", ASKING),
    Mutant(
        "a private list is sent to its members",
        "list.private ~= '1' and user.id",
        "user.id",
        ("list_create", "list_add"),
    ),
    Mutant(
        "a list of another does not exist",
        "refuse('NOT_YOURS list ' .. param)",
        "refuse('NOT_FOUND list ' .. param)",
        ("list_create", "list_add"),
    ),
    Mutant(
        "a mark goes back",
        "if number <= tonumber(redis.call('HGET', KEY.user .. uid, 'notices_read') or '0') then",
        "if false then",
        ("post", "reply", "like", "mark_read", "mark_read"),
    ),
)


@contextmanager
def mutated(store: Store, mutant: Mutant | None) -> Iterator[None]:
    """Make the mistake of a mutant in a store that is not open yet, for the block."""
    answers = sight._TABLE
    if mutant is not None and mutant.overlooked:
        sight._TABLE = tuple(answers[bits & ~mutant.overlooked] for bits in range(len(answers)))
    elif mutant is not None:
        _install(store, mutant)
    try:
        yield
    finally:
        sight._TABLE = answers


def _install(store: Store, mutant: Mutant) -> None:
    """Change the scripts of a store before it opens. Raises `LookupError` if no file has the text."""
    texts = [*read_library().values()]
    if not any(mutant.old in text for text in texts):  # an AssertionError would look like a detected mutant
        message = f"{mutant.name}: nothing has the text {mutant.old!r} any more"
        raise LookupError(message)
    broken = [text.replace(mutant.old, mutant.new) for text in texts]
    constants = lua_constants(store._scripts.size_limits, ("", ""))
    store._scripts._scripts = make_scripts(LuaLibrary(broken, constants))
