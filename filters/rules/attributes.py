"""Operators for other facts about a status: form, media, language, thread, counts of the author, and sample."""

import re
from collections.abc import Collection
from decimal import Decimal

from filters import index_keys
from filters.event import Event
from filters.index_keys import Clause, Key
from filters.language import LANGUAGE_TAG, UNDETERMINED
from filters.rules.condition import Condition, OperatorValue
from filters.rules.error import RuleError
from filters.sample import Sample, sample_position

FORMS = {"reply": "reply", "retweet": "repost", "repost": "repost", "quote": "quote"}
"""The values of ``is:`` and the form of a status that each one means."""

HAS_VALUES = ("hashtags", "cashtags", "links", "mentions", "media", "images", "video_link", "geo")
"""The values of ``has:``."""

COUNT_FIELDS = {"followers_count": "followers", "following_count": "following", "tweets_count": "posts"}
"""The operators for the author's counts, and the attribute of Event that each one reads."""

_SHOWN_FORMS = {"repost": "retweet"}
_ID = re.compile(r"[0-9]{1,20}")
_PERCENT = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,2})?")
_RANGE = re.compile(r"(?P<least>[0-9]{1,12})(?:\.\.(?P<most>[0-9]{1,12})?)?|\.\.(?P<below>[0-9]{1,12})")


class KeyCondition(Condition):
    """A condition that holds if and only if the event has one index key.

    It looks up the key, because the keys of an event are computed only once.
    """

    __slots__ = ("key", "noun")

    def __init__(self, text: str, key: Key, noun: str) -> None:
        super().__init__(text)
        self.key = key
        self.noun = noun

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset((self.key,))

    def exact_clauses(self) -> Collection[Clause]:
        return [frozenset((self.key,))]

    def matches(self, event: Event) -> bool:
        return self.key in event.index_keys


class FormCondition(KeyCondition):
    """The operator ``is:``. The status is a reply, a quote, or a repost without words of its own."""

    __slots__ = ()

    def __init__(self, form: str) -> None:
        super().__init__(f"is:{_SHOWN_FORMS.get(form, form)}", index_keys.flag_key(f"is:{form}"), f"a {form}")

    def describe(self, event: Event) -> str:
        return f"it is {'' if self.matches(event) else 'not '}{self.noun}"


class HasCondition(KeyCondition):
    """The operator ``has:``. The status has a kind of entity, a kind of media, or a location."""

    __slots__ = ()

    def __init__(self, feature: str) -> None:
        super().__init__(f"has:{feature}", index_keys.flag_key(f"has:{feature}"), feature.replace("_", " "))

    def describe(self, event: Event) -> str:
        return f"it has {'' if self.matches(event) else 'no '}{self.noun}"


class LanguageCondition(KeyCondition):
    """The operator ``lang:``. The language by BCP 47 tag; ``en`` also matches ``en-GB``."""

    __slots__ = ()

    def __init__(self, tag: str) -> None:
        super().__init__(f"lang:{tag}", index_keys.language_key(tag), tag)

    def describe(self, event: Event) -> str:
        return f"the language is {event.lang or UNDETERMINED}" + ("" if self.matches(event) else f", not {self.noun}")


class ConversationCondition(KeyCondition):
    """The operator ``conversation_id:``. The thread, by the id of its first status."""

    __slots__ = ()

    def __init__(self, status_id: str) -> None:
        super().__init__(f"conversation_id:{status_id}", index_keys.conversation_key(status_id), status_id)

    def describe(self, event: Event) -> str:
        if event.conversation is None:
            return "it belongs to no thread"
        return f"it belongs to the thread {event.conversation}" + ("" if self.matches(event) else f", not {self.noun}")


class CountCondition(Condition):
    """The operators ``followers_count:``, ``following_count:`` and ``tweets_count:``.

    They check the counts of the author when the status was posted. An unknown count never matches.
    """

    __slots__ = ("field", "maximum", "minimum")

    def __init__(self, name: str, minimum: int, maximum: int | None) -> None:
        until = "" if maximum is None else f"..{maximum}"
        super().__init__(f"{name}:{minimum if minimum or not until else ''}{until}")
        self.field = COUNT_FIELDS[name]
        self.minimum = minimum
        self.maximum = maximum

    def matches(self, event: Event) -> bool:
        found: int | None = getattr(event, self.field)
        return found is not None and self.minimum <= found and (self.maximum is None or found <= self.maximum)

    def describe(self, event: Event) -> str:
        found: int | None = getattr(event, self.field)
        if found is None:
            return f"the author's {self.field} are not known"
        if found < self.minimum:
            return f"the author's {self.field} are {found}, below {self.minimum}"
        if self.maximum is not None and found > self.maximum:
            return f"the author's {self.field} are {found}, above {self.maximum}"
        return f"the author's {self.field} are {found}"


class SampleCondition(Condition):
    """The operator ``sample:``. A fixed percentage of all statuses.

    It selects the same statuses as the parameter ``sample``, but also those of protected users.
    """

    __slots__ = ("_sample",)

    def __init__(self, percent: Decimal) -> None:
        self._sample = Sample(percent)
        super().__init__(f"sample:{self._sample.percent:f}")

    def matches(self, event: Event) -> bool:
        return event.status_id is not None and self._sample.contains_position(sample_position(event))

    def describe(self, event: Event) -> str:
        return f"it is {'' if self.matches(event) else 'not '}in this sample of all statuses"


def parse_form(value: OperatorValue) -> Condition:
    """Parse the value of ``is:``. Raises RuleError."""
    found = FORMS.get(value.text.lower())
    if found is None:
        raise RuleError(
            f"unknown value of is: {value.text[:40]!r}", column=value.column, expected=f"one of {', '.join(FORMS)}"
        )
    return FormCondition(found)


def parse_has(value: OperatorValue) -> Condition:
    """Parse the value of ``has:``. Raises RuleError."""
    if value.text.lower() not in HAS_VALUES:
        raise RuleError(
            f"unknown value of has: {value.text[:40]!r}",
            column=value.column,
            expected=f"one of {', '.join(HAS_VALUES)}",
        )
    return HasCondition(value.text.lower())


def parse_language(value: OperatorValue) -> Condition:
    """Parse the value of ``lang:``. Raises RuleError."""
    if not LANGUAGE_TAG.fullmatch(value.text):
        raise RuleError(
            f"{value.text[:40]!r} is not a language tag", column=value.column, expected="a tag such as en, pt-BR or und"
        )
    return LanguageCondition(value.text.lower())


def parse_conversation(value: OperatorValue) -> Condition:
    """Parse the value of ``conversation_id:``. Raises RuleError."""
    if not _ID.fullmatch(value.text):
        raise RuleError(f"{value.text[:40]!r} is not an id", column=value.column, expected="the id of a status")
    return ConversationCondition(value.text)


def parse_count(name: str, value: OperatorValue) -> Condition:
    """Parse the value of the count operator ``name``: a minimum or a range. Raises RuleError."""
    found = _RANGE.fullmatch(value.text)
    if found is None:
        raise RuleError(
            f"{value.text[:40]!r} is not a range", column=value.column, expected="a number, or a range such as 10..500"
        )
    least, most = int(found["least"] or 0), found["most"] or found["below"]
    if most is not None and int(most) < least:
        raise RuleError("the range is empty", column=value.column, expected="the smaller number first")
    return CountCondition(name, least, None if most is None else int(most))


def parse_sample(value: OperatorValue) -> Condition:
    """Parse the value of ``sample:``. Raises RuleError."""
    percent = Decimal(value.text) if _PERCENT.fullmatch(value.text) else Decimal(0)
    if not 1 <= percent <= 100:
        raise RuleError(
            f"{value.text[:40]!r} is not a percentage",
            column=value.column,
            expected="a percentage from 1 to 100, with two decimal places at most",
        )
    return SampleCondition(percent)
