"""An installed filter as an operator: ``name:value``."""

from collections.abc import Collection

from filters.base import Filter
from filters.entities import Indices
from filters.error import ParameterError
from filters.event import Event
from filters.follow import ME, Follow
from filters.key import Clause, Key
from filters.rules.condition import Condition, Written, as_value
from filters.rules.error import RuleError


class Installed(Condition):
    """What the filter says. Its keys and clauses are asked for once, when the rule is read."""

    __slots__ = ("_clauses", "_keys", "filter")

    def __init__(self, parsed: Filter, value: str) -> None:
        super().__init__(f"{parsed.name}:{as_value(value)}")
        self.filter = parsed
        self._keys = parsed.keys()
        self._clauses = parsed.clauses()

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
