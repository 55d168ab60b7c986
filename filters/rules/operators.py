"""The operators of the rule language in one table: what they take, what a rule may do with them, and what they find."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

from filters.registry import Registry
from filters.rules import facts, people, places, text
from filters.rules.condition import Condition, Written
from filters.rules.plugin import installed, usable

ALIKE = 0.6
"""How alike (difflib's ratio, 0 to 1) a name is to that of an operator that may have been meant."""


@dataclass(frozen=True, slots=True)
class Row:
    """One operator.

    ``value`` is what stands behind its colon, or the whole of it where it has no name. ``standalone`` says that a rule
    may rest on it alone, ``negatable`` that a minus may stand before it, ``whole`` that it is about the whole rule.
    """

    name: str
    value: str
    make: Callable[[Written], Condition]
    help: str
    example: str
    aliases: tuple[str, ...] = ()
    standalone: bool = True
    negatable: bool = True
    whole: bool = False


KEYWORD = Row(
    "",
    "word",
    text.keyword,
    "a word of the text, of its hashtags, mentions and links, or of the text that it quotes; an emoji is a word",
    "tea",
)
HASHTAG = Row("", "#tag", text.keyword, "the hashtag, exactly", "#tea")
MENTION = Row("", "@login", text.keyword, "the mention of this user", "@ada")
CASHTAG = Row("", "$tag", text.keyword, "the cashtag, exactly", "$TEA")
PHRASE = Row(
    "", '"words"', text.phrase, "these words right behind each other, whatever marks stand between", '"green tea"'
)
NEAR = Row(
    "",
    f'"words"~1…{text.REACH}',
    text.phrase,
    f"2 to {text.NEAR_WORDS} words, moved by at most so many: in the order written that many others may stand between"
    " two of them, in the other order two fewer",
    '"tea cup"~2',
)
SIGNS = {"#": HASHTAG, "\uff03": HASHTAG, "@": MENTION, "\uff20": MENTION, "$": CASHTAG, "\uff04": CASHTAG}
"""The row of a bare word by its first character."""

_NAMED = (
    Row("from", "id or login", people.From.parse, "written by this user; all digits are an id", "from:ada"),
    Row("to", "id or login", people.To.parse, "an answer to this user", "to:ada"),
    Row(
        "retweets_of",
        "id or login",
        people.RepostsOf.parse,
        "repeats a status of this user without a word of its own",
        "retweets_of:ada",
        aliases=("reposts_of", "retweets_of_user"),
    ),
    Row(
        "url",
        'word or "part of a link"',
        text.link,
        "these parts of a link behind each other: it is cut at its marks, as the value is",
        'url:"example.com/tea"',
    ),
    Row("conversation_id", "id", facts.conversation, "in the thread that this status began", "conversation_id:12"),
    Row("bio", 'word or "phrase"', text.bio, "the author said so of themselves when it was posted", "bio:barista"),
    Row("place", 'name or "name"', places.place, "posted from the place with this whole name", 'place:"New York"'),
    Row("place_country", "two letters", places.country, "posted from this country (ISO 3166-1)", "place_country:gb"),
    Row(
        "point_radius",
        "[lon lat radius]",
        places.circle,
        f"posted within so many `km` or `mi` (below {places.MILES} miles) of a point; without a point of its own, in a"
        " place that lies wholly inside",
        "point_radius:[2.35 48.86 10km]",
    ),
    Row(
        "bounding_box",
        "[west south east north]",
        places.rectangle,
        f"posted in the box, sides below {places.MILES} miles; without a point of its own, in a place that lies wholly"
        " inside",
        "bounding_box:[2.2 48.8 2.5 48.95]",
    ),
    Row(
        "is",
        ", ".join(facts.FORMS),
        facts.form,
        "its form; `repost` and `retweet` are one",
        "is:reply",
        standalone=False,
    ),
    Row("has", ", ".join(facts.HAS), facts.has, "it has one of these", "has:media", standalone=False),
    Row(
        "lang",
        "tag",
        facts.lang,
        "in the language (BCP 47); `en` takes `en-GB`, `und` the unknown",
        "lang:en",
        standalone=False,
    ),
    *(
        Row(
            name,
            "a, a.., a..b or ..b",
            partial(facts.count, name),
            f"the author's {count} when it was posted; one number is the least; the unknown never match",
            f"{name}:100..5000",
            aliases=("posts_count",) if count == "posts" else (),
            standalone=False,
        )
        for name, count in facts.COUNTS.items()
    ),
    Row(
        "sample",
        "1 to 100",
        facts.share,
        "a fixed percentage of all statuses, the same for everyone and that of the parameter `sample`; for the whole"
        " rule, so never inside OR",
        "sample:10",
        standalone=False,
        negatable=False,
        whole=True,
    ),
)

_BY_NAME = {name: row for row in _NAMED for name in (row.name, *row.aliases)}


def rows() -> Iterator[Row]:
    """All operators of the language itself, those without a name first."""
    yield from (KEYWORD, PHRASE, NEAR, HASHTAG, MENTION, CASHTAG)
    yield from _NAMED


def find(name: str, registry: Registry) -> Row | None:
    """The operator with this lower-case name, one of the language or an installed filter; None if there is none."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name not in registry.names():
        return None
    filter_class = registry.get(name)
    if not usable(filter_class):
        return None
    make = partial(installed, filter_class)
    return Row(name, "value", make, filter_class.help, f"{name}:…", standalone=filter_class.role == "any")


def resembles(name: str, registry: Registry) -> str | None:
    """The operator that was probably meant by a name that is none; None if it is like none of them."""
    found = get_close_matches(name, [*_BY_NAME, *registry.names()], cutoff=ALIKE)
    return next((one for one in found if find(one, registry)), None)
