"""Operators for the fields that the author added to a status: ``meta.NAME:`` and ``has:meta.NAME``.

A rule is text only, so one value finds a text and a number: ``meta.room:7`` finds ``"7"`` and 7. The number is compared
as a number, and the text as a whole: ``meta.version:1.10`` finds ``"1.10"`` and 1.1, but not ``"1.1"``. Ranges find
numbers only.
"""

import re

from filters.event import Event
from filters.index_keys import IndexTerms
from filters.meta_fields import MAX_BYTES, MetaField, Number, is_too_long, number_key, number_text, text_key
from filters.rules.condition import Condition, OperatorValue, format_value, quote_value
from filters.suggestion import did_you_mean
from filters.tokens import fold

PREFIX = "meta."
"""What the name of a field has before it in a rule."""

PLAIN_NAME = r'[^\s()":\[\]\\]+'
"""Pattern of a name that needs no quotes."""

_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"
_RANGE = re.compile(rf"(?P<least>{_NUMBER})?\.\.(?P<most>{_NUMBER})?")


class MetaCondition(Condition):
    """The base class of operators for a field, and the operator ``has:meta.NAME`` itself, which takes any value.

    A name may have several values. The condition holds if one of them fulfils it.

    Attributes:
        name: The name of the field, folded.
        demand: What the condition demands of the value, as the end of the sentence "it is 5, …".
    """

    __slots__ = ("demand", "name")

    def __init__(self, name: str, text: str, demand: str = "") -> None:
        super().__init__(text)
        self.name = name
        self.demand = demand

    def accepts(self, field: MetaField) -> bool:  # noqa: ARG002 - the operators with a value use it
        """Whether the value of a field with the right name fulfils the condition."""
        return True

    def matches(self, event: Event) -> bool:
        name = self.name
        for field in event.meta_fields:  # noqa: SIM110 - a generator takes twice as long
            if field.name == name and self.accepts(field):
                return True
        return False

    def describe(self, event: Event) -> str:
        own = [field for field in event.meta_fields if field.name == self.name]
        shown = f"{PREFIX}{self.name}"
        if not own:
            return f"it has no {shown}{did_you_mean(self.name, [field.name for field in event.meta_fields])}"
        found = " and ".join(map(_shown, own[:3])) + " and more" * (len(own) > 3)
        return f"{shown} is {found}" + ("" if any(map(self.accepts, own)) else f", {self.demand}")


class MetaValue(MetaCondition):
    """The rule operator ``meta.NAME:value``: the text of a field is the whole value, or its number equals the value."""

    __slots__ = ("_keys",)

    def __init__(self, name: str, value: str) -> None:
        shown = quote_value(value) if ".." in value else format_value(value)  # without quotes it would be a range
        super().__init__(name, f"{_operator(name)}:{shown}", f"not {value}")
        self._keys = {text_key(name, value)}
        if re.fullmatch(_NUMBER, value):
            self._keys.add(number_key(name, _to_number(value)))

    def accepts(self, field: MetaField) -> bool:
        return field.key in self._keys

    def index_terms(self) -> IndexTerms:
        return IndexTerms([frozenset((key,)) for key in self._keys])


class MetaRange(MetaCondition):
    """The rule operator ``meta.NAME:a..b``: a number of the field is in the range, ends included.

    ``least`` and ``most`` are decimal numbers. One of them may be None.
    """

    __slots__ = ("_least", "_most")

    def __init__(self, name: str, least: str | None, most: str | None) -> None:
        shown = f"{_canonical_number(least or '')}..{_canonical_number(most or '')}"
        super().__init__(name, f"{_operator(name)}:{shown}", f"no number in {shown}")
        self._least = None if least is None else _to_number(least)
        self._most = None if most is None else _to_number(most)

    def accepts(self, field: MetaField) -> bool:
        number = field.value
        if isinstance(number, str):
            return False
        return (self._least is None or self._least <= number) and (self._most is None or number <= self._most)


def parse_meta_value(operator: str, value: OperatorValue) -> Condition:
    """Return the condition of ``meta.NAME:value``. ``operator`` is the folded ``meta.NAME``, without quotes.

    Raises RuleError for a name or a value that no field can have.
    """
    name, folded = _read_name(operator, value), fold(value.text)
    if is_too_long(folded):
        raise value.refusal("the value is too long", f"at most {MAX_BYTES} bytes")
    return MetaValue(name, folded)


def parse_meta_range(operator: str, value: OperatorValue) -> Condition:
    """Return the condition of ``meta.NAME:a..b``. ``operator`` is the folded ``meta.NAME``, without quotes.

    Raises RuleError if the value is no range of numbers, or an empty one.
    """
    name, found = _read_name(operator, value), _RANGE.fullmatch(value.text)
    if found is None or value.text == "..":
        expected = f"a range such as 10..50, or quotes around a text: {quote_value(value.text[:40])}"
        raise value.refusal(f"{value.text[:40]!r} is not a range of numbers", expected)
    least, most = found["least"], found["most"]
    if least is not None and most is not None and _to_number(least) > _to_number(most):
        raise value.refusal("the range is empty", "the smaller number first")
    return MetaRange(name, least, most)


def parse_has_meta(value: OperatorValue) -> Condition:
    """Return the condition of ``has:meta.NAME``. Raises RuleError for a name that no field can have."""
    name = _read_name(fold(value.text), value)
    return MetaCondition(name, has_meta_text(name))


def has_meta_text(name: str) -> str:
    """Return the canonical ``has:meta.NAME``."""
    return f"has:{format_value(PREFIX + name)}"


def _read_name(operator: str, value: OperatorValue) -> str:
    name = operator.removeprefix(PREFIX)
    if not name or is_too_long(name):
        problem = f"the name of the field is {'too long' if name else 'missing'}"
        raise value.refusal(problem, f"meta. and a name of at most {MAX_BYTES} bytes")
    return name


def _operator(name: str) -> str:
    return f"{PREFIX}{name if re.fullmatch(PLAIN_NAME, name) else quote_value(name)}"


def _to_number(text: str) -> Number:
    return float(text) if "." in text else int(text)


def _canonical_number(text: str) -> str:
    """Return the text of a number without zeros at its end that say nothing."""
    short = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if short == "-0" else short


def _shown(field: MetaField) -> str:
    return quote_value(field.value[:40]) if isinstance(field.value, str) else number_text(field.value)
