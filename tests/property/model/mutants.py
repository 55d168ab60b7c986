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
    Mutant(
        "a text names a hidden user",
        "if id and not can_see_user(author, id) then id = nil end",
        "",
        ("post", "block", "suspend", "post"),
        seed=1,
    ),
    Mutant(
        "a block keeps the follow requests",
        "elseif has_requested(who, other) then",
        "elseif false then",
        ("protect", "follow", "block"),
        seed=5,
    ),
    Mutant(
        "a block keeps the memberships",
        "if redis.call('ZSCORE', KEY.joined .. id, who.id) then",
        "if false then",
        ("follow", "group_create", "group_join", "group_join", "block"),
        seed=3,
    ),
    Mutant(
        "anybody deletes a comment",
        "if row.uid ~= uid then refuse('NOT_YOURS comment') end",
        "",
        ("post", "comment", "uncomment"),
        seed=3,
    ),
    Mutant(
        "strangers react in a group",
        "not redis.call('ZSCORE', KEY.joined .. row.group, uid) then refuse('NOT_YOURS group') end",
        "false then return nil end",
        ("group_create", "group_post", "group_post", "like", "comment"),
        seed=1,
    ),
    Mutant(
        "a muted user notifies",
        "receiver == source.id or not wants_notifications_from(receiver, source)",
        "receiver == source.id",
        ("post", "mute", "like", "reply"),
        seed=2,
    ),
    Mutant("users notify themselves", "receiver == source.id or not", "not", ("post", "like", "reply")),
    Mutant(
        "a repost of a repost has it as its original",
        "if row and row.wordless then row = find_visible_status(uid, row.origin) end",
        "",
        ("post", "repost", "repost"),
    ),
    Mutant(
        "an unfollow keeps the notification of its approval",
        "withdraw_notification(source.id, 'approve', target.id, '')",
        "",
        ("protect", "follow", "approve", "approve", "unfollow"),
        seed=13,
    ),
    Mutant(
        "an unfollow keeps the notification of its follow",
        "withdraw_notification(target.id, 'follow', source.id, '')",
        "",
        ("follow", "unfollow"),
    ),
    Mutant(
        "a withdrawn request keeps its notification",
        "withdraw_notification(target.id, 'request', source.id, '')",
        "",
        ("protect", "follow", "unfollow", "refuse"),
        seed=1,
    ),
    Mutant(
        "every member announces",
        "(place.kind == 'announcement' and place.uid ~= uid)",
        "false",
        ("follow", "group_create", "group_join", "group_add", "group_post"),
        seed=1,
    ),
    Mutant(
        "a reply begins a conversation",
        "found.conversation, found.login = answered.conversation, answered.login",
        "found.login = answered.login",
        ("post", "reply"),
    ),
    Mutant(
        "a hidden status is a favorite",
        "if not find_visible_status(uid, id) then refuse('NOT_FOUND status') end\n  local ms",
        "local ms",
        ("post", "block", "keep"),
    ),
    Mutant(
        "strangers see a private list",
        "(list.private == '1' or not can_see_user(uid, list.uid))",
        "not can_see_user(uid, list.uid)",
        ("list_create", "list_add"),
        seed=1,
    ),
    Mutant(
        "a blocked user writes in a talk",
        "if not can_contact(uid, other) then refuse('NOT_FOUND talk id') end",
        "",
        ("talk_open", "talk_send", "block"),
    ),
    Mutant(
        "a blocking owner's group is found",
        "if group and group.kind ~= 'private' and can_see_user(viewer, group.uid) then",
        "if group and group.kind ~= 'private' then",
        ("group_create", "block", "group_join"),
        seed=1,
    ),
    Mutant(
        "a reply leaves its group",
        "group = answered.group\n",
        "\n",
        ("group_create", "group_post", "reply"),
        seed=5,
    ),
    Mutant(
        "a status in a group counts as a post",
        "if group ~= '' then return position, id, status, ms, seq, n, '' end",
        "",
        ("group_create", "group_post"),
        seed=1,
    ),
    Mutant(
        "a protected status is reposted",
        "if not is_open or is_protected(row.uid) then refuse('PROTECTED origin') end",
        "",
        ("post", "protect", "follow", "approve", "repost"),
        seed=2,
    ),
    Mutant("a suspended user goes on", "if who.suspended then refuse('SUSPENDED user') end", "", ("suspend", "post")),
    Mutant(
        "a repeated follow is one more",
        "local following = is_following(source, target)\n  local asking",
        "local following = nil\n  local asking",
        ("follow", "follow"),
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
