"""The status on which ``POST /v1/rules/explain`` tries a rule: a posted one, or one that the client makes up."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from filters.event import Event
from stream_server.errors import NotFound
from stream_server.events.content import AuthorSnapshot, EntryFacts
from stream_server.events.position import EPOCH_MS
from stream_server.events.status_json import make_trial_status, trial_event
from stream_server.store.store import Store
from stream_server.web.api.statuses import NewStatus
from stream_server.web.http.fields import MAX_BIO_CHARS, Id, Login, NonNegativeInt

JSON_NULL = msgspec.Raw(b"null")


class TrialAuthor(msgspec.Struct, forbid_unknown_fields=True):
    """The author of a made-up status, on which a client tries a rule."""

    id: Id = "0"
    login: Login = "nobody"
    bio: Annotated[str, Meta(max_length=MAX_BIO_CHARS)] = ""
    followers: NonNegativeInt = 0
    following: NonNegativeInt = 0
    posts: NonNegativeInt = 0


class TrialStatus(NewStatus, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A made-up status, on which a client tries a rule. The server does not post it."""

    author: TrialAuthor | None = None


class _StatusSummary(msgspec.Struct):
    """The members of a posted status's JSON that are needed to try a rule on it."""

    id: str
    uid: str
    login: str
    message: str
    conversation: str | None = None
    in_reply_to_uid: str | None = None
    original: msgspec.Raw = JSON_NULL


async def load_trial_event(store: Store, viewer: str, status: str | TrialStatus) -> Event:
    """Return the event that filters see for ``status``, which is a made-up status or the id of a posted one.

    Raises NotFound if the viewer cannot see the posted status, or a status that the made-up one answers or reposts.
    """
    if not isinstance(status, str):
        return await _build_trial_event(store, viewer, status)
    try:
        posted = await store.statuses.get(viewer, status)
    except NotFound as error:
        raise NotFound(error.message, param="status") from None
    return trial_event(posted, await _load_facts(store, viewer, _summarize(posted)))


async def _load_facts(store: Store, viewer: str, summary: _StatusSummary) -> EntryFacts:
    """Return the author of a posted status and the login of the user whom it answers, as they were when it was posted.

    If the log no longer has the status, return the present author and login.
    """
    status_number = int(summary.id)
    entry = (await store.log.look_up((status_number >> 12) + EPOCH_MS, status_number & 4095)).entry
    if entry is not None and entry.facts.author is not None:
        return entry.facts
    ids = [uid for uid in (summary.uid, summary.in_reply_to_uid) if uid is not None]
    users = [msgspec.json.decode(user, type=AuthorSnapshot) for user in await store.users.get_many(viewer, ids)]
    users_by_id = {user.id: user for user in users}
    author, parent = users_by_id.get(summary.uid), users_by_id.get(summary.in_reply_to_uid or "")
    return EntryFacts(author=author, reply_to_login=None if parent is None else parent.login)


async def _build_trial_event(store: Store, viewer: str, trial: TrialStatus) -> Event:
    """Return a made-up status's event. Raises NotFound if the viewer cannot see a status that it answers or reposts."""
    ids = {status_id for status_id in (trial.in_reply_to, trial.origin) if status_id is not None}
    statuses = {_summarize(status).id: status for status in await store.statuses.get_many(viewer, [*ids])}
    shown = ("message", "location", "place", "lang", "media", "meta", "in_reply_to", "origin")  # filters can see these
    members = {name: value for name in shown if (value := getattr(trial, name)) is not None}
    if trial.author is not None:
        members |= {"uid": trial.author.id, "login": trial.author.login}
    parent_json = _referenced_status(statuses, trial.in_reply_to, "in_reply_to")
    parent = None if parent_json is None else _summarize(parent_json)
    if parent is not None:
        members |= {"in_reply_to_uid": parent.uid, "conversation": parent.conversation}
    original = _referenced_status(statuses, trial.origin, "origin")
    if original is not None:  # of a repost, its own original
        summary = _summarize(original)
        is_repost = not summary.message and summary.original != JSON_NULL
        members["original"] = msgspec.Raw(bytes(summary.original) if is_repost else original)
    author = None if trial.author is None else AuthorSnapshot(**msgspec.structs.asdict(trial.author))
    facts = EntryFacts(author=author, reply_to_login=None if parent is None else parent.login)
    return trial_event(make_trial_status(members, store.detect_language), facts)


def _summarize(status: bytes) -> _StatusSummary:
    return msgspec.json.decode(status, type=_StatusSummary)


def _referenced_status(statuses: Mapping[str, bytes], status_id: str | None, param: str) -> bytes | None:
    """Return the status with this id, or None for None. Raises NotFound, naming ``param``, for an unknown id."""
    if status_id is not None and status_id not in statuses:
        raise NotFound("there is no such status", param=f"status.{param}")
    return None if status_id is None else statuses[status_id]
