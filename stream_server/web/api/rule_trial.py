"""The status that a rule is tried on: one that was posted, or one that is made up."""

from collections.abc import Mapping

import msgspec

from filters.event import Event
from stream_server.errors import NotFound
from stream_server.events.entry_fields import AuthorSnapshot, EntryFacts
from stream_server.events.position import EPOCH_MS
from stream_server.events.trial_status import make_trial_status, trial_event
from stream_server.store.store import Store
from stream_server.web.api.rules_shapes import TrialAuthor, TrialStatus

TRIAL_MEMBERS = ("message", "location", "place", "lang", "media", "in_reply_to", "origin")
"""What a status that is made up says of itself."""

JSON_NULL = msgspec.Raw(b"null")


class _StatusSummary(msgspec.Struct):
    """As much as is looked at of a status that is there."""

    id: str
    uid: str
    login: str
    message: str
    conversation: str | None = None
    in_reply_to_uid: str | None = None
    original: msgspec.Raw = JSON_NULL


async def load_trial_event(store: Store, viewer: str, status: str | TrialStatus) -> Event:
    """A status by its id, or itself, as filters see it; raises NotFound for what the viewer may not see of it."""
    return await (
        _load_posted_event(store, viewer, status)
        if isinstance(status, str)
        else _build_trial_event(store, viewer, status)
    )


async def _load_posted_event(store: Store, viewer: str, status_id: str) -> Event:
    """A status as the viewer may see it, by its author as at posting; raises NotFound."""
    try:
        status = await store.statuses.get(viewer, status_id)
    except NotFound as error:
        raise NotFound(error.message, param="status") from None
    said = msgspec.json.decode(status, type=_StatusSummary)
    return trial_event(status, await _load_facts(store, viewer, said))


async def _load_facts(store: Store, viewer: str, summary: _StatusSummary) -> EntryFacts:
    """What the log knows of it; where that goes not so far back, its author as by now."""
    number = int(summary.id)
    found = (await store.log.look_up((number >> 12) + EPOCH_MS, number & 4095)).entry
    if found is not None and found.facts.author is not None:
        return found.facts
    people = await store.users.get_many(
        viewer, [one for one in (summary.uid, summary.in_reply_to_uid) if one is not None]
    )
    known = {one.id: one for one in (msgspec.json.decode(person, type=AuthorSnapshot) for person in people)}
    answered = known.get(summary.in_reply_to_uid or "")
    return EntryFacts(author=known.get(summary.uid), reply_to_login=None if answered is None else answered.login)


async def _build_trial_event(store: Store, viewer: str, trial: TrialStatus) -> Event:
    """A status that nobody posted, beside those that it answers and repeats, which the viewer has to see."""
    named = {one for one in (trial.in_reply_to, trial.origin) if one is not None}
    there = await store.statuses.get_many(viewer, [*named])
    around = {msgspec.json.decode(one, type=_StatusSummary).id: one for one in there}
    members = {name: value for name in TRIAL_MEMBERS if (value := getattr(trial, name)) is not None}
    if trial.author is not None:
        members |= {"uid": trial.author.id, "login": trial.author.login}
    answered = _referenced_status(around, trial.in_reply_to, "in_reply_to")
    parent = None if answered is None else msgspec.json.decode(answered, type=_StatusSummary)
    if parent is not None:
        members |= {"in_reply_to_uid": parent.uid, "conversation": parent.conversation}
    original = _referenced_status(around, trial.origin, "origin")
    if original is not None:
        members["original"] = msgspec.Raw(_reposted_status(original))
    login = None if parent is None else parent.login
    return trial_event(
        make_trial_status(members, store.detect_language),
        EntryFacts(author=_to_person(trial.author), reply_to_login=login),
    )


def _referenced_status(found: Mapping[str, bytes], status_id: str | None, param: str) -> bytes | None:
    if status_id is not None and status_id not in found:
        raise NotFound("there is no such status", param=f"status.{param}")
    return None if status_id is None else found[status_id]


def _reposted_status(status: bytes) -> bytes:
    """What is really repeated: a repost without words is none itself."""
    said = msgspec.json.decode(status, type=_StatusSummary)
    return status if said.message or said.original == JSON_NULL else bytes(said.original)


def _to_person(author: TrialAuthor | None) -> AuthorSnapshot | None:
    return None if author is None else AuthorSnapshot(**msgspec.structs.asdict(author))
