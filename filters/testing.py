"""The contract test of filters: every filter passes it, the built-in ones and third parties'.

Call :func:`check_filter` in a test of your own; it raises AssertionError with a sentence that says what is wrong.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable

from filters.base import Filter, Mark, sound_leads
from filters.boxes import Boxes
from filters.entities import extract
from filters.error import ParameterError
from filters.event import Event
from filters.grid import Box
from filters.registry import RESERVED, ROLES

GARBAGE = (
    "",
    " ",
    ",",
    ",,,",
    "\x00",
    "\ud800",
    "nan",
    "-1",
    "1e999",
    "NaN,inf,-inf,0",
    "١٢٣",
    "true,true",
    "%s{0}",
    "x" * 5_000,
    "1," * 20_000,
    "🏳️‍🌈" * 100,
)
"""Values that parse to a filter or to a ParameterError, and to nothing else."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CODES = ("invalid_parameter", "too_many")


def example_events() -> list[Event]:
    """One or more events of every shape: with text in several scripts, places, people, and nothing at all."""
    texts = (
        "",
        "hello world",
        "@alice's #Tag costs $TWTR, see http://www.example.com/a_b?c=d",
        "Tokyoの@bobに到着 touché 😍",
    )
    posts = [
        Event(
            "post", author="1", people=frozenset({"1"}), status_id=str(n), text=text, entities=extract(text), lang="en"
        )
        for n, text in enumerate(texts, start=1)
    ]
    return [
        *posts,
        Event("post", author="2", people=frozenset({"2", "1"}), status_id="12345", text="hello", lang="pt-BR"),
        Event("post", author="2", people=frozenset({"2"}), status_id="99", point=(-73.5, 40.5)),
        Event("post", author="3", people=frozenset({"3"}), status_id="98", box=(170.0, -20.0, -170.0, -10.0)),
        Event("post", author="3", people=frozenset({"3"}), status_id="97", box=(-180.0, -90.0, 180.0, 90.0)),
        Event("delete", author="1", people=frozenset({"1"}), status_id="2", text="hello world", lang="en"),
        Event("follow", author="1", people=frozenset({"1", "2"}), sampled=False),
        Event("protect", author="9", people=frozenset({"9"}), sampled=False, public=False),
    ]


def check_filter(
    filter_class: type[Filter], good: Iterable[str], bad: Iterable[str] = (), events: Iterable[Event] | None = None
) -> None:
    """Check all that the contract of :class:`filters.base.Filter` promises.

    ``good`` are values that a client may write, ``bad`` ones that must be refused; ``events`` is what the parsed
    filters are tried on, :func:`example_events` if absent. Give events that match, or there is little to check.
    """
    check_class(filter_class)
    check_refusals(filter_class, tuple(bad))
    tried = example_events() if events is None else list(events)
    for value in good:
        parsed = filter_class.parse(value)
        check_identity(parsed, filter_class.parse(value))
        check_keys(parsed)
        for event in tried:
            check_match(parsed, event)
            check_reasons(parsed, event)


def check_class(filter_class: type[Filter]) -> None:
    """What the class says of itself is complete."""
    name = filter_class.name
    assert _NAME.fullmatch(name), f"{filter_class.__name__}.name is no parameter's name: {name!r}"
    assert name not in RESERVED, f"{filter_class.__name__}.name is taken, it would never be reached: {name!r}"
    assert filter_class.role in ROLES, f"{name}: role is {filter_class.role!r}, not one of {ROLES}"
    assert filter_class.help.strip(), f"{name}: help is empty"
    assert all(isinstance(scope, str) for scope in filter_class.scopes), f"{name}: scopes are not strings"
    assert filter_class.name not in filter_class.needs, f"{name} needs itself"


def check_refusals(filter_class: type[Filter], bad: Collection[str]) -> None:
    """Bad values are refused by ParameterError naming the parameter, and no value raises anything else."""
    name = filter_class.name
    for value in bad:
        assert _refusal(filter_class, value), f"{name} takes {value[:60]!r}, which it must refuse"
    for value in (*bad, *GARBAGE):
        refusal = _refusal(filter_class, value)
        if refusal is not None:
            assert refusal.param == name, f"{name} blames {refusal.param!r} for {value[:60]!r}"
            assert refusal.code in _CODES, f"{name} refuses {value[:60]!r} as {refusal.code!r}"


def check_identity(parsed: Filter, again: Filter) -> None:
    """Parsing twice gives equal filters that can share their work."""
    name = parsed.name
    assert parsed == again, f"{name}: parsing the same value twice gives unequal filters"
    assert hash(parsed) == hash(again), f"{name}: equal filters have unequal hashes"
    assert parsed.key == again.key, f"{name}: equal filters have unequal keys"


def check_match(parsed: Filter, event: Event) -> None:
    """Matching is a pure yes or no, and neither keys nor clauses say otherwise."""
    matched = parsed.matches(event)
    assert matched is True or matched is False, f"{parsed!r}.matches({event!r}) is {matched!r}, neither True nor False"
    assert parsed.matches(event) is matched, f"{parsed!r} changed its mind about {event!r}"
    keys, clauses = parsed.keys(), parsed.clauses()
    if matched and keys is not None:
        assert keys & event.keys, f"{parsed!r} matches {event!r}, which has none of its keys: the index would miss it"
    if clauses is not None:
        assert keys is not None, f"{parsed!r} has clauses, but no keys"
        exactly = any(clause <= event.keys for clause in clauses)
        assert exactly is matched, f"{parsed!r} and its clauses disagree about {event!r}"
    check_leads(parsed, event)


def check_keys(parsed: Filter) -> None:
    """Keys are strings, an index can hold the leads, and both are the same each time."""
    keys = parsed.keys()
    if keys is not None:
        assert isinstance(keys, frozenset), f"{parsed!r}.keys() is {keys!r}, no frozenset"
        assert all(isinstance(key, str) for key in keys), f"{parsed!r} has keys that are no strings: {keys!r}"
    assert parsed.keys() == keys, f"{parsed!r} changed its keys from one call to the next"
    assert _said(parsed) == _said(parsed), f"{parsed!r} changed its leads from one call to the next"


def _said(parsed: Filter) -> object:
    """Its leads, whatever they come in."""
    try:
        leads = sound_leads(parsed.leads())
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{parsed!r} has leads that no index can hold: {error}") from error
    return leads and (set(leads.proofs), set(leads.hints), leads.live, set(leads.boxes))


def check_reasons(parsed: Filter, event: Event) -> None:
    """``explain`` and ``matched`` give lists of JSON objects; there are reasons if, and only if, it matches."""
    reasons = _marks(parsed, "explain", parsed.explain, event)
    _marks(parsed, "matched", parsed.matched, event)
    assert all("filter" in mark for mark in reasons), f"{parsed!r}.explain({event!r}) has a reason that names no filter"
    assert bool(reasons) is parsed.matches(event), f"{parsed!r} and its reasons disagree about {event!r}"


def _marks(parsed: Filter, name: str, ask: Callable[[Event], list[Mark]], event: Event) -> list[Mark]:
    said = f"{parsed!r}.{name}({event!r})"
    try:
        marks = ask(event)
    except Exception as error:
        raise AssertionError(f"{said} raised {error!r}") from error
    assert isinstance(marks, list), f"{said} is {marks!r}, no list"
    assert all(isinstance(mark, dict) for mark in marks), f"{said} has an item that is no dict: {marks!r}"
    assert _is_json(marks), f"{said} is no JSON: {marks!r}"
    return marks


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def check_leads(parsed: Filter, event: Event) -> None:
    """Where it leads events to is right: proofs prove, and nothing that matches is missed."""
    leads, matched = parsed.leads(), parsed.matches(event)
    if leads is None:
        return
    proven = any(clause <= event.keys for clause in leads.proofs)
    assert matched or not proven, f"{parsed!r} does not match {event!r}, which has all keys of one of its proofs"
    boxed = _in_one(leads.boxes, event)
    assert matched or not boxed, f"{parsed!r} does not match {event!r}, which lies in one of its boxes"
    hinted = any(clause <= event.keys for clause in leads.hints)
    assert hinted or proven or boxed or not matched, f"{parsed!r} matches {event!r}, which none of its leads finds"
    assert not leads.live or all(len(clause) == 1 for clause in leads.hints), f"{parsed!r}: a live hint has one key"


def _in_one(boxes: Collection[Box], event: Event) -> bool:
    """As the index looks for it."""
    found: set[bool] = set()
    held: Boxes[bool] = Boxes()
    held.add(True, boxes)
    held.find(event, found)
    return bool(found)


def _refusal(filter_class: type[Filter], value: str) -> ParameterError | None:
    try:
        filter_class.parse(value)
    except ParameterError as refusal:
        return refusal
    return None
