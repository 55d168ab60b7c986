"""Finds rules that can match no event, such as ``tea -tea`` or ``from:ada from:bob``, in bounded time.

A rule is taken apart into its branches: the operators that must hold together, with one side of each OR. A branch can
match nothing if an operator and its minus stand in it, or two values of what an event has only once, or areas, counts,
languages or kinds that exclude each other. What is left may still match nothing: the check never errs the other way.
"""

from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from filters import index_keys
from filters.event import ENTITY_FLAGS
from filters.index_keys import (
    boxes_overlap,
    language_keys,
    split_at_date_line,
    wanted_language_keys,
)
from filters.possible_kinds import (
    ALL_KINDS,
    SAMPLED_KINDS,
    STATUS_KINDS,
    TEXT_KINDS,
    kinds_in_languages,
    possible_kinds,
)
from filters.rules.attributes import CountCondition, SampleCondition, UserCondition
from filters.rules.condition import Condition, KeyCondition
from filters.rules.geo import AreaCondition
from filters.rules.meta import MetaCondition, has_meta_text
from filters.rules.operators import PluginCondition
from filters.rules.parser import And, Node, Operator
from filters.rules.words import BioCondition, PhraseCondition, TextCondition
from filters.tables import MACRO_LANGUAGES, whole_language
from filters.term_search import searched_term

MAX_STEPS = 2_000
"""Most operators that are looked at in the branches of one rule. A rule with more counts as one that can match."""

MAX_PAIRS = 8
"""Most areas, and most languages, of one branch that are compared with each other."""

_LOCATION_KEYS = (index_keys.PLACE, index_keys.COUNTRY)
_NO_KINDS: frozenset[str] = frozenset()
_LANG = "lang:"
_REPOST, _REPLY, _GEO, _MEDIA = "is:retweet", "is:reply", "has:geo", "has:media"


class _Wants(NamedTuple):
    """The facts that one operator demands of an event.

    Attributes:
        kinds: The kinds of events that may have it.
        implied: Texts of operators that hold whenever this one does, itself included.
        facts: A name and a value for each thing that an event has only once.
        condition: The condition, if it has a range, an area or a language to compare with others. Else None.
    """

    kinds: frozenset[str]
    implied: tuple[str, ...]
    facts: tuple[tuple[str, str], ...] = ()
    condition: Condition | None = None


class Reach(NamedTuple):
    """The events that a rule may match, as far as its text tells.

    Attributes:
        kinds: The kinds of events, none if the rule contradicts itself.
        languages: Codes (:func:`filters.tables.whole_language`) in one of which an event must be; none of them allows
            all.
    """

    kinds: frozenset[str]
    languages: frozenset[str] = frozenset()


_NOTHING = Reach(_NO_KINDS)


def reach_of_rule(node: Node) -> Reach:
    """Return the kinds and the languages of the events that a rule may match."""
    if isinstance(node, Operator) and not (node.negated or isinstance(node.condition, CountCondition)):
        return _shared(_reach_alone(node.condition))  # as most: nothing contradicts it
    kinds, languages, speaks_all = _NO_KINDS, frozenset[str](), False
    known: dict[str, _Wants] = {}
    for branch in _branches(node):
        if branch is None:
            return _shared(Reach(ALL_KINDS))
        found = _reach_of_branch(branch, known)
        if found.kinds:
            kinds |= found.kinds
            languages |= found.languages
            speaks_all |= not found.languages
        if speaks_all and kinds == ALL_KINDS:
            break
    return _shared(Reach(kinds, frozenset() if speaks_all else languages))


def _reach_alone(condition: Condition) -> Reach:
    if isinstance(condition, TextCondition):
        return Reach(TEXT_KINDS)
    tags = [condition.text[len(_LANG) :]] if condition.text.startswith(_LANG) else ()
    return Reach(_kinds_of_condition(condition), frozenset(map(whole_language, tags)))


@lru_cache(256)
def _shared(reach: Reach) -> Reach:
    """Return equal values as one object, because a process may keep thousands of rules."""
    return reach


def _branches(node: Node) -> Iterator[list[Operator] | None]:
    """Yield the operators of each branch of a rule. Yield None at last if `MAX_STEPS` did not suffice for all."""
    open_branches: list[tuple[list[Node], list[Operator]]] = [([node], [])]
    steps = 0
    while open_branches:
        pending, taken = open_branches.pop()
        while pending:
            steps += 1
            if steps > MAX_STEPS:
                yield None
                return
            part = pending.pop()
            if isinstance(part, Operator):
                taken.append(part)
            elif isinstance(part, And):
                pending.extend(part.parts)
            else:
                steps += len(part.parts) * (len(pending) + len(taken))
                open_branches += [([*pending, side], [*taken]) for side in reversed(part.parts)]
                break
        else:
            yield taken


def _reach_of_branch(branch: list[Operator], known: dict[str, _Wants]) -> Reach:
    """Return the events for which all operators of a branch may hold. ``known`` has what operators want."""
    kinds, denied = ALL_KINDS, {operator.text for operator in branch if operator.negated}
    facts, compared = dict[str, str](), list[Condition]()
    for operator in branch:
        if operator.negated:
            continue
        wants = known.get(operator.text)
        if wants is None:
            wants = known[operator.text] = _wants_of(operator.condition)
        if denied and not denied.isdisjoint(wants.implied):
            return _NOTHING
        for name, value in wants.facts:
            if facts.setdefault(name, value) != value:
                return _NOTHING
        if wants.condition is not None:
            compared.append(wants.condition)
        kinds = wants.kinds if kinds is ALL_KINDS else kinds if kinds is wants.kinds else kinds & wants.kinds
    if not compared:
        return Reach(kinds)
    tags = [each.text[len(_LANG) :] for each in compared if each.text.startswith(_LANG)]
    are_apart = not all(_are_compatible(one, other) for one, other in combinations(tags[:MAX_PAIRS], 2))
    if are_apart or _have_empty_range(compared) or _have_apart_areas(compared):
        return _NOTHING
    return Reach(kinds, frozenset(map(whole_language, tags[:1])))


def _wants_of(condition: Condition) -> _Wants:
    if isinstance(condition, TextCondition):
        return _Wants(TEXT_KINDS, tuple(_implied(condition)))
    is_compared = isinstance(condition, CountCondition | AreaCondition) or condition.text.startswith(_LANG)
    return _Wants(
        _kinds_of_condition(condition),
        tuple(_implied(condition)),
        tuple(_single_facts(condition)),
        condition if is_compared else None,
    )


def _implied(condition: Condition) -> Iterator[str]:
    """Yield the texts of operators that hold whenever this one does, itself included."""
    text = condition.text
    yield text
    if isinstance(condition, PhraseCondition):
        yield from (word for word in condition.phrase.words if searched_term(word) is None)
    elif isinstance(condition, UserCondition) and not text.startswith("from:"):
        yield _REPLY if text.startswith("to:") else _REPOST
    elif isinstance(condition, AreaCondition) or (
        isinstance(condition, KeyCondition) and any(key.startswith(_LOCATION_KEYS) for key in condition.keys)
    ):
        yield _GEO
    elif isinstance(condition, MetaCondition):
        yield has_meta_text(condition.name)
    elif text in {"has:images", "has:video_link"}:
        yield _MEDIA
    elif text.startswith(_LANG):
        while "-" in text:
            text = text.rpartition("-")[0]
            yield text


def _single_facts(condition: Condition) -> Iterator[tuple[str, str]]:
    """Yield a name and value for each thing that the operator wants of an event, and that an event has only once."""
    if isinstance(condition, UserCondition):
        verb, _, user = condition.text.partition(":")
        yield f"{verb} {'id' if condition.is_id else 'login'}", user
    elif isinstance(condition, KeyCondition) and len(condition.keys) == 1:
        (key,) = condition.keys
        for prefix in (index_keys.CONVERSATION, *_LOCATION_KEYS):
            if key.startswith(prefix):
                yield prefix, key
    implied = set(_implied(condition))
    if _REPOST in implied:
        yield "repost", "yes"
    elif _GEO in implied or condition.text == "is:quote":  # a repost has neither a location nor words of its own
        yield "repost", "no"


_OF_STATUS = (AreaCondition, BioCondition, CountCondition, MetaCondition)


def _kinds_of_condition(condition: Condition) -> frozenset[str]:
    if isinstance(condition, KeyCondition):
        if condition.text.startswith(_LANG):
            return kinds_in_languages(frozenset({condition.text[len(_LANG) :]}))
        return TEXT_KINDS if condition.text in ENTITY_FLAGS else STATUS_KINDS
    if isinstance(condition, UserCondition):
        return ALL_KINDS if condition.text.startswith("from:") else STATUS_KINDS
    if isinstance(condition, PluginCondition):
        return possible_kinds(condition.filter)
    if isinstance(condition, SampleCondition):
        return SAMPLED_KINDS
    return STATUS_KINDS if isinstance(condition, _OF_STATUS) else ALL_KINDS


def _have_empty_range(conditions: Collection[Condition]) -> bool:
    ranges = dict[str, tuple[int, float]]()
    for condition in conditions:
        if isinstance(condition, CountCondition):
            least, most = ranges.get(condition.field, (0, float("inf")))
            upper = float("inf") if condition.maximum is None else condition.maximum
            ranges[condition.field] = max(least, condition.minimum), min(most, upper)
    return any(least > most for least, most in ranges.values())


def _have_apart_areas(conditions: Collection[Condition]) -> bool:
    areas = [split_at_date_line(each.box) for each in conditions if isinstance(each, AreaCondition)][:MAX_PAIRS]
    return any(
        not any(boxes_overlap(part, other) for part in one for other in another)
        for one, another in combinations(areas, 2)
    )


@lru_cache(1024)  # many branches of a rule may have the same tags
def _are_compatible(tag: str, other: str) -> bool:
    """Whether a text may match both language tags, by the rules of :func:`language_keys`.

    The text would be in one of the two languages, or in the macro-language of one, with the subtags of either.
    """
    if tag == other:
        return True
    (code, _, rest), (other_code, _, other_rest) = tag.partition("-"), other.partition("-")
    codes = {code, other_code, MACRO_LANGUAGES.get(code, code), MACRO_LANGUAGES.get(other_code, other_code)}
    texts = [f"{each}-{subtags}".rstrip("-") for each in codes for subtags in {rest, other_rest}]
    wanted = wanted_language_keys(tag), wanted_language_keys(other)
    return any(all(not keys.isdisjoint(language_keys(text)) for keys in wanted) for text in texts)
