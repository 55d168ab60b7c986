"""A second, independent implementation of the rule language: plain and slow.

It takes a status as the API returned it, and the facts about its author at the time of the post. One pattern cuts a
rule into tokens. The shunting-yard algorithm puts them into postfix order. Then each operator is evaluated on the
status, without any index.

The documents leave some cases open. Here an unknown value is in no range. A quote has the words, tags, names and links
of its original too. A repost without words has its original's text and the reposting user as author.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import regex  # type: ignore[import-untyped]  # it has no types

from filters.entities import extract_entities
from tests import reference, reference_meta
from tests.reference import Status, fold

Facts: TypeAlias = Mapping[str, Any]
Test: TypeAlias = Callable[["Seen", str], bool]

Words: TypeAlias = tuple[tuple[str, bool], ...]
"""The words of a text in order, and whether each stands right behind the one before without even a mark between."""

KM_PER_MILE = 1.609344
EARTH_KM = 6371.0088
MAX_MILES = 25.0
MAX_DEPTH = 32
MAX_LENGTH = 1024

LEXEME = regex.compile(
    r'(?:\s|\p{DI})*(?:([()])|(-?(?:(?i:meta\.(?:"[^"]+"|[^\s()":]+):)|[a-z_]+:|(?i:has:))?(?:"[^"]*"(?:~\d+)?|\[[^\]]*\]|[^\s()"\[\]]+)))'
)
SIGNS = {"#": "tag", "\uff03": "tag", "@": "mention", "\uff20": "mention", "$": "cashtag", "\uff04": "cashtag"}
PRECEDENCE = {"AND": 2, "OR": 1, "(": 0}


class NoRule(ValueError):
    """The text is not a valid rule."""


class Text:
    def __init__(self, status: Status) -> None:
        self.entities = status["entities"]
        self.terms = reference.tokens(status)
        self.runs = reference.runs(status)
        self.words = _sequence_around(status["message"], status["entities"])

    def says(self, term: str) -> bool:
        return reference.is_said(term, self.terms, self.runs, "")

    def saysin_a_row(self, words: "Words") -> bool:
        return in_a_row(words, self.words)


class Seen:
    """A status, and the facts about its author that rules test."""

    def __init__(self, status: Status, facts: Facts) -> None:
        self.status = status
        self.facts = facts
        self.author: Facts = facts.get("author", {})
        original = status.get("original")
        self.reposted = original if reference.is_repost(status) else None
        self.shown: Status = self.reposted or status
        self.texts = [Text(self.shown)] + ([Text(original)] if original and not self.reposted else [])

    @property
    def leaves(self) -> list[reference_meta.Leaf]:
        return reference_meta.leaves(self.shown["meta"])

    @property
    def place(self) -> Mapping[str, Any]:
        return {} if self.reposted else self.status["place"] or {}

    @property
    def point(self) -> tuple[float, float] | None:
        location = None if self.reposted else self.status["location"]
        return (location["lon"], location["lat"]) if location else None


class Operand(NamedTuple):
    name: str
    value: str
    negated: bool

    @property
    def standalone(self) -> bool:
        return not self.negated and self.name in STANDALONE

    def holds(self, seen: Seen) -> bool:
        return TESTS[self.name](seen, self.value) is not self.negated


class Pair(NamedTuple):
    sign: str
    left: "Part"
    right: "Part"

    @property
    def standalone(self) -> bool:
        """A conjunction needs one standalone part. An alternative needs both."""
        both = (self.left.standalone, self.right.standalone)
        return any(both) if self.sign == "AND" else all(both)

    def holds(self, seen: Seen) -> bool:
        both = (self.left.holds(seen), self.right.holds(seen))
        return all(both) if self.sign == "AND" else any(both)


Part: TypeAlias = Operand | Pair


def matches(rule: str, status: Status, facts: Facts) -> bool:
    return parsed(rule).holds(Seen(status, facts))


def parsed(rule: str) -> Part:
    if len(rule) > MAX_LENGTH:
        raise NoRule("too long")
    part = _built(_behind(_with_ands(_lexemes(rule))))
    if not part.standalone:
        raise NoRule("nothing in it stands alone")
    _check_samples(part, alternative=False)
    return part


def _lexemes(rule: str) -> list[str]:
    found, at, rule = [], 0, regex.sub(r"(?:\s|\p{DI})+\Z", "", rule)
    while at < len(rule):
        match = LEXEME.match(rule, at)
        if match is None:
            raise NoRule(f"nothing known at {at}")
        found.append(match[1] or match[2])
        at = match.end()
    return found


def _with_ands(lexemes: list[str]) -> list[str]:
    """Insert AND between adjacent operands."""
    told: list[str] = []
    for lexeme in lexemes:
        if lexeme in ("AND", "NOT"):
            raise NoRule("this is said in another way")
        if told and told[-1] not in ("OR", "(") and lexeme not in ("OR", ")"):
            told.append("AND")
        told.append(lexeme)
    return told


def _behind(lexemes: Iterable[str]) -> list[str]:
    """Convert to postfix order by the shunting-yard algorithm."""
    told: list[str] = []
    waiting: list[str] = []
    for lexeme in lexemes:
        if lexeme == "(":
            waiting.append(lexeme)
        elif lexeme == ")":
            while waiting and waiting[-1] != "(":
                told.append(waiting.pop())
            if not waiting:
                raise NoRule("closed, but never opened")
            waiting.pop()
        elif lexeme in PRECEDENCE:
            while waiting and PRECEDENCE[waiting[-1]] >= PRECEDENCE[lexeme]:
                told.append(waiting.pop())
            waiting.append(lexeme)
        else:
            told.append(lexeme)
        if waiting.count("(") > MAX_DEPTH:
            raise NoRule("too deep")
    if "(" in waiting:
        raise NoRule("opened, but never closed")
    return told + waiting[::-1]


def _built(lexemes: Iterable[str]) -> Part:
    stack: list[Part] = []
    for lexeme in lexemes:
        if lexeme in PRECEDENCE:
            if len(stack) < 2:
                raise NoRule(f"{lexeme} joins two")
            right, left = stack.pop(), stack.pop()
            stack.append(Pair(lexeme, left, right))
        else:
            stack.append(_operand(lexeme))
    if len(stack) != 1:
        raise NoRule("not one thing")
    return stack[0]


def _operand(lexeme: str) -> Operand:
    negated, bare = lexeme.startswith("-"), lexeme.removeprefix("-")
    name, colon, value = bare.partition(":")
    if meta := re.fullmatch(r'(?is)meta\.(".+?"|[^":]+):(.+)', bare):
        is_range = ".." in meta[2] and meta[2][0] != '"'
        name, value = "meta range" if is_range else "meta", f"{_unquoted(meta[1])}\0{_unquoted(meta[2])}"
    elif re.match('(?i)has:"?meta', bare):
        name, value = "has meta", _unquoted(value)
    elif bare.startswith('"'):
        name, value = ("near" if "~" in bare.rpartition('"')[2] else "phrase"), bare
    elif not colon:
        name, value = SIGNS.get(bare[:1], "word"), bare
    value = reference.visible(value)
    if is_one_picture(value) and name == "tag":
        name = "word"  # the key of this sign
    name = ALIASES.get(name, name)
    if name not in VALUES or not re.fullmatch(VALUES[name], value) or not _sensible(name, value):
        raise NoRule(f"no operator: {lexeme}")
    return Operand(name, value, negated)


def _check_samples(part: Part, *, alternative: bool) -> None:
    """`sample` must apply to the whole rule: not inside an OR, and not negated."""
    if isinstance(part, Pair):
        for one in (part.left, part.right):
            _check_samples(one, alternative=alternative or part.sign == "OR")
    elif part.name == "sample" and (alternative or part.negated):
        raise NoRule("a sample of a part")


def _sensible(name: str, value: str) -> bool:
    if name == "word":
        return all(map(reference.is_word_character, value)) or is_one_picture(value)
    if name == "near":
        return 2 <= len(sequence(_unquoted(value))) <= 10
    if name in ("phrase", "bio", "url"):
        return bool(sequence(_unquoted(value)))
    if name == "sample":
        return 1 <= float(value) <= 100
    if name.endswith("_count") or name == "meta range":
        low, high = _range(value.rpartition("\0")[2])
        return low <= high
    return name not in ("bounding_box", "point_radius") or _on_earth(name, _numbers(value))


def is_one_picture(value: str) -> bool:
    folded = fold(value)
    return reference.pictures(folded) == ((0, len(folded)),)


def _on_earth(name: str, numbers: list[float]) -> bool:
    longitudes, latitudes = (numbers[:1], numbers[1:2]) if name == "point_radius" else (numbers[::2], numbers[1::2])
    if not all(abs(lon) <= 180 for lon in longitudes) or not all(abs(lat) <= 90 for lat in latitudes):
        return False
    if name == "point_radius":
        return 0 < numbers[2] < MAX_MILES * KM_PER_MILE
    west, south, east, north = numbers
    wide = distance_km((west, south), (east, south)), distance_km((west, north), (east, north))
    return (
        west < east
        and south < north
        and max(*wide, distance_km((west, south), (west, north))) < MAX_MILES * KM_PER_MILE
    )


def _numbers(value: str) -> list[float]:
    """Return the numbers in the brackets, with a radius in kilometres."""
    *plain, last = value.strip("[] ").split()
    mile = KM_PER_MILE if last.endswith("mi") else 1.0
    return [*map(float, plain), float(last.removesuffix("mi").removesuffix("km")) * mile]


def _range(value: str) -> tuple[float, float]:
    low, _, high = value.partition("..")
    return float(low or "-inf"), float(high or "inf")


def _unquoted(value: str) -> str:
    return value.partition("~")[0].strip('"') if value.startswith('"') else value


def sequence(text: str) -> Words:
    """Return the words of a phrase or bio, whose entities are those of a status with this text."""
    found = extract_entities(text)._asdict()
    return _sequence_around(text, {name: [one._asdict() for one in family] for name, family in found.items()})


def _sequence_around(text: str, entities: Mapping[str, Any]) -> Words:
    """Return the words of a text: each entity has words of its own, which touch none beside them."""
    words: list[tuple[str, bool]] = []
    at = 0
    named = [(entity["indices"], name, entity) for name, family in entities.items() for entity in family]
    for (start, end), name, entity in sorted(named, key=lambda one: one[0]):
        words += _sequence_of_plain(text[at:start])
        if name == "cashtags":
            words.append((fold("$" + entity["text"]), False))
        else:
            words += _sequence_of_plain(entity.get("login") or entity.get("expanded_url") or entity["text"])
        at = end
    return (*words, *_sequence_of_plain(text[at:]))


def _sequence_of_plain(text: str) -> Words:
    """Return the words of a text. The beginning of a link is left out, because links are compared without it."""
    return sequence_of_link(re.sub(r"(?a)(?<!\w)(?i:https?://www\.|https?://|www\.)(?=(?u:\w))", " ", text))


@lru_cache(maxsize=20_000)
def sequence_of_link(text: str) -> Words:
    """Return all words. A pictograph and a character of a script without spaces are words of their own."""
    folded = fold(text)
    apart = [*reference.pictures(folded)]
    inside = {at for start, end in apart for at in range(start, end)}
    apart += [(at, at + 1) for at, c in enumerate(folded) if at not in inside and reference.is_unspaced(c)]
    single = {at for start, end in apart for at in range(start, end)}
    rest = "".join(c if at not in single and reference.is_word_character(c) else " " for at, c in enumerate(folded))
    spans = sorted([*apart, *(word.span() for word in re.finditer(r"\S+", rest))])
    found = []
    for nth, (start, end) in enumerate(spans):
        two = spans[nth - 1 : nth + 1] if nth else []
        touching = len(two) == 2 and two[0][1] == start and not any(at in inside for at in (start, start - 1))
        found.append((folded[start:end], touching))
    return tuple(found)


def distance_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    (lon, lat), (other_lon, other_lat) = (tuple(map(math.radians, p)) for p in (a, b))
    half = math.sin((other_lat - lat) / 2) ** 2
    half += math.cos(lat) * math.cos(other_lat) * math.sin((other_lon - lon) / 2) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(half))


# What each operator asks.


def in_a_row(words: Words, said: Words) -> bool:
    return any(_begins(words, said[i : i + len(words)]) for i in range(len(said)))


def _begins(words: Words, said: Words) -> bool:
    """Whether the words are those of the text, and none is parted there that the phrase joins to the one before."""
    pairs = list(zip(words, said, strict=False))
    return len(said) == len(words) and all(
        word == other and (nth == 0 or apart or not joined)
        for nth, ((word, joined), (other, apart)) in enumerate(pairs)
    )


def _says(seen: Seen, term: str) -> bool:
    return any(text.says(fold(term)) for text in seen.texts)


def _says_phrase(seen: Seen, value: str) -> bool:
    words = sequence(_unquoted(value))
    return any(text.saysin_a_row(words) for text in seen.texts)


def _says_near(seen: Seen, value: str) -> bool:
    words = sequence(_unquoted(value))
    most = int(value.rpartition("~")[2])
    return any(_near(words, most, text.words) for text in seen.texts)


def _near(words: Words, most: int, said: Words) -> bool:
    """Whether the words occur within ``most`` moves from the phrase. Two words in reverse order are two moves."""
    places = [[i for i, (word, _) in enumerate(said) if word == wanted] for wanted, _ in words]
    for taken in product(*places):
        moved = [place - i for i, place in enumerate(taken)]
        if len(set(taken)) == len(taken) and max(moved) - min(moved) <= most:
            return True
    return False


def _is_who(uid: str | None, login: str | None, value: str) -> bool:
    return value == uid if value.isdecimal() else login is not None and fold(value) == fold(login)


def _from(seen: Seen, value: str) -> bool:
    return _is_who(seen.status["uid"], seen.status["login"], value)


def _to(seen: Seen, value: str) -> bool:
    return _is_who(seen.status["in_reply_to_uid"], seen.facts.get("reply_to_login"), value)


def _reposts_of(seen: Seen, value: str) -> bool:
    return seen.reposted is not None and _is_who(seen.reposted["uid"], seen.reposted["login"], value)


def _links(seen: Seen, value: str) -> bool:
    words = sequence_of_link(_bare(_unquoted(value)))
    urls = [url for text in seen.texts for url in text.entities["urls"]]
    forms = [_bare(url[form]) for url in urls for form in ("expanded_url", "display_url")]
    return any(in_a_row(words, sequence_of_link(form)) for form in forms)


def _bare(link: str) -> str:
    return link.split("://", 1)[-1].removeprefix("www.")


def _in_circle(seen: Seen, value: str) -> bool:
    lon, lat, radius = _numbers(value)
    return _enclosed(seen, lambda point: distance_km((lon, lat), point) <= radius)


def _in_box(seen: Seen, value: str) -> bool:
    west, south, east, north = _numbers(value)
    return _enclosed(seen, lambda point: west <= point[0] <= east and south <= point[1] <= north)


def _enclosed(seen: Seen, inside: Callable[[tuple[float, float]], bool]) -> bool:
    """Decide by the point, or by all four corners of the place, which must not cross the date line."""
    if seen.point is not None:
        return inside(seen.point)
    box = seen.place.get("box")
    if box is None or box[0] > box[2]:
        return False
    west, south, east, north = box
    return all(inside(corner) for corner in ((west, south), (west, north), (east, south), (east, north)))


def _forms(seen: Seen, value: str) -> bool:
    return {
        "reply": seen.status["in_reply_to"] is not None,
        "repost": reference.is_repost(seen.status),
        "retweet": reference.is_repost(seen.status),
        "quote": seen.status["origin"] is not None and not reference.is_repost(seen.status),
    }[value]


def _has(seen: Seen, value: str) -> bool:
    entities, media = seen.shown["entities"], {one["type"] for one in seen.shown["media"]}
    return bool(
        {
            "hashtags": entities["hashtags"],
            "cashtags": entities["cashtags"],
            "links": entities["urls"],
            "mentions": entities["mentions"],
            "media": media,
            "images": media & {"image"},
            "video_link": media & {"video", "gif"},
            "geo": seen.point or seen.place,
        }[value]
    )


def _counted(member: str) -> Test:
    def test(seen: Seen, value: str) -> bool:
        low, high = _range(value)
        count = seen.author.get(member)
        return count is not None and low <= count <= high

    return test


def _bio(seen: Seen, value: str) -> bool:
    return in_a_row(sequence(_unquoted(value)), sequence(seen.author.get("bio", "")))


def _place(seen: Seen, value: str) -> bool:
    return fold(seen.place.get("name") or "") == fold(_unquoted(value))


def _country(seen: Seen, value: str) -> bool:
    return (seen.place.get("country") or "").lower() == value.lower()


_QUOTED = r'"[^"]+"'
_NUMBER = r"[-+]?\d+(\.\d+)?"
_COUNT = r"\d+|\d+\.\.|\.\.\d+|\d+\.\.\d+"

ALIASES = {"retweets_of_user": "retweets_of", "reposts_of": "retweets_of", "posts_count": "tweets_count"}

VALUES = {
    "word": r'[^\s()"\[\]:]+',
    "phrase": _QUOTED,
    "near": _QUOTED + r"~[1-6]",
    "tag": r"[#\uff03]\w+",
    "mention": r"[@\uff20]\w+",
    "cashtag": r"[$\uff04][A-Za-z]+",
    **dict.fromkeys(("from", "to", "retweets_of"), r"\w+"),
    **dict.fromkeys(("url", "place", "bio"), rf"\w+|{_QUOTED}"),
    "conversation_id": r"\d+",
    "place_country": "[A-Za-z]{2}",
    "point_radius": rf"\[\s*{_NUMBER}\s+{_NUMBER}\s+\d+(\.\d+)?(km|mi)\s*\]",
    "bounding_box": rf"\[\s*({_NUMBER}\s+){{3}}{_NUMBER}\s*\]",
    "is": "reply|repost|retweet|quote",
    "meta": "(?s).+\0.+",
    "meta range": r"(?s).+\0(-?\d+(\.\d+)?\.\.(-?\d+(\.\d+)?)?|\.\.-?\d+(\.\d+)?)",
    "has meta": r"(?i)meta\..+",
    "has": "hashtags|cashtags|links|mentions|media|images|video_link|geo",
    "lang": r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*",
    "sample": r"\d+(\.\d{1,2})?",
    **dict.fromkeys(("followers_count", "following_count", "tweets_count"), _COUNT),
}
"""The patterns of the values of each operator."""

STANDALONE = VALUES.keys() - {
    "is",
    "has",
    "has meta",
    "meta range",
    "lang",
    "sample",
    "followers_count",
    "following_count",
    "tweets_count",
}

TESTS: dict[str, Test] = {
    **dict.fromkeys(("word", "tag", "mention", "cashtag"), _says),
    "phrase": _says_phrase,
    "near": _says_near,
    "from": _from,
    "to": _to,
    "retweets_of": _reposts_of,
    "url": _links,
    "conversation_id": lambda seen, value: seen.status["conversation"] == value,
    "place": _place,
    "place_country": _country,
    "point_radius": _in_circle,
    "bounding_box": _in_box,
    "is": _forms,
    "has": _has,
    "lang": lambda seen, value: reference.speaks(seen.shown, value),
    "sample": lambda seen, value: reference.sampled(seen.status["id"], value),
    "followers_count": _counted("followers"),
    "following_count": _counted("following"),
    "tweets_count": _counted("posts"),
    "bio": _bio,
    "meta": lambda seen, value: reference_meta.equals(seen.leaves, *value.split("\0")),
    "meta range": lambda seen, value: reference_meta.within(seen.leaves, *value.split("\0")),
    "has meta": lambda seen, value: reference_meta.has(seen.leaves, value[len("meta.") :]),
}
