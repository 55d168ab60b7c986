"""The table of all Redis keys: what each key holds, and whether its data is truth or derived.

Truth changes together in one script, so it is on one shard: its keys have the hash tag ``{core}``. Derived data is
spread over shards: its keys have their owner's id as the hash tag. It may be lost: home and list timelines are rebuilt
from the truth, and counts of limits, open streams and processes expire and are written anew. No script uses both. Ids
are decimal numbers of at most 53 bits, so they are exact as the score of a sorted set. Lua scripts get the key names
from this table.
"""

from typing import NamedTuple


class Key(NamedTuple):
    """One row of the table of Redis keys.

    Attributes:
        name: Name of the row in Python, and of the field in Lua's table ``KEY``.
        prefix: Fixed beginning of the key.
        tail: Variable end of the key, such as ``<uid>``. Empty if there is only one such key.
        type: Redis type of the value.
        description: What the key holds.
        bound: Why no user makes these keys, or one of them, grow without limit.
    """

    name: str
    prefix: str
    tail: str
    type: str
    description: str
    bound: str

    @property
    def pattern(self) -> str:
        """The whole key with variable parts in angle brackets, for example ``{core}:user:<uid>``."""
        return self.prefix + self.tail


ONE = "one in all"
SERVERS = "one for each server, for two hours after its last sample; 360 samples of each worker"
LOG = "`log_max_seconds`, `log_max_bytes`, and half of Redis' memory"
USERS = "one for each user: the limit `sign_ups`, unless an issuer or the operator makes users"
TEXTS = "the limits `statuses` and `write_bytes`"
WRITES = "the limits `writes` and `write_bytes`; one for each user, status or job that exists"
CONTACTS = "the limit `follows`; 20,000 people of one user, and 5,000 members of a list or a group"
TALKS = "the limit `talks`"
REPORTS = "the limit `reports`"
KEPT = "the limits `write_bytes`, `writes` and `follows`; a day under a client's key, else a minute; 112 bytes each"
TOKENS = "one for each token that its user ends, or link of the operator; leaves with it"
TICKETS = "the limit `tickets`, for 30 s"
STREAMS = "`streams_per_user`, and the limit `reads`"
RATES = "one for each limit and its subject, for the time of its window; the limit `log_ins_of_address`"
CAPPED = "a maximum for each user, list, group or server"
OPERATOR = "only with a token for ingest, which the operator issues"
"""The bounds of keys. A name in backticks is a setting, or a limit of the setting ``limits``."""

CORE_KEYS: tuple[Key, ...] = (
    Key("meta", "{core}:meta", "", "HASH", "`ms` `seq` of the last id, `n` of the last entry, `removed` …", ONE),
    Key("never", "{core}:never", "", "none", "never exists; each script declares it, against a slot that moves", ONE),
    Key("confirmed", "{core}:confirmed", "", "STRING", "empty; written before replicas confirm a write", ONE),
    Key("log", "{core}:log", "", "STREAM", "events: `n` number, `k` kind, `a` audience, `e` JSON; id = (ms, seq)", LOG),
    Key("sizes", "{core}:sizes", "", "ZSET", "bytes of all entries up to some of them, scored by the number", LOG),
    Key("rollbacks", "{core}:rollbacks", "", "ZSET", "`<from> <to>` of a rollback, scored by its entry's id", LOG),
    Key("logins", "{core}:logins", "", "HASH", "lower-cased login -> user id", USERS),
    Key("emails", "{core}:emails", "", "HASH", "lower-cased e-mail -> user id", USERS),
    Key("names", "{core}:names", "", "ZSET", "`<beginning of a login or name><tab><user id>`, to find people", USERS),
    Key("user", "{core}:user:", "<uid>", "HASH", "id login email password signup counters `card` and more", USERS),
    Key("status", "{core}:status:", "<id>", "HASH", "uid audience counters `row` (values of its JSON) and more", TEXTS),
    Key("profile", "{core}:profile:", "<uid>", "ZSET", "a user's statuses: id scored by itself; never capped", TEXTS),
    Key("visited", "{core}:visited", "", "ZSET", "user id -> about when the home timeline was last read (ms)", USERS),
    Key("asleep", "{core}:asleep", "", "ZSET", "user id -> since when the home timeline is not kept (ms)", USERS),
    Key("following", "{core}:following:", "<uid>", "ZSET", "user id -> when (ms)", CONTACTS),
    Key("followers", "{core}:followers:", "<uid>", "ZSET", "user id -> when (ms)", CONTACTS),
    Key("request", "{core}:request:", "<key>", "STRING", "`<fingerprint> <position or id>` of a write; expires", KEPT),
    Key("revoked", "{core}:revoked:", "<uid>:<jti>", "STRING", "a revoked token without session; expires", TOKENS),
    Key(
        "sessions",
        "{core}:sessions:",
        "<uid>",
        "HASH",
        "session id -> its times, secrets (SHA-256), scopes, agent",
        CAPPED,
    ),
    Key("ticket", "{core}:ticket:", "<sha256>", "STRING", "the token claims of an unused ticket; expires", TICKETS),
    Key("sign_in", "{core}:sign_in:", "<sha256>", "STRING", "user id, scopes of a sign-in code; expires", TOKENS),
    Key("protected", "{core}:protected", "", "SET", "ids of the protected users; also in each user's hash", USERS),
    Key("suspended", "{core}:suspended", "", "ZSET", "user id -> when (ms); also in each user's hash", USERS),
    Key("gone", "{core}:gone", "", "ZSET", "deleted users whom the log may still show: user id -> when (ms)", LOG),
    Key("unswept", "{core}:unswept", "", "ZSET", "deleted users of whom something may be left -> when (ms)", USERS),
    Key("due", "{core}:due", "", "ZSET", "job id -> due time (ms), or the end of its lease", WRITES),
    Key("parked", "{core}:parked", "", "ZSET", "jobs that failed too often: job id -> when (ms)", WRITES),
    Key("job", "{core}:job:", "<id>", "HASH", "a job: mode, fence, progress, failures, versions, subject", WRITES),
    Key("leases", "{core}:leases", "", "HASH", "leases of the repair and of the loop over idle home timelines", ONE),
    Key("expiry", "{core}:expiry", "", "HASH", "the expiry of old statuses: lease, progress, last failure", ONE),
    Key("expired", "{core}:expired", "", "ZSET", "what left by age and the log still shows: id -> when (ms)", LOG),
    Key("edited", "{core}:edited", "", "ZSET", "statuses whose edit the log still has -> id of their last edit", LOG),
    Key("mentions", "{core}:mentions:", "<uid>", "ZSET", "statuses that mention a user: id scored by itself", TEXTS),
    Key("tag", "{core}:tag:", "<folded tag>", "ZSET", "status id scored by itself", TEXTS),
    Key("replies", "{core}:replies:", "<status id>", "ZSET", "direct replies: status id scored by itself", TEXTS),
    Key("thread", "{core}:thread:", "<root id>", "ZSET", "a conversation: status id scored by itself", TEXTS),
    Key("reposts", "{core}:reposts:", "<status id>", "ZSET", "reposts and quotes: status id scored by itself", TEXTS),
    Key("likes", "{core}:likes:", "<status id>", "ZSET", "users who like a status: user id -> when (ms)", WRITES),
    Key("liked", "{core}:liked:", "<uid>", "ZSET", "statuses that a user likes: status id -> when (ms)", WRITES),
    Key("favorites", "{core}:favorites:", "<uid>", "ZSET", "favorites of a user: status id -> when (ms)", WRITES),
    Key("comments", "{core}:comments:", "<status id>", "ZSET", "comment id scored by itself", TEXTS),
    Key("comment", "{core}:comment:", "<id>", "HASH", "uid status audience `json`, whom it mentions", TEXTS),
    Key("notices", "{core}:notices:", "<uid>", "ZSET", "`<kind>:<source uid>:<subject>` -> notification id", CAPPED),
    Key("asks", "{core}:asks:", "<uid>", "ZSET", "requests to follow a user: requester id -> when (ms)", CONTACTS),
    Key("asked", "{core}:asked:", "<uid>", "ZSET", "follow requests of a user: target id -> when (ms)", CONTACTS),
    Key("blocks", "{core}:blocks:", "<uid>", "ZSET", "users that a user blocks: user id -> when (ms)", WRITES),
    Key("blockers", "{core}:blockers:", "<uid>", "ZSET", "users who block a user: user id -> when (ms)", WRITES),
    Key("mutes", "{core}:mutes:", "<uid>", "ZSET", "users that a user mutes: user id -> when (ms)", WRITES),
    Key("list", "{core}:list:", "<id>", "HASH", "id uid private members created(ms), texts as JSON", CAPPED),
    Key("lists", "{core}:lists:", "<uid>", "ZSET", "lists of a user: list id scored by itself", CAPPED),
    Key("members", "{core}:members:", "<list id>", "ZSET", "user id -> when added (ms)", CONTACTS),
    Key("listed", "{core}:listed:", "<uid>", "ZSET", "lists with a user as member: list id -> when (ms)", CONTACTS),
    Key("group", "{core}:group:", "<id>", "HASH", "id uid kind members created(ms), texts as JSON", CAPPED),
    Key("groups", "{core}:groups:", "<uid>", "ZSET", "groups with a user as member: group id -> when (ms)", CAPPED),
    Key("ended", "{core}:ended:", "<uid>", "ZSET", "ended follows, memberships: `<id>-<begin>` -> end (ms)", CAPPED),
    Key(
        "invitations",
        "{core}:invitations:",
        "<uid>",
        "ZSET",
        "groups to which a user is invited: group id -> when (ms)",
        CAPPED,
    ),
    Key("invited", "{core}:invited:", "<group id>", "ZSET", "users invited to a group: user id -> when (ms)", CONTACTS),
    Key("joined", "{core}:joined:", "<group id>", "ZSET", "members: user id -> when joined (ms)", CONTACTS),
    Key("grouped", "{core}:grouped:", "<group id>", "ZSET", "timeline of a group: status id scored by itself", CAPPED),
    Key("talk", "{core}:talk:", "<id>", "HASH", "uid people created(ms), name as JSON", TALKS),
    Key("talks", "{core}:talks:", "<uid>", "ZSET", "talks of a user: id -> id of its last message, or talk id", TALKS),
    Key("talk_requests", "{core}:talk_requests:", "<uid>", "ZSET", "talks of strangers: id -> as in `talks`", TALKS),
    Key("strangers", "{core}:strangers:", "<uid>", "ZSET", "users with an unanswered talk request -> talk id", TALKS),
    Key("pair", "{core}:pair:", "<uid>:<uid>", "STRING", "the talk of two users, the lower id first", TALKS),
    Key("marks", "{core}:marks:", "<talk id>", "HASH", "user id -> id of the last message read", TALKS),
    Key("messages", "{core}:messages:", "<talk id>", "ZSET", "message id scored by itself", TEXTS),
    Key("message", "{core}:message:", "<id>", "HASH", "talk uid `json`", TEXTS),
    Key("reports", "{core}:reports", "", "ZSET", "open reports: report id scored by itself", REPORTS),
    Key("decided", "{core}:decided", "", "ZSET", "decided reports: report id scored by itself", REPORTS),
    Key("report", "{core}:report:", "<id>", "HASH", "uid user status reason note posted(ms), decision", REPORTS),
    Key("rules", "{core}:rules:", "<uid>", "HASH", "rule id -> JSON: id, rule, tag, created", CAPPED),
    Key("removed_rules", "{core}:removed_rules:", "<uid>", "ZSET", "removed rule as JSON -> id of its removal", CAPPED),
    Key(
        "subscriptions",
        "{core}:subscriptions:",
        "<uid>",
        "HASH",
        "`<name>` -> cursor, times, reader; `<name> parameters`, `<name> parts` -> JSON; more of a webhook; expires",
        CAPPED,
    ),
    Key("webhooks", "{core}:webhooks", "", "ZSET", "`<uid> <name>` of a webhook -> when it may be claimed", CAPPED),
    Key("deliverers", "{core}:deliverers", "", "ZSET", "a process that delivers webhooks -> its last claim (ms)", ONE),
    Key("failing", "{core}:failing", "", "ZSET", "`<uid> <name>` of a webhook that fails -> since when (ms)", CAPPED),
    Key("unacked", "{core}:unacked", "", "ZSET", "`<uid> <name>` of a subscription -> time of its cursor (ms)", LOG),
    Key("subjects", "{core}:subjects", "", "HASH", "id of a user at another issuer, and foreign id -> user id", USERS),
    Key("foreign", "{core}:foreign", "", "HASH", "foreign id -> user id, if `ingest_subjects` is off", OPERATOR),
    Key("ingested", "{core}:ingested", "", "HASH", "`<op>:<id>` of an ingested line -> position and own id", OPERATOR),
    Key("audit", "{core}:audit", "", "ZSET", "deeds of administrators: id scored by itself; capped", CAPPED),
    Key("deeds", "{core}:deeds", "", "HASH", "deeds of administrators: id -> JSON", CAPPED),
    Key("filed", "{core}:filed", "", "HASH", "`<uid>:u<user>` or `<uid>:s<status>` -> the open report of it", REPORTS),
)
"""Keys of the truth. They cannot be rebuilt, and they are on one shard."""

DERIVED_KEYS: tuple[Key, ...] = (
    Key("home", "home:", "{<uid>}", "ZSET", "home timeline: status id scored by itself; capped", USERS),
    Key("timeline", "timeline:", "{<list id>}", "ZSET", "list timeline: status id scored by itself; capped", CAPPED),
    Key("rates", "rates:", "{<subject>}:<limit>", "STRING", "uses of a limit in its window; expires with it", RATES),
    Key(
        "streams",
        "streams:",
        "{<uid>}",
        "ZSET",
        "open streams of a user: `<connection> <process> <scopes>` -> when (ms)",
        STREAMS,
    ),
    Key("processes", "processes:", "{all}", "ZSET", "server processes: id -> end of its lease (ms)", ONE),
    Key("samples", "samples:", "{<server>}", "ZSET", "figures of a server's last hour -> time (s); expires", SERVERS),
    Key("answers", "answers:", "{<uid>}<question>}", "LIST", "a user's streams, for a process; expires", STREAMS),
)
"""Keys of derived data. They can be rebuilt from the truth, and they are on any shard."""

ALL_KEYS = CORE_KEYS + DERIVED_KEYS

_PREFIX_BY_NAME = {key.name: key.prefix for key in ALL_KEYS}
_NAME_BY_PREFIX = {key.prefix: key.name for key in ALL_KEYS if key.tail}

META = _PREFIX_BY_NAME["meta"]
NEVER = _PREFIX_BY_NAME["never"]
"""A key that is never written. Each script declares it."""
CONFIRMED = _PREFIX_BY_NAME["confirmed"]
LOG = _PREFIX_BY_NAME["log"]
LOGINS = _PREFIX_BY_NAME["logins"]
EMAILS = _PREFIX_BY_NAME["emails"]
NAMES = _PREFIX_BY_NAME["names"]
UNACKED = _PREFIX_BY_NAME["unacked"]
PROCESSES = "processes:{all}"

NO_USER = b"0"
"""Stands in :data:`LOGINS` for the user of a deleted account: the login stays taken, and finds nobody."""


def key_for(name: str, *parts: str) -> str:
    """Return the Redis key of the table row ``name`` for these ids, for example ``key_for("likes", "42")``."""
    return _PREFIX_BY_NAME[name] + ":".join(parts)


def parse(key: str) -> tuple[str, str]:
    """Split a Redis key into row name and id. Both are empty if the key has no id or is not in the table of keys."""
    tag_length = len("{core}:") if key.startswith("{core}:") else 0
    prefix = key[: key.find(":", tag_length) + 1]
    if prefix not in _NAME_BY_PREFIX:
        return "", ""
    return _NAME_BY_PREFIX[prefix], key.removeprefix(prefix).strip("{}")


def home_timeline(uid: str) -> str:
    """Return the Redis key of a user's home timeline."""
    return f"{_PREFIX_BY_NAME['home']}{{{uid}}}"


def list_timeline(list_id: str) -> str:
    """Return the Redis key of the timeline of a list (of users)."""
    return f"{_PREFIX_BY_NAME['timeline']}{{{list_id}}}"


def rate_counter(limit_name: str, subject: str) -> str:
    """Return the Redis key that counts the uses of a rate limit by a subject, such as a user."""
    return f"{_PREFIX_BY_NAME['rates']}{{{subject}}}:{limit_name}"


def open_streams(uid: str) -> str:
    """Return the Redis key of a user's open streams."""
    return f"{_PREFIX_BY_NAME['streams']}{{{uid}}}"


def operation_samples(server: str) -> str:
    """Return the Redis key of the samples of a server."""
    return f"{_PREFIX_BY_NAME['samples']}{{{server}}}"


def stream_answers(question: str) -> str:
    """Return the Redis key of the answers to a question about a user's streams.

    A question is ``<uid>}<process>-<random>``: the brace ends the hash tag.
    """
    return f"{_PREFIX_BY_NAME['answers']}{{{question}}}"


def lua_key_names() -> dict[str, str]:
    """Return the prefix of each key of the truth as a Lua string, by its name in scripts, such as ``KEY.status``."""
    return {f"KEY.{key.name}": f"'{key.prefix}'" for key in CORE_KEYS}
