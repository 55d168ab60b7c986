"""The table of all operators of the rule language: their values, how rules may use them, and what they find."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

from filters.registry import Registry
from filters.rules import attributes, geo, users, words
from filters.rules.condition import Condition, OperatorValue
from filters.rules.plugin import is_usable, parse_plugin_operator

MIN_SIMILARITY = 0.6
"""Minimum similarity (difflib's ratio, 0 to 1) of an unknown name to an operator that an error message suggests."""


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One row of the table of operators.

    Attributes:
        name: Name before the colon. Empty for operators such as words and hashtags.
        value: Form of the value after the colon, or of the whole operator if it has no name.
        parse: Function that makes the condition. Raises RuleError.
        help: What the operator finds, for the documentation.
        example: An example for the documentation.
        aliases: Other names.
        standalone: Whether the operator can be the only one of a branch.
        negatable: Whether a minus may stand before it.
        rule_wide: Whether it applies to the whole rule and so must not stand inside OR.
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
    "these words directly after each other, with any punctuation between them",
    '"green tea"',
)
PROXIMITY = OperatorSpec(
    "",
    f'"words"~1…{words.MAX_DISTANCE}',
    words.parse_phrase,
    f"2 to {words.MAX_PROXIMITY_WORDS} words, each moved by at most N: in the given order up to N other words may stand"
    " between two of them, in the reverse order up to N - 2",
    '"tea cup"~2',
)
SPEC_BY_SIGN = {"#": HASHTAG, "\uff03": HASHTAG, "@": MENTION, "\uff20": MENTION, "$": CASHTAG, "\uff04": CASHTAG}
"""The operators for words that begin with a sign, by this sign."""

_NAMED_OPERATORS = (
    OperatorSpec(
        "from",
        "id or login",
        users.FromCondition.parse,
        "written by this user; a value of digits only is an id",
        "from:ada",
    ),
    OperatorSpec("to", "id or login", users.ToCondition.parse, "an answer to this user", "to:ada"),
    OperatorSpec(
        "retweets_of",
        "id or login",
        users.RepostsOfCondition.parse,
        "a repost of a status of this user, without words of its own",
        "retweets_of:ada",
        aliases=("reposts_of", "retweets_of_user"),
    ),
    OperatorSpec(
        "url",
        'word or "part of a link"',
        words.parse_link,
        "these parts of a link directly after each other; the link and the value are split at punctuation",
        'url:"example.com/tea"',
    ),
    OperatorSpec(
        "conversation_id",
        "id",
        attributes.parse_conversation,
        "in the thread that begins with this status",
        "conversation_id:12",
    ),
    OperatorSpec(
        "bio",
        'word or "phrase"',
        words.parse_bio,
        "these words in the author's bio when the status was posted",
        "bio:barista",
    ),
    OperatorSpec(
        "place", 'name or "name"', geo.parse_place, "posted from the place with this full name", 'place:"New York"'
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
        f"posted within this radius in `km` or `mi` (below {geo.MAX_MILES} miles) of a point; a status without a point"
        " matches if its place lies wholly inside",
        "point_radius:[2.35 48.86 10km]",
    ),
    OperatorSpec(
        "bounding_box",
        "[west south east north]",
        geo.parse_box,
        f"posted in the box, whose sides are below {geo.MAX_MILES} miles; a status without a point matches if its place"
        " lies wholly inside",
        "bounding_box:[2.2 48.8 2.5 48.95]",
    ),
    OperatorSpec(
        "is",
        ", ".join(attributes.FORMS),
        attributes.parse_form,
        "a status of this form; `repost` and `retweet` mean the same",
        "is:reply",
        standalone=False,
    ),
    OperatorSpec(
        "has",
        ", ".join(attributes.HAS_VALUES),
        attributes.parse_has,
        "a status that has this",
        "has:media",
        standalone=False,
    ),
    OperatorSpec(
        "lang",
        "tag",
        attributes.parse_language,
        "in the language (BCP 47); `en` matches `en-GB`, `und` matches an unknown language",
        "lang:en",
        standalone=False,
    ),
    *(
        OperatorSpec(
            name,
            "a, a.., a..b or ..b",
            partial(attributes.parse_count, name),
            f"the author's {count} when it was posted; one number is the minimum; an unknown count never matches",
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
        "a fixed percentage of all statuses, the same ones as those of the parameter `sample`; applies to the whole"
        " rule, so it must not stand inside OR",
        "sample:10",
        standalone=False,
        negatable=False,
        rule_wide=True,
    ),
)

_BY_NAME = {name: row for row in _NAMED_OPERATORS for name in (row.name, *row.aliases)}


def operator_specs() -> Iterator[OperatorSpec]:
    """Return all operators of the language itself, first those without a name."""
    yield from (KEYWORD, PHRASE, PROXIMITY, HASHTAG, MENTION, CASHTAG)
    yield from _NAMED_OPERATORS


def find_operator(name: str, registry: Registry) -> OperatorSpec | None:
    """Return the operator with this lower-case name, or None. It belongs to the language or to an installed filter."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name not in registry.names():
        return None
    filter_class = registry.get(name)
    if not is_usable(filter_class):
        return None
    make = partial(parse_plugin_operator, filter_class)
    return OperatorSpec(
        name, "value", make, filter_class.help, f"{name}:…", standalone=filter_class.role == "combinable"
    )


def suggest_operator(name: str, registry: Registry) -> str | None:
    """Return the operator that a client probably meant by an unknown name, or None if no name is similar."""
    found = get_close_matches(name, [*_BY_NAME, *registry.names()], cutoff=MIN_SIMILARITY)
    return next((one for one in found if find_operator(one, registry)), None)
