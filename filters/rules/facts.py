"""Operators that look at what else is known of a status: its form, its language, its thread, its author's counts."""

import re
from collections.abc import Collection
from decimal import Decimal

from filters import key
from filters.event import Event
from filters.key import Clause, Key
from filters.language import UNDETERMINED
from filters.rules.condition import Condition, Written
from filters.rules.error import RuleError
from filters.sample import Sample, point

FORMS = {"reply": "reply", "retweet": "repost", "repost": "repost", "quote": "quote"}
"""What may stand behind ``is:``, and the form of a status that it asks for."""

HAS = ("hashtags", "cashtags", "links", "mentions", "media", "images", "video_link", "geo")
"""What may stand behind ``has:``."""

COUNTS = {"followers_count": "followers", "following_count": "following", "tweets_count": "posts"}
"""The operators on the author's counts, and which count they look at."""

_SHOWN_FORMS = {"repost": "retweet"}
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_ID = re.compile(r"[0-9]{1,20}")
_PERCENT = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,2})?")
_RANGE = re.compile(r"(?P<least>[0-9]{1,12})(?:\.\.(?P<most>[0-9]{1,12})?)?|\.\.(?P<below>[0-9]{1,12})")


class Keyed(Condition):
    """What an event says by one of its keys, and by nothing else; so its keys are looked at, which are made once."""

    __slots__ = ("key", "noun")

    def __init__(self, text: str, key: Key, noun: str) -> None:
        super().__init__(text)
        self.key = key
        self.noun = noun

    def keys(self) -> frozenset[Key]:
        return frozenset((self.key,))

    def clauses(self) -> Collection[Clause]:
        return [frozenset((self.key,))]

    def matches(self, event: Event) -> bool:
        return self.key in event.keys


class Form(Keyed):
    """``is:`` — a reply, a repost without words, a quote."""

    __slots__ = ()

    def __init__(self, form: str) -> None:
        super().__init__(f"is:{_SHOWN_FORMS.get(form, form)}", key.flag(f"is:{form}"), f"a {form}")

    def why(self, event: Event) -> str:
        return f"it is {'' if self.matches(event) else 'not '}{self.noun}"


class Has(Keyed):
    """``has:`` — a kind of entity, a kind of media, a place."""

    __slots__ = ()

    def __init__(self, what: str) -> None:
        super().__init__(f"has:{what}", key.flag(f"has:{what}"), what.replace("_", " "))

    def why(self, event: Event) -> str:
        return f"it has {'' if self.matches(event) else 'no '}{self.noun}"


class Lang(Keyed):
    """``lang:`` — the language, by BCP 47 tag: ``en`` takes ``en-GB`` too."""

    __slots__ = ()

    def __init__(self, tag: str) -> None:
        super().__init__(f"lang:{tag}", key.language(tag), tag)

    def why(self, event: Event) -> str:
        return f"the language is {event.lang or UNDETERMINED}" + ("" if self.matches(event) else f", not {self.noun}")


class Conversation(Keyed):
    """``conversation_id:`` — the thread, by the id of the status that began it."""

    __slots__ = ()

    def __init__(self, status_id: str) -> None:
        super().__init__(f"conversation_id:{status_id}", key.conversation(status_id), status_id)

    def why(self, event: Event) -> str:
        if event.conversation is None:
            return "it belongs to no thread"
        return f"it belongs to the thread {event.conversation}" + ("" if self.matches(event) else f", not {self.noun}")


class Count(Condition):
    """``followers_count:`` and its like — what the author had when it was posted; what is not known does not match."""

    __slots__ = ("count", "least", "most")

    def __init__(self, name: str, least: int, most: int | None) -> None:
        until = "" if most is None else f"..{most}"
        super().__init__(f"{name}:{least if least or not until else ''}{until}")
        self.count = COUNTS[name]
        self.least = least
        self.most = most

    def matches(self, event: Event) -> bool:
        found: int | None = getattr(event, self.count)
        return found is not None and self.least <= found and (self.most is None or found <= self.most)

    def why(self, event: Event) -> str:
        found: int | None = getattr(event, self.count)
        if found is None:
            return f"the author's {self.count} are not known"
        if found < self.least:
            return f"the author's {self.count} are {found}, below {self.least}"
        if self.most is not None and found > self.most:
            return f"the author's {self.count} are {found}, above {self.most}"
        return f"the author's {self.count} are {found}"


class Share(Condition):
    """``sample:`` — a fixed share of all statuses: that of the parameter ``sample``, of protected users too."""

    __slots__ = ("_sample",)

    def __init__(self, percent: Decimal) -> None:
        self._sample = Sample(percent)
        super().__init__(f"sample:{self._sample.percent:f}")

    def matches(self, event: Event) -> bool:
        return event.status_id is not None and self._sample.covers(point(event))

    def why(self, event: Event) -> str:
        return f"it is {'' if self.matches(event) else 'not '}in this share of all statuses"


def form(written: Written) -> Condition:
    """``is:``; raises RuleError."""
    found = FORMS.get(written.text.lower())
    if found is None:
        raise RuleError(
            f"nothing is {written.text[:40]!r}", column=written.column, expected=f"one of {', '.join(FORMS)}"
        )
    return Form(found)


def has(written: Written) -> Condition:
    """``has:``; raises RuleError."""
    if written.text.lower() not in HAS:
        raise RuleError(
            f"nothing has {written.text[:40]!r}", column=written.column, expected=f"one of {', '.join(HAS)}"
        )
    return Has(written.text.lower())


def lang(written: Written) -> Condition:
    """``lang:``; raises RuleError."""
    if not _LANGUAGE.fullmatch(written.text):
        raise RuleError(
            f"{written.text[:40]!r} is no language", column=written.column, expected="a tag such as en, pt-BR or und"
        )
    return Lang(written.text.lower())


def conversation(written: Written) -> Condition:
    """``conversation_id:``; raises RuleError."""
    if not _ID.fullmatch(written.text):
        raise RuleError(f"{written.text[:40]!r} is no id", column=written.column, expected="the id of a status")
    return Conversation(written.text)


def count(name: str, written: Written) -> Condition:
    """``followers_count:`` and its like; raises RuleError."""
    found = _RANGE.fullmatch(written.text)
    if found is None:
        raise RuleError(
            f"{written.text[:40]!r} is no range", column=written.column, expected="a number, or a range such as 10..500"
        )
    least, most = int(found["least"] or 0), found["most"] or found["below"]
    if most is not None and int(most) < least:
        raise RuleError("the range is empty", column=written.column, expected="the smaller number first")
    return Count(name, least, None if most is None else int(most))


def share(written: Written) -> Condition:
    """``sample:``; raises RuleError."""
    percent = Decimal(written.text) if _PERCENT.fullmatch(written.text) else Decimal(0)
    if not 1 <= percent <= 100:
        raise RuleError(
            f"{written.text[:40]!r} is no share",
            column=written.column,
            expected="a percentage from 1 to 100, with two decimal places at most",
        )
    return Share(percent)
