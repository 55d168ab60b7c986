"""``/2/tweets/search/stream/rules``: the rules that a user has saved, as clients of v2 add, list and delete them."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import msgspec
from aiohttp import web
from msgspec import Meta

from filters.error import ParameterError
from stream_server.errors import BadRequest
from stream_server.events import Position
from stream_server.store.rules import MOST, Outcome, SavedRule
from stream_server.web import schema
from stream_server.web.answers import encoded
from stream_server.web.body import read_json
from stream_server.web.dialects import v2_answers
from stream_server.web.dialects.v2_answers import Refused
from stream_server.web.dialects.v2_query import query, truth, whole
from stream_server.web.idempotency import request_key
from stream_server.web.keys import CLAIMS, CONFIG, STORE, SUBSCRIPTIONS
from stream_server.web.shapes.rules import Tag, check_tag

BODIES = 16
"""A body may be so many times a write's: a thousand rules of a thousand characters are a megabyte."""


class Add(msgspec.Struct):
    """A rule that is to be; its tag is told with whatever it matches."""

    value: str
    tag: Tag = ""

    def __post_init__(self) -> None:
        check_tag(self.tag)


class Delete(msgspec.Struct):
    """Which rules are no longer to be, by their ids or by their texts; no more than there can be."""

    ids: Annotated[list[str], Meta(max_length=MOST)] = []
    values: Annotated[list[str], Meta(max_length=MOST)] = []


class Change(msgspec.Struct):
    """The body of a POST: one of the two, or nothing at all where all rules are to go."""

    add: Annotated[list[Add], Meta(min_length=1, max_length=MOST)] | None = None
    delete: Delete | None = None


class Asked(NamedTuple):
    """A change, its body as it came, and whether it is only tried."""

    change: Change
    body: bytes
    dry_run: bool
    delete_all: bool


async def listed(request: web.Request) -> web.Response:
    """``GET``: one's rules, the oldest first, all or those with these ids."""
    given = query(request)
    most = whole(given, "max_results", MOST, 1, MOST)
    saved = await _saved(request)
    if "ids" in given:
        ids = frozenset(given["ids"].split(","))
        saved = [one for one in saved if one.id in ids]
    shown, following = v2_answers.page(saved, given.get("pagination_token"), most)
    return encoded(v2_answers.listed(shown, following, _now_ms()))


async def counted(request: web.Request) -> web.Response:
    """``GET …/counts``: how many there are, and may be."""
    fields = query(request).get("rules_count.fields", "").split(",")
    return encoded(v2_answers.counted(request[CLAIMS].sub, len(await _saved(request)), fields))


async def change(request: web.Request) -> web.Response:
    """``POST``: add rules, 201, or delete some, 200; each has an outcome of its own."""
    asked = await _asked(request)
    if asked.change.add is not None:
        return await _add(request, asked, asked.change.add)
    return await _delete(request, asked)


async def _asked(request: web.Request) -> Asked:
    """Exactly one of the three things that can be asked; raises BadRequest."""
    given = query(request)
    dry_run, delete_all = truth(given, "dry_run"), truth(given, "delete_all")
    body = await read_json(request, BODIES * request.app[CONFIG].body_max_bytes) if request.body_exists else b""
    wanted = schema.decode(Change, body) if body else Change()
    if [wanted.add is not None, wanted.delete is not None, delete_all].count(True) != 1:
        raise BadRequest("Exactly one of `add`, `delete` and `delete_all` is needed")
    return Asked(wanted, body, dry_run, delete_all)


async def _add(request: web.Request, asked: Asked, wanted: Sequence[Add]) -> web.Response:
    """What cannot be read is told beside what became of the rest."""
    good, refused = await _read(request, wanted)
    made: list[SavedRule] = []
    if good:
        key = request_key(request, asked.body)
        rules = request.app[STORE].rules
        outcomes = await rules.add(request[CLAIMS].sub, good, key, dry_run=asked.dry_run)
        made, known = _sorted(good, outcomes)
        refused += known
    return encoded(v2_answers.added(made, refused, _now_ms()), status=201)


async def _read(request: web.Request, wanted: Iterable[Add]) -> tuple[list[tuple[str, str]], list[Refused]]:
    """The canonical text and the tag of each rule that is one, and why the others are none."""
    good, refused = [], []
    for one in wanted:
        try:
            good.append((await _canonical(request, one.value), one.tag))
        except ParameterError as error:
            refused.append(Refused(one.value, error.message))
    return good, refused


async def _canonical(request: web.Request, value: str) -> str:
    """The text under which a rule is kept; raises ParameterError. A long one takes milliseconds: others go on then."""
    await asyncio.sleep(0)
    return request.app[SUBSCRIPTIONS].rule(value).text


def _sorted(asked: Sequence[tuple[str, str]], outcomes: Sequence[Outcome]) -> tuple[list[SavedRule], list[Refused]]:
    """The rules that are new, and those that were there; on trial a new one gets an id that it might have had."""
    made, known, now_ms = [], [], _now_ms()
    for place, ((text, tag), outcome) in enumerate(zip(asked, outcomes, strict=True)):
        if outcome.duplicate and outcome.saved is not None:
            known.append(Refused(text, existing=outcome.saved.id))
        else:
            trial = SavedRule(str(Position(now_ms, place, 0).status_number), text, tag)
            made.append(outcome.saved or trial)
    return made, known


async def _delete(request: web.Request, asked: Asked) -> web.Response:
    ids, unknown = await _named(request, asked)
    key = request_key(request, asked.body)
    gone = await request.app[STORE].rules.remove(request[CLAIMS].sub, ids, key, dry_run=asked.dry_run)
    there = frozenset(gone)
    unknown += [("ids", one) for one in ids if one not in there]
    return encoded(v2_answers.deleted(gone, unknown, _now_ms()))


async def _named(request: web.Request, asked: Asked) -> tuple[list[str], list[tuple[str, str]]]:
    """The ids of the rules that are to go, each once, and the texts that no rule has; a text may have several tags."""
    wanted = asked.change.delete or Delete()
    if not asked.delete_all and not wanted.values:
        return list(dict.fromkeys(wanted.ids)), []
    texts = {value: await _kept_as(request, value) for value in wanted.values}
    saved = await _saved(request)
    gone, kept = frozenset(texts.values()), {one.rule for one in saved}
    ids = [*wanted.ids, *(one.id for one in saved if asked.delete_all or one.rule in gone)]
    return list(dict.fromkeys(ids)), [("values", value) for value, text in texts.items() if text not in kept]


async def _kept_as(request: web.Request, value: str) -> str:
    """The text under which a rule would be kept; what is no rule is none of those that are."""
    try:
        return await _canonical(request, value)
    except ParameterError:
        return ""


async def _saved(request: web.Request) -> list[SavedRule]:
    saved, _ = await request.app[STORE].rules.of(request[CLAIMS].sub)
    return saved


def _now_ms() -> int:
    return int(time.time() * 1000)
