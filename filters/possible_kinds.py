"""The kinds of events that a filter can match, as far as its parsed value tells them."""

from filters.base import Filter
from filters.index_keys import UNDETERMINED
from filters.location import Location
from filters.narrowing import KINDS, PERSONAL_KINDS, Kinds, Language
from filters.sample import Sample
from filters.track import Track

ALL_KINDS = frozenset((*KINDS, *PERSONAL_KINDS))

STATUS_KINDS = frozenset({"post", "edit", "delete"})
"""Kinds of events with the language, place, form, thread and media of a status, and its author's counts and bio."""

TEXT_KINDS = STATUS_KINDS | {"comment", "uncomment"}
"""Kinds of events with a text and the entities in it."""

SAMPLED_KINDS = TEXT_KINDS | {"like", "unlike"}
"""Kinds of events that belong to a status, by whose id ``sample`` selects."""


def kinds_in_languages(languages: frozenset[str]) -> frozenset[str]:
    """Return the kinds of events in these languages. Only a status has one; that of other events is undetermined."""
    return ALL_KINDS if UNDETERMINED in languages else STATUS_KINDS


def possible_kinds(part: Filter) -> frozenset[str]:
    """Return the kinds of events that a filter can match. A plug-in's filter can match each kind."""
    if isinstance(part, Kinds):
        return part.kinds
    if isinstance(part, Language):
        return kinds_in_languages(part.languages)
    if isinstance(part, Track):
        return TEXT_KINDS
    if isinstance(part, Location):
        return STATUS_KINDS
    return SAMPLED_KINDS if isinstance(part, Sample) else ALL_KINDS
