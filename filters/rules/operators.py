"""The operators of the rule language in one table: what they take, what a rule may do with them, and what they find."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

from filters.registry import Registry
from filters.rules import attributes, geo, users, words
from filters.rules.condition import Condition, OperatorValue
from filters.rules.plugin import is_usable, parse_plugin_operator

MIN_SIMILARITY = 0.6
"""How alike (difflib's ratio, 0 to 1) a name is to that of an operator that may have been meant."""


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One operator.

    ``value`` is what stands behind its colon, or the whole of it where it has no name. ``standalone`` says that a rule
    may rest on it alone, ``negatable`` that a minus may stand before it, ``rule_wide`` that it is about the whole rule.
    """

    name: str
    value: str
    parse: Callable[[OperatorValue], Condition]
    help: str
    example: str
    aliases: tuple[str, ...] = ()
    standalone: bool = True
    negatable: bool = True
    rule_wide: bool = False


KEYWORD = OperatorSpec(
    "",
    "word",
    words.parse_keyword,
    "a word of the text, of its hashtags, mentions and links, or of the text that it quotes; an emoji is a word",
    "tea",
)
HASHTAG = OperatorSpec("", "#tag", words.parse_keyword, "the hashtag, exactly", "#tea")
MENTION = OperatorSpec("", "@login", words.parse_keyword, "the mention of this user", "@ada")
CASHTAG = OperatorSpec("", "$tag", words.parse_keyword, "the cashtag, exactly", "$TEA")
PHRASE = OperatorSpec(
    "",
    '"words"',
    words.parse_phrase,
    "these words right behind each other, whatever marks stand between",
    '"green tea"',
)
PROXIMITY = OperatorSpec(
    "",
    f'"words"~1…{words.MAX_DISTANCE}',
    words.parse_phrase,
    f"2 to {words.MAX_PROXIMITY_WORDS} words, moved by at most so many: in the order written that many others may stand between"
    " two of them, in the other order two fewer",
    '"tea cup"~2',
)
SPEC_BY_SIGN = {"#": HASHTAG, "\uff03": HASHTAG, "@": MENTION, "\uff20": MENTION, "$": CASHTAG, "\uff04": CASHTAG}
"""The row of a bare word by its first character."""

_NAMED_OPERATORS = (
    OperatorSpec(
        "from", "id or login", users.FromCondition.parse, "written by this user; all digits are an id", "from:ada"
    ),
    OperatorSpec("to", "id or login", users.ToCondition.parse, "an answer to this user", "to:ada"),
    OperatorSpec(
        "retweets_of",
        "id or login",
        users.RepostsOfCondition.parse,
        "repeats a status of this user without a word of its own",
        "retweets_of:ada",
        aliases=("reposts_of", "retweets_of_user"),
    ),
    OperatorSpec(
        "url",
        'word or "part of a link"',
        words.parse_link,
        "these parts of a link behind each other: it is cut at its marks, as the value is",
        'url:"example.com/tea"',
    ),
    OperatorSpec(
        "conversation_id",
        "id",
        attributes.parse_conversation,
        "in the thread that this status began",
        "conversation_id:12",
    ),
    OperatorSpec(
        "bio", 'word or "phrase"', words.parse_bio, "the author said so of themselves when it was posted", "bio:barista"
    ),
    OperatorSpec(
        "place", 'name or "name"', geo.parse_place, "posted from the place with this whole name", 'place:"New York"'
    ),
    OperatorSpec(
        "place_country",
        "two letters",
        geo.parse_country,
        "posted from this country (ISO 3166-1)",
        "place_country:gb",
    ),
    OperatorSpec(
        "point_radius",
        "[lon lat radius]",
        geo.parse_radius,
        f"posted within so many `km` or `mi` (below {geo.MAX_MILES} miles) of a point; without a point of its own, in a"
        " place that lies wholly inside",
        "point_radius:[2.35 48.86 10km]",
    ),
    OperatorSpec(
        "bounding_box",
        "[west south east north]",
        geo.parse_box,
        f"posted in the box, sides below {geo.MAX_MILES} miles; without a point of its own, in a place that lies wholly"
        " inside",
        "bounding_box:[2.2 48.8 2.5 48.95]",
    ),
    OperatorSpec(
        "is",
        ", ".join(attributes.FORMS),
        attributes.parse_form,
        "its form; `repost` and `retweet` are one",
        "is:reply",
        standalone=False,
    ),
    OperatorSpec(
        "has",
        ", ".join(attributes.HAS_VALUES),
        attributes.parse_has,
        "it has one of these",
        "has:media",
        standalone=False,
    ),
    OperatorSpec(
        "lang",
        "tag",
        attributes.parse_language,
        "in the language (BCP 47); `en` takes `en-GB`, `und` the unknown",
        "lang:en",
        standalone=False,
    ),
    *(
        OperatorSpec(
            name,
            "a, a.., a..b or ..b",
            partial(attributes.parse_count, name),
            f"the author's {count} when it was posted; one number is the least; the unknown never match",
            f"{name}:100..5000",
            aliases=("posts_count",) if count == "posts" else (),
            standalone=False,
        )
        for name, count in attributes.COUNT_FIELDS.items()
    ),
    OperatorSpec(
        "sample",
        "1 to 100",
        attributes.parse_sample,
        "a fixed percentage of all statuses, the same for everyone and that of the parameter `sample`; for the whole"
        " rule, so never inside OR",
        "sample:10",
        standalone=False,
        negatable=False,
        rule_wide=True,
    ),
)

_BY_NAME = {name: row for row in _NAMED_OPERATORS for name in (row.name, *row.aliases)}


def operator_specs() -> Iterator[OperatorSpec]:
    """All operators of the language itself, those without a name first."""
    yield from (KEYWORD, PHRASE, PROXIMITY, HASHTAG, MENTION, CASHTAG)
    yield from _NAMED_OPERATORS


def find_operator(name: str, registry: Registry) -> OperatorSpec | None:
    """The operator with this lower-case name, one of the language or an installed filter; None if there is none."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name not in registry.names():
        return None
    filter_class = registry.get(name)
    if not is_usable(filter_class):
        return None
    make = partial(parse_plugin_operator, filter_class)
    return OperatorSpec(name, "value", make, filter_class.help, f"{name}:…", standalone=filter_class.role == "any")


def suggest_operator(name: str, registry: Registry) -> str | None:
    """The operator that was probably meant by a name that is none; None if it is like none of them."""
    found = get_close_matches(name, [*_BY_NAME, *registry.names()], cutoff=MIN_SIMILARITY)
    return next((one for one in found if find_operator(one, registry)), None)
