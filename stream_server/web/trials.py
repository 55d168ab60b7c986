"""The status that a rule is tried on: one that was posted, or one that is made up."""

from collections.abc import Mapping

import msgspec

from filters.event import Event
from stream_server.errors import NotFound
from stream_server.events import EPOCH_MS
from stream_server.store.store import Store
from stream_server.trial import event, made_up
from stream_server.view import Facts, Person
from stream_server.web.shapes.rules import Author, TrialStatus

MEMBERS = ("message", "location", "place", "lang", "media", "in_reply_to", "origin")
"""What a status that is made up says of itself."""

NULL = msgspec.Raw(b"null")


class _Said(msgspec.Struct):
    """As much as is looked at of a status that is there."""

    id: str
    uid: str
    login: str
    message: str
    conversation: str | None = None
    in_reply_to_uid: str | None = None
    original: msgspec.Raw = NULL


async def seen(store: Store, viewer: str, status: str | TrialStatus) -> Event:
    """A status by its id, or itself, as filters see it; raises NotFound for what the viewer may not see of it."""
    return await (_posted(store, viewer, status) if isinstance(status, str) else _made(store, viewer, status))


async def _posted(store: Store, viewer: str, status_id: str) -> Event:
    """A status as the viewer may see it, by its author as at posting; raises NotFound."""
    try:
        status = await store.statuses.get(viewer, status_id)
    except NotFound as error:
        raise NotFound(error.message, param="status") from None
    said = msgspec.json.decode(status, type=_Said)
    return event(status, await _facts(store, viewer, said))


async def _facts(store: Store, viewer: str, said: _Said) -> Facts:
    """What the log knows of it; where that goes not so far back, its author as by now."""
    number = int(said.id)
    found = (await store.log.locate((number >> 12) + EPOCH_MS, number & 4095)).found
    if found is not None and found.facts.author is not None:
        return found.facts
    people = await store.users.many(viewer, [one for one in (said.uid, said.in_reply_to_uid) if one is not None])
    known = {one.id: one for one in (msgspec.json.decode(person, type=Person) for person in people)}
    answered = known.get(said.in_reply_to_uid or "")
    return Facts(author=known.get(said.uid), reply_to_login=None if answered is None else answered.login)


async def _made(store: Store, viewer: str, trial: TrialStatus) -> Event:
    """A status that nobody posted, beside those that it answers and repeats, which the viewer has to see."""
    named = {one for one in (trial.in_reply_to, trial.origin) if one is not None}
    there = await store.statuses.many(viewer, [*named])
    around = {msgspec.json.decode(one, type=_Said).id: one for one in there}
    members = {name: value for name in MEMBERS if (value := getattr(trial, name)) is not None}
    if trial.author is not None:
        members |= {"uid": trial.author.id, "login": trial.author.login}
    answered = _around(around, trial.in_reply_to, "in_reply_to")
    parent = None if answered is None else msgspec.json.decode(answered, type=_Said)
    if parent is not None:
        members |= {"in_reply_to_uid": parent.uid, "conversation": parent.conversation}
    original = _around(around, trial.origin, "origin")
    if original is not None:
        members["original"] = msgspec.Raw(_root(original))
    login = None if parent is None else parent.login
    return event(made_up(members, store.language), Facts(author=_person(trial.author), reply_to_login=login))


def _around(there: Mapping[str, bytes], status_id: str | None, param: str) -> bytes | None:
    if status_id is not None and status_id not in there:
        raise NotFound("there is no such status", param=f"status.{param}")
    return None if status_id is None else there[status_id]


def _root(status: bytes) -> bytes:
    """What is really repeated: a repost without words is none itself."""
    said = msgspec.json.decode(status, type=_Said)
    return status if said.message or said.original == NULL else bytes(said.original)


def _person(author: Author | None) -> Person | None:
    return None if author is None else Person(**msgspec.structs.asdict(author))
