"""The contract test of filters. Built-in filters and those of plug-ins must pass it.

Call :func:`check_filter` in a test. If the filter breaks the contract, it raises AssertionError with a sentence that
names the fault.
"""

import json
import re
from collections.abc import Collection, Iterable
from typing import Literal

from filters.base import ROLES, Filter, MatchedItem, validate_index_terms
from filters.entities import extract_entities
from filters.error import ParameterError
from filters.event import Event
from filters.inverted_lists import BoxIndex
from filters.registry import RESERVED_NAMES

FUZZ_VALUES = (
    *("", " ", ",", ",,,", "\x00", "\ud800", "nan", "-1", "1e999", "NaN,inf,-inf,0", "١٢٣", "true,true", "%s{0}"),
    *("x" * 5_000, "1," * 20_000, "🏳️‍🌈" * 100),
)
"""Values for which ``parse`` must return a filter or raise ParameterError, and no other exception."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def example_events() -> list[Event]:
    """Return events to test a filter: posts in several scripts, with and without place or text, and other kinds."""
    shop, tokyo = "@alice's #Tag costs $TWTR, see http://www.example.com/a_b?c=d", "Tokyoの@bobに到着 touché 😍"
    one, two, three, nine = (frozenset({user_id}) for user_id in "1239")
    posts = [
        Event("post", author="1", user_ids=one, status_id=str(n), text=text, entities=extract_entities(text), lang="en")
        for n, text in enumerate(("", "hello world", shop, tokyo), start=1)
    ]
    return [
        *posts,
        Event("post", author="2", user_ids=one | two, status_id="12345", text="hello", lang="pt-BR"),
        Event("post", author="2", user_ids=two, status_id="99", point=(-73.5, 40.5)),
        Event("post", author="3", user_ids=three, status_id="98", box=(170.0, -20.0, -170.0, -10.0)),
        Event("post", author="3", user_ids=three, status_id="97", box=(-180.0, -90.0, 180.0, 90.0)),
        Event("delete", author="1", user_ids=one, status_id="2", text="hello world", lang="en"),
        Event("follow", author="1", user_ids=one | two, is_sampled=False),
        Event("protect", author="9", user_ids=nine, is_sampled=False, is_public=False),
    ]


def check_filter(
    filter_class: type[Filter],
    valid_values: Iterable[str],
    invalid_values: Iterable[str] = (),
    events: Iterable[Event] | None = None,
) -> None:
    """Check the whole contract of :class:`filters.base.Filter` and raise AssertionError at the first fault.

    Args:
        valid_values: Parameter values that ``parse`` must accept.
        invalid_values: Parameter values that ``parse`` must refuse.
        events: Events for the parsed filters. The default is :func:`example_events`. Pass events that match, because
            without a match there is little to check.
    """
    check_class(filter_class)
    check_refusals(filter_class, tuple(invalid_values))
    checked_events = example_events() if events is None else list(events)
    for value in valid_values:
        parsed = filter_class.parse(value)
        check_identity(parsed, filter_class.parse(value))
        for event in checked_events:
            check_match(parsed, event)
            check_explanations(parsed, event)


def check_class(filter_class: type[Filter]) -> None:
    """Check that the class attributes of a filter, such as ``name`` and ``role``, are complete and valid."""
    name = filter_class.name
    assert _NAME.fullmatch(name), f"{filter_class.__name__}.name is not a valid parameter name: {name!r}"
    assert name not in RESERVED_NAMES, f"{filter_class.__name__}.name is reserved: {name!r}"
    assert filter_class.role in ROLES, f"{name}: role is {filter_class.role!r}, not one of {ROLES}"
    assert filter_class.help.strip(), f"{name}: help is empty"
    assert all(isinstance(scope, str) for scope in filter_class.scopes), f"{name}: scopes are not strings"
    assert filter_class.name not in filter_class.requires, f"{name} requires itself"


def check_refusals(filter_class: type[Filter], invalid_values: Collection[str]) -> None:
    """Check that ``parse`` raises only ParameterErrors for invalid values, and that these name the parameter."""
    name = filter_class.name
    for value in invalid_values:
        assert _parse_refusal(filter_class, value), f"{name} accepts {value[:60]!r}, which it must refuse"
    for value in (*invalid_values, *FUZZ_VALUES):
        refusal = _parse_refusal(filter_class, value)
        if refusal is not None:
            assert refusal.param == name, f"{name} names the parameter {refusal.param!r} for {value[:60]!r}"
            is_known = refusal.code in ("invalid_parameter", "too_many")
            assert is_known, f"{name} refuses {value[:60]!r} with the unknown code {refusal.code!r}"


def check_identity(parsed: Filter, again: Filter) -> None:
    """Check that two filters parsed from the same value are equal, so that clients can share the matching work.

    Check that the index can hold the filter's index terms, and that a second call returns the same ones.
    """
    name = parsed.name
    assert parsed == again, f"{name}: parsing the same value twice gives unequal filters"
    assert hash(parsed) == hash(again), f"{name}: equal filters have unequal hashes"
    assert parsed.canonical_form == again.canonical_form, f"{name}: equal filters have unequal canonical forms"
    same = _comparable_index_terms(parsed) == _comparable_index_terms(parsed)
    assert same, f"{parsed!r} gives different index terms at each call"


def _comparable_index_terms(parsed: Filter) -> object:
    try:
        terms = validate_index_terms(parsed.index_terms())
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{parsed!r} has index terms that the index cannot hold: {error}") from error
    return terms and (set(terms.exact), set(terms.candidates), terms.dynamic_keys, set(terms.boxes))


def check_match(parsed: Filter, event: Event) -> None:
    """Check that ``matches`` returns the same bool at each call, and that the index terms agree with this result.

    The index must find each matching event, and exact clauses and boxes must fit matching events only.
    """
    matched, terms = parsed.matches(event), parsed.index_terms()
    assert matched is True or matched is False, f"{parsed!r}.matches({event!r}) is {matched!r}, neither True nor False"
    assert parsed.matches(event) is matched, f"{parsed!r} gives different answers for {event!r}"
    if terms is None:
        return
    by_clause = any(clause <= event.index_keys for clause in terms.exact)
    assert matched or not by_clause, f"{parsed!r} does not match {event!r}, which satisfies one of its exact clauses"
    in_boxes, index = set[bool](), BoxIndex[bool]()
    index.add(True, terms.boxes)
    index.find(event, in_boxes)
    by_box = bool(in_boxes)
    assert matched or not by_box, f"{parsed!r} does not match {event!r}, which lies in one of its boxes"
    by_candidate = any(clause <= event.index_keys for clause in terms.candidates)
    by_candidate = by_candidate or not event.index_keys.isdisjoint(terms.dynamic_keys or ())
    found = by_candidate or by_clause or by_box
    assert found or not matched, f"{parsed!r} matches {event!r}, which none of its keys and index terms finds"


def check_explanations(parsed: Filter, event: Event) -> None:
    """Check that a filter explains an event if it matches, and that ``explain`` and ``matched_items`` return JSON."""
    reasons = _checked_items(parsed, "explain", event)
    _checked_items(parsed, "matched_items", event)
    named = all("filter" in item for item in reasons)
    assert named, f"{parsed!r}.explain({event!r}) has an item without the member filter"
    assert bool(reasons) is parsed.matches(event), f"{parsed!r} and its reasons disagree about {event!r}"


def _checked_items(parsed: Filter, name: Literal["explain", "matched_items"], event: Event) -> list[MatchedItem]:
    call = f"{parsed!r}.{name}({event!r})"
    try:
        items: list[MatchedItem] = getattr(parsed, name)(event)
    except Exception as error:
        raise AssertionError(f"{call} raised {error!r}") from error
    assert isinstance(items, list), f"{call} is {items!r}, not a list"
    assert all(isinstance(item, dict) for item in items), f"{call} has an item that is not a dict: {items!r}"
    try:
        json.dumps(items, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{call} is not JSON: {items!r}") from error
    return items


def _parse_refusal(filter_class: type[Filter], value: str) -> ParameterError | None:
    try:
        filter_class.parse(value)
    except ParameterError as refusal:
        return refusal
    return None
