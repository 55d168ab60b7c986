"""All keys in one table, before any code: what each holds, and whether it is truth or derived.

Truth changes together in one script and so lives on one shard: its keys carry the hash tag ``{core}``. Derived
data can be rebuilt from it, is large, and spreads: its keys carry their owner's id as the tag. No script touches
both. Ids are 53-bit decimal numbers, exact as the score of a sorted set. Lua gets the names from here.

A row whose ``used`` is False keeps its name for data that is not written yet.
"""

from typing import NamedTuple


class Key(NamedTuple):
    """One row: ``name`` as in Lua's ``KEY``, ``prefix`` (followed by ``tail``), Redis type, and what it holds."""

    name: str
    prefix: str
    tail: str
    type: str
    content: str
    used: bool = True

    @property
    def pattern(self) -> str:
        """The whole key, with its variable parts in angle brackets."""
        return self.prefix + self.tail


TRUTH: tuple[Key, ...] = (
    Key("meta", "{core}:meta", "", "HASH", "clock: `ms`, `seq` of the last id made, `n` of the last entry of the log"),
    Key("log", "{core}:log", "", "STREAM", "every event: `n` number, `k` kind, `a` audience, `e` JSON; id = (ms, seq)"),
    Key("logins", "{core}:logins", "", "HASH", "lower-cased login -> user id"),
    Key("emails", "{core}:emails", "", "HASH", "lower-cased e-mail -> user id"),
    Key("user", "{core}:user:", "<uid>", "HASH", "id login name email password signup(ms) counters, profile, `card`"),
    Key("status", "{core}:status:", "<id>", "HASH", "id uid login message posted(ms) counters, and what it has"),
    Key("profile", "{core}:profile:", "<uid>", "ZSET", "own statuses: id scored by itself; never capped, see `posts`"),
    Key("following", "{core}:following:", "<uid>", "ZSET", "user id -> when (ms)"),
    Key("followers", "{core}:followers:", "<uid>", "ZSET", "user id -> when (ms)"),
    Key("request", "{core}:request:", "<key>", "STRING", "`<fingerprint> <answer>` of a write; expires"),
    Key("revoked", "{core}:revoked:", "<uid>:<jti>", "STRING", "a token that was taken back; expires with it"),
    Key("refresh", "{core}:refresh:", "<sha256>", "STRING", "user id of an unused refresh token; expires"),
    Key("due", "{core}:due", "", "ZSET", "job id -> due time (ms), the lease of whoever claimed it", used=False),
    Key("job", "{core}:job:", "<id>", "HASH", "what is left to do: mode, status, cursor (score, member)", used=False),
    Key("lists", "{core}:lists:", "<uid>", "ZSET", "lists of a user: list id -> when", used=False),
    Key("list", "{core}:list:", "<id>", "HASH", "id, uid, name, private", used=False),
    Key("members", "{core}:members:", "<list id>", "ZSET", "user id -> when added", used=False),
    Key("listed", "{core}:listed:", "<uid>", "ZSET", "lists that a user is on: list id -> when", used=False),
    Key("likes", "{core}:likes:", "<status id>", "ZSET", "user id -> when", used=False),
    Key("favorites", "{core}:favorites:", "<uid>", "ZSET", "kept statuses: status id -> when", used=False),
    Key("comments", "{core}:comments:", "<status id>", "ZSET", "comment id scored by itself", used=False),
    Key("comment", "{core}:comment:", "<id>", "HASH", "id, uid, status, message, posted(ms)", used=False),
    Key("replies", "{core}:replies:", "<status id>", "ZSET", "status id scored by itself", used=False),
    Key("reposts", "{core}:reposts:", "<status id>", "ZSET", "status id scored by itself", used=False),
    Key("mentions", "{core}:mentions:", "<uid>", "ZSET", "status id scored by itself; capped", used=False),
    Key("tag", "{core}:tag:", "<folded tag>", "ZSET", "status id scored by itself; capped", used=False),
    Key("notices", "{core}:notices:", "<uid>", "ZSET", "notification id scored by itself; capped", used=False),
    Key("notice", "{core}:notice:", "<id>", "HASH", "id, kind, source, status, posted(ms)", used=False),
    Key("group", "{core}:group:", "<id>", "HASH", "id, uid, name, kind", used=False),
    Key("groups", "{core}:groups:", "<uid>", "ZSET", "groups that a user is in: group id -> when", used=False),
    Key("joined", "{core}:joined:", "<group id>", "ZSET", "user id -> when joined", used=False),
    Key("grouped", "{core}:grouped:", "<group id>", "ZSET", "timeline: status id scored by itself; capped", used=False),
    Key("talks", "{core}:talks:", "<uid>", "ZSET", "conversation id -> last message (ms)", used=False),
    Key("talk", "{core}:talk:", "<id>", "HASH", "id, people, read marks", used=False),
    Key("messages", "{core}:messages:", "<talk id>", "ZSET", "message id scored by itself", used=False),
    Key("message", "{core}:message:", "<id>", "HASH", "id, uid, message, posted(ms)", used=False),
    Key("asks", "{core}:asks:", "<uid>", "ZSET", "who asks to follow a protected user: user id -> when", used=False),
    Key("blocks", "{core}:blocks:", "<uid>", "ZSET", "user id -> when", used=False),
    Key("blockers", "{core}:blockers:", "<uid>", "ZSET", "who blocks this user: user id -> when", used=False),
    Key("mutes", "{core}:mutes:", "<uid>", "ZSET", "user id -> when", used=False),
    Key("reports", "{core}:reports", "", "ZSET", "report id scored by itself", used=False),
    Key("report", "{core}:report:", "<id>", "HASH", "id, uid, what, why, posted(ms), outcome", used=False),
)
"""What cannot be rebuilt: one shard, changed by one script at a time."""

DERIVED: tuple[Key, ...] = (
    Key("home", "home:", "{<uid>}", "ZSET", "home timeline: status id scored by itself; capped", used=False),
    Key("timeline", "timeline:", "{<list id>}", "ZSET", "list timeline: status id scored by itself; capped", False),
)
"""What can be rebuilt from the truth: any shard."""

TABLE = TRUTH + DERIVED

_PREFIX = {key.name: key.prefix for key in TABLE}

META = _PREFIX["meta"]
LOG = _PREFIX["log"]
LOGINS = _PREFIX["logins"]
EMAILS = _PREFIX["emails"]


def user(uid: str) -> str:
    """The hash of a user."""
    return _PREFIX["user"] + uid


def status(status_id: str) -> str:
    """The hash of a status."""
    return _PREFIX["status"] + status_id


def profile(uid: str) -> str:
    """A user's own statuses."""
    return _PREFIX["profile"] + uid


def following(uid: str) -> str:
    """Whom a user follows."""
    return _PREFIX["following"] + uid


def followers(uid: str) -> str:
    """Who follows a user."""
    return _PREFIX["followers"] + uid


def request(key: str) -> str:
    """The kept answer of one write."""
    return _PREFIX["request"] + key


def revoked(uid: str, jti: str) -> str:
    """Present while a token that was taken back could still be shown."""
    return f"{_PREFIX['revoked']}{uid}:{jti}"


def refresh(digest: str) -> str:
    """An unused refresh token, by its SHA-256."""
    return _PREFIX["refresh"] + digest


def lua_table() -> str:
    """The names that scripts use, as the line of Lua that goes before each of them."""
    rows = ",".join(f"{key.name}='{key.prefix}'" for key in TRUTH if key.used)
    return f"local KEY={{{rows}}}"
