"""Mutants of the Lua scripts and of reads. The comparison with the model must detect each of them.

A rule that has a test of its own needs no mutant.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from stream_server.events.visibility import VisibilityFact
from stream_server.store.reads import sight
from stream_server.store.redis.lua_library import LuaLibrary, make_scripts, read_library
from stream_server.store.redis.script_settings import lua_constants
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
    overlooked: int = VisibilityFact.NONE


LIKING = ("post", "like", "unlike", "like")
EDITING = ("post", "edit", "edit")
SEEING = ("post", "follow", "mute", "block", "reply", "quote", "protect")
ASKING = ("protect", "follow", "approve", "approve", "unfollow")

IN_GROUPS = ("follow", "group_create", "group_add", "group_join", "group_post", "group_post")

MUTANTS = (
    Mutant("an unlike is not counted", "with_counter_changed(row, 'likes', -1)", "", LIKING),
    Mutant("a like is given twice", "if redis.call('ZSCORE', KEY.likes .. id, uid) then", "if false then", LIKING),
    Mutant("an unlike still notifies", "withdraw_notification(row.uid, 'like', uid, id)", "", LIKING),
    Mutant("a deleted status stays in its place", "redis.call('ZREM', KEY.profile .. uid, id)", "", ("post", "delete")),
    Mutant("an edited status keeps its old tags", "redis.call('ZREM', KEY.tag .. tag, id) end)", "end)", EDITING),
    Mutant("an edited status keeps its old mentions", "redis.call('ZREM', KEY.mentions .. uid, id)", "", EDITING),
    Mutant(
        "an edit notifies nobody", "receivers[#receivers + 1] = {uid = other", "receivers[1] = nil and {uid = other",
        EDITING,
    ),
    Mutant("a deleted repost is still counted", "'reposts', -1)", "'reposts', 0)", ("post", "repost", "delete")),
    Mutant("a block hides nothing", "bits = bits + BLOCKED", "bits = bits", SEEING),
    Mutant("a mute hides nothing", "bits = bits + MUTED", "bits = bits", SEEING),
    Mutant("protection hides nothing", "bits = bits + PROTECTED", "bits = bits", SEEING),
    *(
        Mutant(f"{name} changes no read", "", "", SEEING, overlooked=getattr(VisibilityFact, name))
        for name in ("BLOCKED", "MUTED", "PROTECTED", "FOLLOWER")
    ),
    *(
        Mutant(f"{name} changes no read", "", "", IN_GROUPS, overlooked=getattr(VisibilityFact, name))
        for name in ("PRIVATE_GROUP", "GROUP_MEMBER")
    ),
    Mutant("a protected post is sent to all", "actor.protected and 'followers:' .. uid or PUBLIC", "PUBLIC", SEEING),
    Mutant(
        "an approval notifies nobody",
        "notify_one(source, target_id, 'approve', '', '', ms, seq, n)",
        "",
        ASKING,
    ),
    Mutant(
        "a private list is sent to its members",
        "list.private ~= '1' and user.id",
        "user.id",
        ("list_create", "list_add"),
    ),
    Mutant(
        "a text names a hidden user",
        "if #ids < MAX_MENTIONED and can_see_user(author, id) then",
        "if true then",
        ("post", "block", "suspend", "post"),
        seed=1,
    ),
    Mutant(
        "a block keeps the memberships",
        "if redis.call('ZSCORE', KEY.joined .. id, user.id) then",
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
        "and wants_notifications_from(uid, source) then",
        "then",
        ("post", "mute", "like", "reply"),
        seed=2,
    ),
    Mutant("users notify themselves", "if one.uid ~= source.id then", "if true then", ("post", "like", "reply")),
    Mutant(
        "a repost of a repost has it as its original",
        "if row and is_wordless(row) then row = find_visible_status(uid, row.origin) end",
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
        "group = refs.answered.group\n",
        "\n",
        ("group_create", "group_post", "reply"),
        seed=5,
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
    constants = lua_constants(store._scripts.size_limits, store._scripts.rules)
    store._scripts._scripts = make_scripts(LuaLibrary(broken, constants))
