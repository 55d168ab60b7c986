"""Rules for the data in Redis after any concurrent writes. Each rule yields what breaks it."""

from collections.abc import Iterable, Iterator

from stream_server.store import keys
from tests.property.model.journal import Journal
from tests.property.model.snapshot import Snapshot

COUNTERS = (
    ("user", "followers", "followers"), ("user", "following", "following"), ("user", "posts", "profile"),
    ("status", "likes", "likes"), ("status", "comments", "comments"), ("status", "reposts", "reposts"),
    ("list", "members", "members"), ("group", "members", "joined"),
)  # fmt: skip
"""The hash, its field, and the set that it counts."""

MIRRORS = (
    ("following", "followers"), ("blocks", "blockers"), ("asks", "asked"), ("likes", "liked"),
    ("members", "listed"), ("joined", "groups"),
)  # fmt: skip
"""Sets that hold the same relation from both sides."""

SUBJECTS = {
    "user": (
        "profile", "following", "followers", "asks", "asked", "blocks", "blockers", "mutes", "mentions", "liked",
        "favorites", "notices", "lists", "listed", "groups", "talks", "home",
    ),
    "status": ("likes", "comments", "reposts", "replies"),
    "list": ("members", "timeline"),
    "group": ("joined", "grouped"),
    "talk": ("marks", "messages"),
}  # fmt: skip
"""The keys that may exist only with their subject."""

EVENTS = (
    ("follow", "following"), ("request", "asked"), ("block", "blocks"), ("mute", "mutes"),
    ("list_add", "members"), ("group_join", "joined"),
)  # fmt: skip
"""The events that add members to a set."""

MADE = (
    ("post", "status"), ("list_create", "list"), ("group_create", "group"), ("suspend", "suspended"),
)  # fmt: skip
"""The events that create a hash, or a member of the only set of its kind."""

PASSING = {"due", "parked", "job", "unswept"}
"""Keys that must be gone when the jobs are done."""


def complaints(held: Snapshot, journal: Journal) -> list[str]:
    """All faults of the data. The writers and the jobs must be finished."""
    return [
        *(f"a key of no row: {key}" for key in held.strange),
        *(f"{name} is left" for name in PASSING & held.names()),
        *_counters(held), *_mirrors(held), *_orphans(held), *_logins(held), *_log(held, journal), *_derived(held),
    ]  # fmt: skip


def _counters(held: Snapshot) -> Iterator[str]:
    """Counters that differ from the sizes of their sets."""
    for noun, field, counted in COUNTERS:
        for subject, fields in held.of(noun).items():
            size = len(held.of(counted).get(subject, ()))
            if int(fields.get(field, 0)) != size:
                yield f"{noun} {subject} says {fields.get(field)} {field}, there are {size}"
    for sid, fields in held.of("status").items():
        reposts = {one for one, other in held.of("status").items() if other.get("origin") == sid}
        if set(held.of("reposts").get(sid, ())) != reposts:
            yield f"status {sid} is reposted by {reposts}, its set says otherwise"
        if fields["uid"] not in held.of("user"):
            yield f"status {sid} has no author"


def _mirrors(held: Snapshot) -> Iterator[str]:
    for one, other in MIRRORS:
        if odd := held.pairs(one) ^ held.turned(other):
            yield f"{one} and {other} differ by {odd}"


def _orphans(held: Snapshot) -> Iterator[str]:
    """Keys without their subject."""
    for noun, names in SUBJECTS.items():
        for name in names:
            yield from (f"{name} of {subject}, which is no {noun}" for subject in held.of(name).keys() - held.of(noun))
    for cid, fields in held.of("comment").items():
        if cid not in held.of("comments").get(fields["status"], ()):
            yield f"comment {cid} has no status"
    for pair in held.of("pair"):
        if not set(pair.split(":")) <= held.of("user").keys():
            yield f"a talk of {pair}, who are not there"


def _logins(held: Snapshot) -> Iterator[str]:
    """Logins without a user, and users without a login."""
    logins = {login: uid for login, uid in held.of("logins").get("", {}).items() if uid != keys.NO_USER.decode()}
    users = {fields["login"].lower(): uid for uid, fields in held.of("user").items()}
    if logins != users:
        yield f"logins {logins}, users {users}"


def _log(held: Snapshot, journal: Journal) -> Iterator[str]:
    """Events without their data, and data without its event."""
    data: dict[str, set[tuple[str, ...]]] = {kind: set(held.pairs(name)) for kind, name in EVENTS}
    for kind, noun in MADE:
        data[kind] = _singles(held.of("suspended").get("", ()) if noun == "suspended" else held.of(noun))
    data["protect"] = _singles(held.of("protected").get("", ()))
    data["like"] = set(held.turned("likes"))
    data["comment"] = {(cid, fields["status"]) for cid, fields in held.of("comment").items()}
    for kind, members in data.items():
        if odd := members ^ journal.sets.get(kind, set()):
            yield f"log and data differ about {kind}: {odd}"
    flagged = {(uid,) for uid, fields in held.of("user").items() if fields.get("protected") == "1"}
    if flagged != data["protect"]:
        yield f"protected are {flagged} by their hashes, {data['protect']} by the set"


def _singles(ids: Iterable[str]) -> set[tuple[str, ...]]:
    return {(one,) for one in ids}


def _derived(held: Snapshot) -> Iterator[str]:
    """Timelines with statuses of other authors."""
    for uid, home in held.of("home").items():
        authors = {uid, *held.of("following").get(uid, ())}
        yield from (f"home of {uid} holds {sid}" for sid in home if not _by(held, sid, authors))
    for list_id, timeline in held.of("timeline").items():
        authors = set(held.of("members").get(list_id, ()))
        yield from (f"timeline of {list_id} holds {sid}" for sid in timeline if not _by(held, sid, authors))


def _by(held: Snapshot, sid: str, authors: set[str]) -> bool:
    """Whether the status exists outside of groups and is by one of these authors."""
    status = held.of("status").get(sid)
    return status is not None and status["uid"] in authors and not status.get("group")


def missing(held: Snapshot, cap: int) -> Iterator[str]:
    """Timelines that are not the newest ``cap`` statuses of their authors."""
    for name, owners, whose in (("home", "user", "following"), ("timeline", "list", "members")):
        for owner in held.of(owners):
            authors = {*held.of(whose).get(owner, ()), *((owner,) if name == "home" else ())}
            due = sorted((int(sid) for sid in held.of("status") if _by(held, sid, authors)), reverse=True)[:cap]
            if set(map(str, due)) != set(held.of(name).get(owner, ())):
                yield f"{name} of {owner} holds {sorted(held.of(name).get(owner, ()))}, due are {sorted(due)}"


def too_long(held: Snapshot, cap: int) -> Iterator[str]:
    for name in ("home", "timeline"):
        yield from (f"{name} of {owner} holds {len(ids)}" for owner, ids in held.of(name).items() if len(ids) > cap)
