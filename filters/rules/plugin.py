"""An installed filter as an operator of rules: ``name:value``."""

from collections.abc import Collection

from filters.base import Filter, validate_index_terms, validate_keys
from filters.entities import Indices
from filters.error import ParameterError
from filters.event import Event
from filters.follow import ME, Follow
from filters.grid import filter_box_keys
from filters.index_keys import Clause, IndexTerms, Key, rarest_key
from filters.rules.condition import Condition, OperatorValue, format_value
from filters.rules.error import RuleError


class PluginCondition(Condition):
    """The condition of an installed filter. Its keys and clauses are requested once, when the rule is parsed.

    If the filter has index terms but no candidate keys, its keys are the rarest key of each clause and the squares of
    its boxes.
    """

    __slots__ = ("_clauses", "_keys", "filter")

    def __init__(self, parsed: Filter, value: str) -> None:
        super().__init__(f"{parsed.name}:{format_value(value)}")
        self.filter = parsed
        keys, clauses = parsed.candidate_keys(), parsed.exact_clauses()
        self._keys = (
            _keys_of_index_terms(validate_index_terms(parsed.index_terms())) if keys is None else validate_keys(keys)
        )
        self._clauses = None if clauses is None else [validate_keys(clause) for clause in clauses]

    def matches(self, event: Event) -> bool:
        return bool(self.filter.matches(event))

    def candidate_keys(self) -> frozenset[Key] | None:
        return self._keys

    def exact_clauses(self) -> Collection[Clause] | None:
        return self._clauses

    def describe(self, event: Event) -> str:
        return f"{self.filter.name} {'matches' if self.matches(event) else 'does not match'}"

    def indices(self, event: Event) -> list[Indices]:
        spans = (span for item in self.filter.explain(event) for span in item.get("indices", ()))
        return [(int(start), int(end)) for start, end in spans]


def _keys_of_index_terms(terms: IndexTerms | None) -> frozenset[Key] | None:
    """Return candidate keys made from index terms, or None if an event without keys may match."""
    if terms is None:
        return None
    clauses = [*terms.exact, *terms.candidates]
    if not all(clauses):
        return None
    return frozenset((*map(rarest_key, clauses), *(key for box in terms.boxes for key in filter_box_keys(box))))


def is_usable(filter_class: type[Filter]) -> bool:
    """Whether rules may use the filter: it is not standalone, needs no scope, and requires no other parameter."""
    excluded = filter_class.role == "standalone" or filter_class.scopes or filter_class.requires
    return filter_class.usable_in_rules and not excluded


def parse_plugin_operator(filter_class: type[Filter], value: OperatorValue) -> Condition:
    """Make the operator from a filter and its value. Raises RuleError, whatever exception the filter raises."""
    name = filter_class.name
    try:
        parsed = filter_class.parse(value.text)
        condition = PluginCondition(parsed, value.text)
    except ParameterError as error:
        raise RuleError(error.message, column=value.column, expected=f"a value of {name}") from error
    except Exception as error:
        # A plug-in filter may raise any exception.
        raise RuleError(f"{name} raised {error!r}", column=value.column, expected=f"another value of {name}") from error
    if isinstance(parsed, Follow) and parsed.includes_me:
        raise RuleError(f"{ME} is allowed only in the parameter follow", column=value.column, expected="user ids")
    return condition
