"""Operators for the users, the form, the language, the thread and other facts of a status."""

import re
from decimal import Decimal
from operator import attrgetter

from filters import index_keys
from filters.event import Event
from filters.follow import USER_ID
from filters.index_keys import UNDETERMINED, IndexTerms, wanted_language_keys
from filters.narrowing import is_language_tag
from filters.rules.condition import Condition, KeyCondition, OperatorValue
from filters.rules.meta import PREFIX, parse_has_meta
from filters.sample import Sample, sample_position
from filters.suggestion import did_you_mean
from filters.tables import present_tag, suggest_tags
from filters.tokens import fold

FORMS = {"reply": "reply", "retweet": "repost", "repost": "repost", "quote": "quote"}
"""The values of ``is:`` and the form of a status that each one means."""

HAS_VALUES = ("hashtags", "cashtags", "links", "mentions", "media", "images", "video_link", "geo")

COUNT_FIELDS = {"followers_count": "followers", "following_count": "following", "tweets_count": "posts"}
"""The operators for the author's counts, and the attribute of Event that each one reads."""

USER_FIELDS = {
    "from": ("written by", attrgetter("author", "author_login")),
    "to": ("it answers", attrgetter("reply_to", "reply_to_login")),
    "retweets_of": ("it reposts", attrgetter("reposted_author", "reposted_author_login")),
}
"""For each operator on a user: what the status does with this user, and a function for the user's id and login."""
_LOGIN = re.compile(r"[A-Za-z0-9_]{1,20}")
_PERCENT = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,2})?")
_RANGE = re.compile(r"(?P<least>[0-9]{1,12})(?:\.\.(?P<most>[0-9]{1,12})?)?|\.\.(?P<below>[0-9]{1,12})")


class UserCondition(Condition):
    """The rule operators ``from:``, ``to:`` and ``retweets_of:``: a status that concerns one user, by id or by login.

    ``from:`` finds statuses by the user, ``to:`` answers to the user, and ``retweets_of:`` reposts of the user's
    statuses without words of their own. A value of digits only is an id, any other value is a login.
    """

    __slots__ = ("_user_of", "_verb", "is_id", "user")

    def __init__(self, name: str, user: str) -> None:
        super().__init__(f"{name}:{user}")
        self.user = user
        self._verb, self._user_of = USER_FIELDS[name]
        self.is_id = USER_ID.fullmatch(user) is not None

    def matches(self, event: Event) -> bool:
        uid, login = self._user_of(event)
        return bool(uid == self.user if self.is_id else login is not None and fold(login) == self.user)

    def index_terms(self) -> IndexTerms:
        key = index_keys.user_key(self.user) if self.is_id else index_keys.LOGIN + self.user
        return IndexTerms((), [frozenset((key,))])

    def describe(self, event: Event) -> str:
        uid, login = self._user_of(event)
        named = uid if self.is_id or login is None else login
        if named is None:
            return f"{self._verb} no known user"
        return f"{self._verb} {named}" + ("" if self.matches(event) else f", not {self.user}")


class CountCondition(Condition):
    """The rule operators ``followers_count:``, ``following_count:`` and ``tweets_count:``.

    They check the author's counts when the status was posted. If a count is unknown, the operator does not match.
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
    """The rule operator ``sample:``. It finds the same share as the parameter ``sample``, protected statuses too."""

    __slots__ = ("_sample",)

    def __init__(self, percent: Decimal) -> None:
        self._sample = Sample(percent)
        super().__init__(f"sample:{self._sample.percent:f}")

    def matches(self, event: Event) -> bool:
        return event.status_id is not None and self._sample.contains_position(sample_position(event))

    def describe(self, event: Event) -> str:
        return f"it is {'' if self.matches(event) else 'not '}in this sample of all statuses"


def parse_user(name: str, value: OperatorValue) -> Condition:
    """Return the condition of ``from:``, ``to:`` or ``retweets_of:``. Raises RuleError for an invalid id or login."""
    if not _LOGIN.fullmatch(value.text):
        raise value.refusal(f"{value.text[:40]!r} is not a user id or login", "a user's id, or a login without @")
    return UserCondition(name, fold(value.text))


def parse_form(value: OperatorValue) -> Condition:
    """Return the condition of the rule operator ``is:``, such as ``is:reply``. Raises RuleError for another value."""
    form = FORMS.get(value.text.lower())
    if form is None:
        expected = f"one of {', '.join(FORMS)}{did_you_mean(value.text, FORMS)}"
        raise value.refusal(f"unknown value of is: {value.text[:40]!r}", expected)
    reasons = f"it is a {form}", f"it is not a {form}"
    shown = "retweet" if form == "repost" else form
    return KeyCondition(f"is:{shown}", (f"{index_keys.FLAG}is:{form}",), lambda _: reasons)


def parse_has(value: OperatorValue) -> Condition:
    """Return the condition of a rule operator such as ``has:media``. Raises RuleError for an unknown value."""
    feature = value.text.lower()
    if feature.startswith(PREFIX):
        return parse_has_meta(value)
    if feature not in HAS_VALUES:
        expected = f"one of {', '.join((*HAS_VALUES, 'meta.NAME'))}{did_you_mean(value.text, HAS_VALUES)}"
        raise value.refusal(f"unknown value of has: {value.text[:40]!r}", expected)
    noun = feature.replace("_", " ")
    reasons = f"it has {noun}", f"it has no {noun}"
    return KeyCondition(f"has:{feature}", (f"{index_keys.FLAG}has:{feature}",), lambda _: reasons)


def parse_language(value: OperatorValue) -> Condition:
    """Return the condition of a rule operator such as ``lang:en``. Raises RuleError for an invalid BCP 47 tag."""
    if not is_language_tag(value.text):
        raise value.refusal(f"{value.text[:40]!r} is not a language", suggest_tags(value.text))
    tag = present_tag(value.text)

    def describe(event: Event) -> tuple[str, str]:
        found = f"the language is {event.lang or UNDETERMINED}"
        return found, f"{found}, not {tag}"

    return KeyCondition(f"lang:{tag}", wanted_language_keys(tag), describe)


def parse_conversation(value: OperatorValue) -> Condition:
    """Return the condition of the rule operator ``conversation_id:``. Raises RuleError for an invalid status id."""
    thread = value.text
    if not (thread.isascii() and thread.isdecimal()) or len(thread) > 20:
        raise value.refusal(f"{thread[:40]!r} is not an id", "the id of a status")

    def describe(event: Event) -> tuple[str, str]:
        found = "no thread" if event.conversation is None else f"the thread {event.conversation}, not {thread}"
        return f"it belongs to the thread {thread}", f"it belongs to {found}"

    return KeyCondition(f"conversation_id:{thread}", (index_keys.CONVERSATION + thread,), describe)


def parse_count(name: str, value: OperatorValue) -> Condition:
    """Return the condition of an operator such as ``followers_count:10..500``. Raises RuleError for a bad range."""
    found = _RANGE.fullmatch(value.text)
    if found is None:
        raise value.refusal(f"{value.text[:40]!r} is not a range", "a number, or a range such as 10..500")
    least, most = int(found["least"] or 0), found["most"] or found["below"]
    if most is not None and int(most) < least:
        raise value.refusal("the range is empty", "the smaller number first")
    return CountCondition(name, least, None if most is None else int(most))


def parse_sample(value: OperatorValue) -> Condition:
    """Return the condition of the rule operator ``sample:``. Raises RuleError unless the value is 1 to 100 percent."""
    percent = Decimal(value.text) if _PERCENT.fullmatch(value.text) else Decimal(0)
    if not 1 <= percent <= 100:
        expected = "a percentage from 1 to 100, with two decimal places at most"
        raise value.refusal(f"{value.text[:40]!r} is not a percentage", expected)
    return SampleCondition(percent)
