"""The contract test of filters: every filter passes it, the built-in ones and third parties'.

Call :func:`check_filter` in a test of your own; it raises AssertionError with a sentence that says what is wrong.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable

from filters.base import Filter, MatchedItem, validate_index_terms
from filters.box_index import BoxIndex
from filters.entities import extract_entities
from filters.error import ParameterError
from filters.event import Event
from filters.grid import Box
from filters.registry import RESERVED_NAMES, ROLES

FUZZ_VALUES = (
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
            "post",
            author="1",
            user_ids=frozenset({"1"}),
            status_id=str(n),
            text=text,
            entities=extract_entities(text),
            lang="en",
        )
        for n, text in enumerate(texts, start=1)
    ]
    return [
        *posts,
        Event("post", author="2", user_ids=frozenset({"2", "1"}), status_id="12345", text="hello", lang="pt-BR"),
        Event("post", author="2", user_ids=frozenset({"2"}), status_id="99", point=(-73.5, 40.5)),
        Event("post", author="3", user_ids=frozenset({"3"}), status_id="98", box=(170.0, -20.0, -170.0, -10.0)),
        Event("post", author="3", user_ids=frozenset({"3"}), status_id="97", box=(-180.0, -90.0, 180.0, 90.0)),
        Event("delete", author="1", user_ids=frozenset({"1"}), status_id="2", text="hello world", lang="en"),
        Event("follow", author="1", user_ids=frozenset({"1", "2"}), is_sampled=False),
        Event("protect", author="9", user_ids=frozenset({"9"}), is_sampled=False, is_public=False),
    ]


def check_filter(
    filter_class: type[Filter],
    valid_values: Iterable[str],
    invalid_values: Iterable[str] = (),
    events: Iterable[Event] | None = None,
) -> None:
    """Check all that the contract of :class:`filters.base.Filter` promises.

    ``valid_values`` are values that a client may write, ``invalid_values`` ones that must be refused; ``events`` is what the parsed
    filters are tried on, :func:`example_events` if absent. Give events that match, or there is little to check.
    """
    check_class(filter_class)
    check_refusals(filter_class, tuple(invalid_values))
    tried = example_events() if events is None else list(events)
    for value in valid_values:
        parsed = filter_class.parse(value)
        check_identity(parsed, filter_class.parse(value))
        check_keys(parsed)
        for event in tried:
            check_match(parsed, event)
            check_explanations(parsed, event)


def check_class(filter_class: type[Filter]) -> None:
    """What the class says of itself is complete."""
    name = filter_class.name
    assert _NAME.fullmatch(name), f"{filter_class.__name__}.name is no parameter's name: {name!r}"
    assert name not in RESERVED_NAMES, f"{filter_class.__name__}.name is taken, it would never be reached: {name!r}"
    assert filter_class.role in ROLES, f"{name}: role is {filter_class.role!r}, not one of {ROLES}"
    assert filter_class.help.strip(), f"{name}: help is empty"
    assert all(isinstance(scope, str) for scope in filter_class.scopes), f"{name}: scopes are not strings"
    assert filter_class.name not in filter_class.requires, f"{name} needs itself"


def check_refusals(filter_class: type[Filter], invalid_values: Collection[str]) -> None:
    """Bad values are refused by ParameterError naming the parameter, and no value raises anything else."""
    name = filter_class.name
    for value in invalid_values:
        assert _parse_refusal(filter_class, value), f"{name} takes {value[:60]!r}, which it must refuse"
    for value in (*invalid_values, *FUZZ_VALUES):
        refusal = _parse_refusal(filter_class, value)
        if refusal is not None:
            assert refusal.param == name, f"{name} blames {refusal.param!r} for {value[:60]!r}"
            assert refusal.code in _CODES, f"{name} refuses {value[:60]!r} as {refusal.code!r}"


def check_identity(parsed: Filter, again: Filter) -> None:
    """Parsing twice gives equal filters that can share their work."""
    name = parsed.name
    assert parsed == again, f"{name}: parsing the same value twice gives unequal filters"
    assert hash(parsed) == hash(again), f"{name}: equal filters have unequal hashes"
    assert parsed.canonical_form == again.canonical_form, f"{name}: equal filters have unequal keys"


def check_match(parsed: Filter, event: Event) -> None:
    """Matching is a pure yes or no, and neither keys nor clauses say otherwise."""
    matched = parsed.matches(event)
    assert matched is True or matched is False, f"{parsed!r}.matches({event!r}) is {matched!r}, neither True nor False"
    assert parsed.matches(event) is matched, f"{parsed!r} changed its mind about {event!r}"
    keys, clauses = parsed.candidate_keys(), parsed.exact_clauses()
    if matched and keys is not None:
        assert keys & event.index_keys, (
            f"{parsed!r} matches {event!r}, which has none of its keys: the index would miss it"
        )
    if clauses is not None:
        assert keys is not None, f"{parsed!r} has clauses, but no keys"
        exactly = any(clause <= event.index_keys for clause in clauses)
        assert exactly is matched, f"{parsed!r} and its clauses disagree about {event!r}"
    check_index_terms(parsed, event)


def check_keys(parsed: Filter) -> None:
    """Keys are strings, an index can hold the leads, and both are the same each time."""
    keys = parsed.candidate_keys()
    if keys is not None:
        assert isinstance(keys, frozenset), f"{parsed!r}.keys() is {keys!r}, no frozenset"
        assert all(isinstance(key, str) for key in keys), f"{parsed!r} has keys that are no strings: {keys!r}"
    assert parsed.candidate_keys() == keys, f"{parsed!r} changed its keys from one call to the next"
    assert _comparable_index_terms(parsed) == _comparable_index_terms(parsed), (
        f"{parsed!r} changed its leads from one call to the next"
    )


def _comparable_index_terms(parsed: Filter) -> object:
    """Its leads, whatever they come in."""
    try:
        leads = validate_index_terms(parsed.index_terms())
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{parsed!r} has leads that no index can hold: {error}") from error
    return leads and (set(leads.exact), set(leads.candidates), leads.dynamic, set(leads.boxes))


def check_explanations(parsed: Filter, event: Event) -> None:
    """``explain`` and ``matched`` give lists of JSON objects; there are reasons if, and only if, it matches."""
    reasons = _checked_items(parsed, "explain", parsed.explain, event)
    _checked_items(parsed, "matched", parsed.matched_items, event)
    assert all("filter" in mark for mark in reasons), f"{parsed!r}.explain({event!r}) has a reason that names no filter"
    assert bool(reasons) is parsed.matches(event), f"{parsed!r} and its reasons disagree about {event!r}"


def _checked_items(
    parsed: Filter, name: str, ask: Callable[[Event], list[MatchedItem]], event: Event
) -> list[MatchedItem]:
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


def check_index_terms(parsed: Filter, event: Event) -> None:
    """Where it leads events to is right: proofs prove, and nothing that matches is missed."""
    leads, matched = parsed.index_terms(), parsed.matches(event)
    if leads is None:
        return
    proven = any(clause <= event.index_keys for clause in leads.exact)
    assert matched or not proven, f"{parsed!r} does not match {event!r}, which has all keys of one of its proofs"
    boxed = _lies_in_boxes(leads.boxes, event)
    assert matched or not boxed, f"{parsed!r} does not match {event!r}, which lies in one of its boxes"
    hinted = any(clause <= event.index_keys for clause in leads.candidates)
    assert hinted or proven or boxed or not matched, f"{parsed!r} matches {event!r}, which none of its leads finds"
    assert not leads.dynamic or all(len(clause) == 1 for clause in leads.candidates), (
        f"{parsed!r}: a live hint has one key"
    )


def _lies_in_boxes(boxes: Collection[Box], event: Event) -> bool:
    """As the index looks for it."""
    found: set[bool] = set()
    held: BoxIndex[bool] = BoxIndex()
    held.add(True, boxes)
    held.find(event, found)
    return bool(found)


def _parse_refusal(filter_class: type[Filter], value: str) -> ParameterError | None:
    try:
        filter_class.parse(value)
    except ParameterError as refusal:
        return refusal
    return None
