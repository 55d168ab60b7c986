"""The contract test of filters. Built-in filters and those of plug-ins must pass it.

Call :func:`check_filter` in a test. If the filter breaks the contract, it raises AssertionError with a sentence that
names the fault.
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
"""Values for which ``parse`` must return a filter or raise ParameterError, and no other exception."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CODES = ("invalid_parameter", "too_many")


def example_events() -> list[Event]:
    """Return events of every shape: texts in several scripts, places, users, and none of these."""
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
    """Check the whole contract of :class:`filters.base.Filter` and raise AssertionError at the first fault.

    Args:
        filter_class: The class to check.
        valid_values: Values that a client may write.
        invalid_values: Values that ``parse`` must refuse.
        events: Events for the parsed filters. The default is :func:`example_events`. Pass events that match, because
            without a match there is little to check.
    """
    check_class(filter_class)
    check_refusals(filter_class, tuple(invalid_values))
    checked_events = example_events() if events is None else list(events)
    for value in valid_values:
        parsed = filter_class.parse(value)
        check_identity(parsed, filter_class.parse(value))
        check_keys(parsed)
        for event in checked_events:
            check_match(parsed, event)
            check_explanations(parsed, event)


def check_class(filter_class: type[Filter]) -> None:
    """Check that the class attributes are complete and valid."""
    name = filter_class.name
    assert _NAME.fullmatch(name), f"{filter_class.__name__}.name is not a valid parameter name: {name!r}"
    assert name not in RESERVED_NAMES, f"{filter_class.__name__}.name is reserved: {name!r}"
    assert filter_class.role in ROLES, f"{name}: role is {filter_class.role!r}, not one of {ROLES}"
    assert filter_class.help.strip(), f"{name}: help is empty"
    assert all(isinstance(scope, str) for scope in filter_class.scopes), f"{name}: scopes are not strings"
    assert filter_class.name not in filter_class.requires, f"{name} requires itself"


def check_refusals(filter_class: type[Filter], invalid_values: Collection[str]) -> None:
    """Check that invalid values raise ParameterError with the name of the parameter.

    No value may raise any other exception.
    """
    name = filter_class.name
    for value in invalid_values:
        assert _parse_refusal(filter_class, value), f"{name} accepts {value[:60]!r}, which it must refuse"
    for value in (*invalid_values, *FUZZ_VALUES):
        refusal = _parse_refusal(filter_class, value)
        if refusal is not None:
            assert refusal.param == name, f"{name} names the parameter {refusal.param!r} for {value[:60]!r}"
            assert refusal.code in _CODES, f"{name} refuses {value[:60]!r} with the unknown code {refusal.code!r}"


def check_identity(parsed: Filter, again: Filter) -> None:
    """Check that parsing one value twice gives equal filters, so that they can share their work."""
    name = parsed.name
    assert parsed == again, f"{name}: parsing the same value twice gives unequal filters"
    assert hash(parsed) == hash(again), f"{name}: equal filters have unequal hashes"
    assert parsed.canonical_form == again.canonical_form, f"{name}: equal filters have unequal canonical forms"


def check_match(parsed: Filter, event: Event) -> None:
    """Check that ``matches`` returns a constant bool, and that keys and clauses agree with it."""
    matched = parsed.matches(event)
    assert matched is True or matched is False, f"{parsed!r}.matches({event!r}) is {matched!r}, neither True nor False"
    assert parsed.matches(event) is matched, f"{parsed!r} gives different answers for {event!r}"
    keys, clauses = parsed.candidate_keys(), parsed.exact_clauses()
    if matched and keys is not None:
        assert keys & event.index_keys, (
            f"{parsed!r} matches {event!r}, which has none of its candidate keys: the index would miss it"
        )
    if clauses is not None:
        assert keys is not None, f"{parsed!r} has exact clauses, but no candidate keys"
        described = any(clause <= event.index_keys for clause in clauses)
        assert described is matched, f"{parsed!r} and its exact clauses disagree about {event!r}"
    check_index_terms(parsed, event)


def check_keys(parsed: Filter) -> None:
    """Check that keys are strings, that the index can hold the index terms, and that both are the same at each call."""
    keys = parsed.candidate_keys()
    if keys is not None:
        assert isinstance(keys, frozenset), f"{parsed!r}.candidate_keys() is {keys!r}, not a frozenset"
        assert all(isinstance(key, str) for key in keys), f"{parsed!r} has keys that are not strings: {keys!r}"
    assert parsed.candidate_keys() == keys, f"{parsed!r} gives different candidate keys at each call"
    assert _comparable_index_terms(parsed) == _comparable_index_terms(parsed), (
        f"{parsed!r} gives different index terms at each call"
    )


def _comparable_index_terms(parsed: Filter) -> object:
    """Return the index terms in a form that can be compared, whatever collections they use."""
    try:
        terms = validate_index_terms(parsed.index_terms())
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{parsed!r} has index terms that the index cannot hold: {error}") from error
    return terms and (set(terms.exact), set(terms.candidates), terms.dynamic, set(terms.boxes))


def check_explanations(parsed: Filter, event: Event) -> None:
    """Check that ``explain`` and ``matched_items`` return lists of JSON objects.

    There must be reasons if and only if the event matches.
    """
    reasons = _checked_items(parsed, "explain", parsed.explain, event)
    _checked_items(parsed, "matched_items", parsed.matched_items, event)
    assert all("filter" in item for item in reasons), (
        f"{parsed!r}.explain({event!r}) has an item without the member filter"
    )
    assert bool(reasons) is parsed.matches(event), f"{parsed!r} and its reasons disagree about {event!r}"


def _checked_items(
    parsed: Filter, name: str, ask: Callable[[Event], list[MatchedItem]], event: Event
) -> list[MatchedItem]:
    call = f"{parsed!r}.{name}({event!r})"
    try:
        items = ask(event)
    except Exception as error:
        raise AssertionError(f"{call} raised {error!r}") from error
    assert isinstance(items, list), f"{call} is {items!r}, not a list"
    assert all(isinstance(item, dict) for item in items), f"{call} has an item that is not a dict: {items!r}"
    assert _is_json(items), f"{call} is not JSON: {items!r}"
    return items


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def check_index_terms(parsed: Filter, event: Event) -> None:
    """Check that exact index terms match only events that match, and that no matching event is missed."""
    terms, matched = parsed.index_terms(), parsed.matches(event)
    if terms is None:
        return
    by_clause = any(clause <= event.index_keys for clause in terms.exact)
    assert matched or not by_clause, f"{parsed!r} does not match {event!r}, which satisfies one of its exact clauses"
    by_box = _lies_in_boxes(terms.boxes, event)
    assert matched or not by_box, f"{parsed!r} does not match {event!r}, which lies in one of its boxes"
    by_candidate = any(clause <= event.index_keys for clause in terms.candidates)
    assert by_candidate or by_clause or by_box or not matched, (
        f"{parsed!r} matches {event!r}, which none of its index terms finds"
    )
    assert not terms.dynamic or all(len(clause) == 1 for clause in terms.candidates), (
        f"{parsed!r}: a candidate of dynamic index terms must have one key"
    )


def _lies_in_boxes(boxes: Collection[Box], event: Event) -> bool:
    """Whether the index finds the event by one of the boxes."""
    found: set[bool] = set()
    index: BoxIndex[bool] = BoxIndex()
    index.add(True, boxes)
    index.find(event, found)
    return bool(found)


def _parse_refusal(filter_class: type[Filter], value: str) -> ParameterError | None:
    try:
        filter_class.parse(value)
    except ParameterError as refusal:
        return refusal
    return None
