"""An installed filter as an operator: ``name:value``."""

from collections.abc import Collection

from filters.base import Filter, sound_keys, sound_leads
from filters.entities import Indices
from filters.error import ParameterError
from filters.event import Event
from filters.follow import ME, Follow
from filters.grid import filter_keys
from filters.key import Clause, Key, Leads, rarest
from filters.rules.condition import Condition, Written, as_value
from filters.rules.error import RuleError


class Installed(Condition):
    """What the filter says. Its keys and clauses are asked for once, when the rule is read.

    Of a filter that only has leads the keys are those: the rarest of each clause, and the squares of its boxes.
    """

    __slots__ = ("_clauses", "_keys", "filter")

    def __init__(self, parsed: Filter, value: str) -> None:
        super().__init__(f"{parsed.name}:{as_value(value)}")
        self.filter = parsed
        keys, clauses = parsed.keys(), parsed.clauses()
        self._keys = _keys_of(sound_leads(parsed.leads())) if keys is None else sound_keys(keys)
        self._clauses = None if clauses is None else [sound_keys(clause) for clause in clauses]

    def matches(self, event: Event) -> bool:
        return bool(self.filter.matches(event))

    def keys(self) -> frozenset[Key] | None:
        return self._keys

    def clauses(self) -> Collection[Clause] | None:
        return self._clauses

    def why(self, event: Event) -> str:
        return f"{self.filter.name} {'matches' if self.matches(event) else 'does not match'}"

    def indices(self, event: Event) -> list[Indices]:
        spans = (span for mark in self.filter.explain(event) for span in mark.get("indices", ()))
        return [(int(start), int(end)) for start, end in spans]


def _keys_of(leads: Leads | None) -> frozenset[Key] | None:
    """None where an event may match that has no keys at all."""
    if leads is None:
        return None
    clauses = [*leads.proofs, *leads.hints]
    if not all(clauses):
        return None
    return frozenset((*map(rarest, clauses), *(key for box in leads.boxes for key in filter_keys(box))))


def usable(filter_class: type[Filter]) -> bool:
    """Whether rules may use a filter: not if it stands alone, needs a scope, or means nothing without another."""
    alone = filter_class.role == "whole" or filter_class.scopes or filter_class.needs
    return filter_class.operator and not alone


def installed(filter_class: type[Filter], written: Written) -> Condition:
    """The operator of this filter and value; raises RuleError, whatever the filter raises."""
    name = filter_class.name
    try:
        parsed = filter_class.parse(written.text)
        condition = Installed(parsed, written.text)
    except ParameterError as error:
        raise RuleError(error.message, column=written.column, expected=f"a value of {name}") from error
    except Exception as error:
        # A third party's filter may raise anything.
        raise RuleError(
            f"{name} raised {error!r}", column=written.column, expected=f"another value of {name}"
        ) from error
    if isinstance(parsed, Follow) and parsed.me:
        raise RuleError(f"{ME} is for the parameter follow", column=written.column, expected="user ids")
    return condition
