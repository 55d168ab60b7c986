"""The table of all operators of the rule language: their values, how rules may use them, and what they find."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from filters.base import Filter, validate_index_terms
from filters.entities import Indices
from filters.error import ParameterError
from filters.event import Event
from filters.follow import ME, Follow
from filters.index_keys import IndexTerms
from filters.registry import Registry
from filters.rules import attributes, geo, meta, words
from filters.rules.condition import Condition, OperatorValue, format_value
from filters.suggestion import suggest
from filters.track import Track

ParseValue = Callable[[OperatorValue], Condition]


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One row of the table of rule operators.

    Attributes:
        name: Name before the colon. Empty for operators without a name, such as words and hashtags.
        value: Form of the value after the colon, or of the whole operator if it has no name, for the documentation.
        parse: Function that makes the condition from the value. Raises RuleError if the value is invalid.
        help: What the operator finds, for the documentation.
        standalone: Whether a rule, or one side of an OR, may consist of this operator alone.
        negatable: Whether a minus may stand before the operator.
        rule_wide: Whether the operator applies to the whole rule and so must not stand inside OR.
    """

    name: str
    value: str
    parse: ParseValue
    help: str
    example: str
    aliases: tuple[str, ...] = ()
    standalone: bool = True
    negatable: bool = True
    rule_wide: bool = False


_HELP = {
    "word": "a word of the text, of its hashtags, mentions and links, or of the text that it quotes",
    "phrase": "these words directly after each other",
    "proximity": f"2 to {words.MAX_PROXIMITY_WORDS} words, each moved by at most N",
    "from": "written by this user",
    "to": "an answer to this user",
    "retweets_of": "a repost of a status of this user, without words of its own",
    "url": "these parts of a link directly after each other",
    "conversation_id": "in the thread that begins with this status",
    "bio": "these words in the author's bio when the status was posted",
    "place": "posted from the place with this full name",
    "place_country": "posted from this country (ISO 3166-1)",
    "point_radius": f"posted within this radius (in `km` or `mi`, below {geo.MAX_MILES} miles)",
    "bounding_box": f"posted in the box, whose sides are below {geo.MAX_MILES} miles",
    "is": "a status of this form; `repost` and `retweet` mean the same",
    "has": "a status that has this",
    "lang": "in the language (BCP 47); `en` matches `en-GB`, `und` matches an unknown language",
    "sample": "the same percentage of all statuses as the parameter `sample`; it must not stand inside OR",
    **{
        name: f"the author's {count} when it was posted; one number is the minimum"
        for name, count in attributes.COUNT_FIELDS.items()
    },
}


KEYWORD = OperatorSpec("", "word", words.parse_keyword, _HELP["word"], "tea")
HASHTAG = OperatorSpec("", "#tag", words.parse_keyword, "the hashtag, exactly", "#tea")
MENTION = OperatorSpec("", "@login", words.parse_keyword, "the mention of this user", "@ada")
CASHTAG = OperatorSpec("", "$tag", words.parse_keyword, "the cashtag, exactly", "$TEA")
PHRASE = OperatorSpec("", '"words"', words.parse_phrase, _HELP["phrase"], '"green tea"')
PROXIMITY = OperatorSpec("", f'"words"~1…{words.MAX_DISTANCE}', words.parse_phrase, _HELP["proximity"], '"tea cup"~2')
SPEC_BY_SIGN = {"#": HASHTAG, "\uff03": HASHTAG, "@": MENTION, "\uff20": MENTION, "$": CASHTAG, "\uff04": CASHTAG}
"""The operators for words that begin with a sign, by this sign."""


def _named(name: str, value: str, parse: ParseValue, example: str, **options: Any) -> OperatorSpec:
    return OperatorSpec(name, value, parse, _HELP[name], f"{name}:{example}", **options)


def _user(name: str, **options: Any) -> OperatorSpec:
    return _named(name, "id or login", partial(attributes.parse_user, name), "ada", **options)


def _count(name: str, **options: Any) -> OperatorSpec:
    parse = partial(attributes.parse_count, name)
    return _named(name, "a, a.., a..b or ..b", parse, "100..5000", standalone=False, **options)


_NAMED_OPERATORS = (
    _user("from"),
    _user("to"),
    _user("retweets_of", aliases=("reposts_of", "retweets_of_user")),
    _named("url", 'word or "part of a link"', words.parse_link, '"example.com/tea"'),
    _named("conversation_id", "id", attributes.parse_conversation, "12"),
    _named("bio", 'word or "phrase"', words.parse_bio, "barista"),
    _named("place", 'name or "name"', geo.parse_place, '"New York"'),
    _named("place_country", "two letters", geo.parse_country, "gb"),
    _named("point_radius", "[lon lat radius]", geo.parse_radius, "[2.35 48.86 10km]"),
    _named("bounding_box", "[west south east north]", geo.parse_box, "[2.2 48.8 2.5 48.95]"),
    _named("is", ", ".join(attributes.FORMS), attributes.parse_form, "reply", standalone=False),
    _named("has", f"{', '.join(attributes.HAS_VALUES)}, meta.NAME", attributes.parse_has, "media", standalone=False),
    _named("lang", "tag", attributes.parse_language, "en", standalone=False),
    _count("followers_count"),
    _count("following_count"),
    _count("tweets_count", aliases=("posts_count",)),
    _named("sample", "1 to 100", attributes.parse_sample, "10", standalone=False, negatable=False, rule_wide=True),
)

_BY_NAME = {name: row for row in _NAMED_OPERATORS for name in (row.name, *row.aliases)}


def operator_specs() -> Iterator[OperatorSpec]:
    """Return all built-in rule operators, those without a name first. Operators of installed filters are left out."""
    yield from (KEYWORD, PHRASE, PROXIMITY, HASHTAG, MENTION, CASHTAG)
    yield from _NAMED_OPERATORS
    yield from (_meta("meta.NAME", is_range=is_range) for is_range in (False, True))


def usable_specs(registry: Registry) -> list[OperatorSpec]:
    """Return all operators that rules may use: the built-in ones, then those of installed filters, by name."""
    installed = (find_operator(name, registry) for name in registry.names() if name not in _BY_NAME)
    return [*operator_specs(), *(spec for spec in installed if spec is not None)]


def _meta(name: str, *, is_range: bool) -> OperatorSpec:
    """Return the operator for a field, whose ``name`` is ``meta.NAME``. A range cannot stand alone."""
    if not is_range:
        parse_value = partial(meta.parse_meta_value, name)
        return OperatorSpec(name, "text or number", parse_value, "this field of `meta` has this value", "meta.room:7")
    return OperatorSpec(
        name, "a.., a..b or ..b", partial(meta.parse_meta_range, name),
        "this field of `meta` has a number in the range", "meta.price:10..50", standalone=False,
    )  # fmt: skip


def find_operator(name: str, registry: Registry, *, is_range: bool = False) -> OperatorSpec | None:
    """Return the rule operator with this name, built-in or of an installed filter. None if there is none.

    ``name`` is in lower case. ``is_range`` says whether the value is a range: then ``meta.NAME`` is another operator.
    """
    if name.startswith(meta.PREFIX):
        return _meta(name, is_range=is_range)
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name not in registry.names():
        return None
    filter_class = registry.get(name)
    if not is_usable(filter_class):
        return None
    make, alone = partial(parse_plugin_operator, filter_class), filter_class.role == "combinable"
    return OperatorSpec(name, "value", make, filter_class.help, f"{name}:…", standalone=alone)


def suggest_operator(name: str, registry: Registry) -> str | None:
    """Return the name of a rule operator that is similar to the unknown ``name``, or None. For error messages."""
    first, dot, field = name.partition(".")
    known = [one for one in (*_BY_NAME, *registry.names()) if find_operator(one, registry)]
    meant = suggest(first, ["meta"] if dot else [*known, "meta"])
    return f"{meta.PREFIX}{field or 'NAME'}" if meant == "meta" else meant


class PluginCondition(Condition):
    """The condition of a rule operator that an installed filter provides. It stores the filter's index terms."""

    __slots__ = ("_terms", "filter")

    def __init__(self, parsed: Filter, value: str) -> None:
        super().__init__(f"{parsed.name}:{format_value(value)}")
        self.filter = parsed
        self._terms = validate_index_terms(parsed.index_terms())

    def matches(self, event: Event) -> bool:
        return bool(self.filter.matches(event))

    def index_terms(self) -> IndexTerms | None:
        return self._terms

    def describe(self, event: Event) -> str:
        return f"{self.filter.name} {'matches' if self.matches(event) else 'does not match'}"

    def indices(self, event: Event) -> list[Indices]:
        spans = (span for item in self.filter.explain(event) for span in item.get("indices", ()))
        return [(int(start), int(end)) for start, end in spans]


def is_usable(filter_class: type[Filter]) -> bool:
    """Whether rules may use the filter class: it is not standalone, needs no scope, and requires no other parameter."""
    excluded = filter_class.role == "standalone" or filter_class.scopes or filter_class.requires
    return filter_class.usable_in_rules and not excluded


def parse_plugin_operator(filter_class: type[Filter], value: OperatorValue) -> Condition:
    """Return the condition of an installed filter's operator. Raises RuleError if the filter refuses the value."""
    name = filter_class.name
    try:
        parsed = filter_class.parse(value.text)
        condition = PluginCondition(parsed, value.text)
    except ParameterError as error:
        raise value.refusal(error.message, f"a value of {name}") from error
    except Exception as error:
        raise value.refusal(f"{name} raised {type(error).__name__}", f"another value of {name}") from error
    if isinstance(parsed, Follow) and parsed.includes_me:
        raise value.refusal(f"{ME} is allowed only in the parameter follow", "user ids")
    if isinstance(parsed, Track) and parsed.unmatchable_terms:
        raise value.refusal(f"{parsed.unmatchable_terms[0]!r} can match no text", "a term that can")
    return condition
