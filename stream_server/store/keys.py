"""All keys in one table, before any code: what each holds, and whether it is truth or derived.

Truth changes together in one script and so lives on one shard: its keys carry the hash tag ``{core}``. Derived
data can be rebuilt from it, is large, and spreads: its keys carry their owner's id as the tag. No script touches
both. Ids are 53-bit decimal numbers, exact as the score of a sorted set. Lua gets the names from here.
"""

from collections.abc import Collection
from typing import NamedTuple


class Key(NamedTuple):
    """One row: ``name`` as in Lua's ``KEY``, ``prefix`` (followed by ``tail``), Redis type, and what it holds."""

    name: str
    prefix: str
    tail: str
    type: str
    description: str

    @property
    def pattern(self) -> str:
        """The whole key, with its variable parts in angle brackets."""
        return self.prefix + self.tail


CORE_KEYS: tuple[Key, ...] = (
    Key("meta", "{core}:meta", "", "HASH", "`ms` `seq` of the last id, `n` of the log's last entry, last `fence`"),
    Key("log", "{core}:log", "", "STREAM", "every event: `n` number, `k` kind, `a` audience, `e` JSON; id = (ms, seq)"),
    Key("rollbacks", "{core}:rollbacks", "", "ZSET", "`<from> <to>` of each lost end, by the id of its entry; capped"),
    Key("logins", "{core}:logins", "", "HASH", "lower-cased login -> user id"),
    Key("emails", "{core}:emails", "", "HASH", "lower-cased e-mail -> user id"),
    Key("user", "{core}:user:", "<uid>", "HASH", "id login email password signup(ms) counters `card` and more"),
    Key("status", "{core}:status:", "<id>", "HASH", "id uid audience posted(ms) counters `head` (JSON) and more"),
    Key("profile", "{core}:profile:", "<uid>", "ZSET", "own statuses: id scored by itself; never capped, see `posts`"),
    Key("following", "{core}:following:", "<uid>", "ZSET", "user id -> when (ms)"),
    Key("followers", "{core}:followers:", "<uid>", "ZSET", "user id -> when (ms)"),
    Key("request", "{core}:request:", "<key>", "STRING", "`<fingerprint> <answer>` of a write; expires"),
    Key("revoked", "{core}:revoked:", "<uid>:<jti>", "STRING", "a token that was taken back; expires with it"),
    Key("refresh", "{core}:refresh:", "<sha256>", "STRING", "user id of an unused refresh token; expires"),
    Key("ticket", "{core}:ticket:", "<sha256>", "STRING", "what the token of an unused ticket says; expires"),
    Key("protected", "{core}:protected", "", "SET", "ids of the protected users; each hash says so, too"),
    Key("suspended", "{core}:suspended", "", "ZSET", "user id -> when (ms); each hash says so, too"),
    Key("due", "{core}:due", "", "ZSET", "job id -> due time (ms), the lease of whoever claimed it"),
    Key("parked", "{core}:parked", "", "ZSET", "jobs that failed too often: job id -> when (ms)"),
    Key("job", "{core}:job:", "<id>", "HASH", "what is left to do: mode, fence, place, failures, versions, subject"),
    Key("repair", "{core}:repair", "", "STRING", "there while it is nobody's turn to look everything over; expires"),
    Key("weight", "{core}:weight", "", "STRING", "bytes of the log, while it need not be weighed anew; expires"),
    Key("mentions", "{core}:mentions:", "<uid>", "ZSET", "statuses that mention a user, scored by themselves"),
    Key("tag", "{core}:tag:", "<folded tag>", "ZSET", "status id scored by itself"),
    Key("replies", "{core}:replies:", "<status id>", "ZSET", "direct replies: status id scored by itself"),
    Key("thread", "{core}:thread:", "<root id>", "ZSET", "a conversation: status id scored by itself"),
    Key("reposts", "{core}:reposts:", "<status id>", "ZSET", "reposts and quotes: status id scored by itself"),
    Key("likes", "{core}:likes:", "<status id>", "ZSET", "who likes it: user id -> when (ms)"),
    Key("liked", "{core}:liked:", "<uid>", "ZSET", "what a user likes: status id -> when (ms)"),
    Key("favorites", "{core}:favorites:", "<uid>", "ZSET", "kept statuses: status id -> when (ms)"),
    Key("comments", "{core}:comments:", "<status id>", "ZSET", "comment id scored by itself"),
    Key("comment", "{core}:comment:", "<id>", "HASH", "id uid status message posted(ms) audience `json` and more"),
    Key("notices", "{core}:notices:", "<uid>", "ZSET", "`<kind>:<source uid>:<subject>` -> own id; capped"),
    Key("asks", "{core}:asks:", "<uid>", "ZSET", "who asks to follow a protected user: user id -> when (ms)"),
    Key("asked", "{core}:asked:", "<uid>", "ZSET", "whom a user asks to follow: user id -> when (ms)"),
    Key("blocks", "{core}:blocks:", "<uid>", "ZSET", "whom a user blocks: user id -> when (ms)"),
    Key("blockers", "{core}:blockers:", "<uid>", "ZSET", "who blocks a user: user id -> when (ms)"),
    Key("mutes", "{core}:mutes:", "<uid>", "ZSET", "whom a user mutes: user id -> when (ms)"),
    Key("list", "{core}:list:", "<id>", "HASH", "id uid private members created(ms), words as they are and JSON"),
    Key("lists", "{core}:lists:", "<uid>", "ZSET", "lists of a user: list id scored by itself"),
    Key("members", "{core}:members:", "<list id>", "ZSET", "user id -> when added (ms)"),
    Key("listed", "{core}:listed:", "<uid>", "ZSET", "lists that a user is on: list id -> when (ms)"),
    Key("group", "{core}:group:", "<id>", "HASH", "id uid kind members created(ms), words as they are and JSON"),
    Key("groups", "{core}:groups:", "<uid>", "ZSET", "groups that a user is in: group id -> when (ms)"),
    Key("joined", "{core}:joined:", "<group id>", "ZSET", "members: user id -> when joined (ms)"),
    Key("grouped", "{core}:grouped:", "<group id>", "ZSET", "its timeline: status id scored by itself; capped"),
    Key("talk", "{core}:talk:", "<id>", "HASH", "id uid people created(ms), name as it is and JSON"),
    Key("talks", "{core}:talks:", "<uid>", "ZSET", "talks of a user: talk id -> id of the last message, or its own"),
    Key("pair", "{core}:pair:", "<uid>:<uid>", "STRING", "the talk of two people, the lower id first"),
    Key("marks", "{core}:marks:", "<talk id>", "HASH", "user id -> id of the last message read"),
    Key("messages", "{core}:messages:", "<talk id>", "ZSET", "message id scored by itself"),
    Key("message", "{core}:message:", "<id>", "HASH", "id talk uid login message posted(ms), `json`"),
    Key("reports", "{core}:reports", "", "ZSET", "open reports: report id scored by itself"),
    Key("decided", "{core}:decided", "", "ZSET", "decided reports: report id scored by itself"),
    Key("report", "{core}:report:", "<id>", "HASH", "id uid user status reason note posted(ms), the decision"),
    Key("rules", "{core}:rules:", "<uid>", "HASH", "rule id -> JSON: id, rule, tag, created"),
    Key("filed", "{core}:filed", "", "HASH", "`<uid>:u<user>` or `<uid>:s<status>` -> the open report of it"),
)
"""What cannot be rebuilt: one shard, changed by one script at a time."""

DERIVED_KEYS: tuple[Key, ...] = (
    Key("home", "home:", "{<uid>}", "ZSET", "home timeline: status id scored by itself; capped"),
    Key("timeline", "timeline:", "{<list id>}", "ZSET", "list timeline: status id scored by itself; capped"),
    Key("connects", "connects:", "{<uid>}", "STRING", "how often a user connected in this window; expires with it"),
)
"""What can be rebuilt from the truth: any shard."""

ALL_KEYS = CORE_KEYS + DERIVED_KEYS

_PREFIX_BY_NAME = {key.name: key.prefix for key in ALL_KEYS}

META = _PREFIX_BY_NAME["meta"]
LOG = _PREFIX_BY_NAME["log"]
ROLLBACKS = _PREFIX_BY_NAME["rollbacks"]
LOGINS = _PREFIX_BY_NAME["logins"]
EMAILS = _PREFIX_BY_NAME["emails"]
CONNECTS_PREFIX = _PREFIX_BY_NAME["connects"].removesuffix(":")
"""How the keys of connects begin; the library that counts them puts the colon."""


def key_for(name: str, *parts: str) -> str:
    """The key of the table's row ``name`` for these ids, joined by colons: ``named("likes", "42")``."""
    return _PREFIX_BY_NAME[name] + ":".join(parts)


def home_timeline(uid: str) -> str:
    """The home timeline of a user."""
    return f"{_PREFIX_BY_NAME['home']}{{{uid}}}"


def list_timeline(list_id: str) -> str:
    """The timeline of a list."""
    return f"{_PREFIX_BY_NAME['timeline']}{{{list_id}}}"


def connects_suffix(uid: str) -> str:
    """What follows :data:`CONNECTS_PREFIX` and a colon in the key of a user's connects."""
    return f"{{{uid}}}"


def lua_key_table(used_names: Collection[str]) -> str:
    """The names that a script uses, as the line of Lua that goes before it."""
    rows = ",".join(f"{key.name}='{key.prefix}'" for key in CORE_KEYS if key.name in used_names)
    return f"local KEY={{{rows}}}"
