"""A second, independent implementation of what a stream must receive: plain and slow.

It uses only the contract: the statuses as the API returned them, the parameters of a stream, and the documents (the
track matcher of the design, Twitter's pages on `track`, `follow`, `locations`). Text in scripts without spaces is not
split into words: a term in such a script is searched in every stretch of characters. A term with punctuation is tried
at each place of the text. Emoji are those of the package `emoji`, and invisible characters those of the package
`regex`. The reference shares one thing with the server: the key of the sample, which is a number.

A happening is an event in log order:

    {"kind": "post", "status": {...}}             the status of the 201
    {"kind": "delete", "status": {"id": "..."}}
    {"kind": "follow", "source": {"id": "..."}, "target": {"id": "..."}}     and `unfollow`
"""

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import groupby
from typing import Any

import regex  # type: ignore[import-untyped]  # it has no types
from emoji import EMOJI_DATA

from filters.sample import SAMPLE_HASH_KEY

Status = Mapping[str, Any]
Happening = Mapping[str, Any]
Box = tuple[float, float, float, float]

GRAPH = ("follow", "unfollow")

KEPT = 1 << 15
"""Texts whose reading is kept: each stream, and each term of a rule, asks for that of every status again."""

UNSPACED = (
    *("CJK UNIFIED", "CJK COMPATIBILITY", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA"),
    *("THAI", "LAO", "KHMER", "MYANMAR"),
)
"""The beginnings of the Unicode names of characters whose scripts put no spaces between words."""


RENAMED = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "tl": "fil", "mo": "ro"}
"""Codes of languages with their present code: those that the tests use."""

PARTS = {"nb": "no", "nn": "no", "yue": "zh", "cmn": "zh"}
"""Languages that are part of a macro-language: those that the tests use."""


def receives(
    params: Mapping[str, str],
    happenings: Iterable[Happening],
    *,
    viewer: str = "",
    following: Collection[str] = (),
    known: Iterable[Status] = (),
) -> list[tuple[str, str]]:
    """Return (kind, id of the status or target) of all events that a stream with ``params`` receives, in order.

    ``viewer`` follows the users ``following`` when the stream opens. ``known`` are statuses posted before.
    """
    return Stream(params, viewer=viewer, following=following, known=known).through(happenings)


def replayed(
    params: Mapping[str, str], happenings: Iterable[Happening], *, viewer: str = "", following: Collection[str] = ()
) -> list[tuple[str, str]]:
    """Return what a replay after all happenings receives: without deleted posts, but with their deletes."""
    everything = list(happenings)
    gone = {h["status"]["id"] for h in everything if h["kind"] == "delete"}
    told = receives(params, everything, viewer=viewer, following=following)
    return [(kind, name) for kind, name in told if kind != "post" or name not in gone]


class Stream:
    """One stream, which receives one happening after another."""

    def __init__(
        self,
        params: Mapping[str, str],
        *,
        viewer: str = "",
        following: Collection[str] = (),
        known: Iterable[Status] = (),
    ) -> None:
        self.params = params
        self.viewer = viewer
        self.following = set(following)
        self.statuses: dict[str, Status] = {s["id"]: s for s in known}
        self.reached: set[str] = set()
        self.kinds = params.get("kinds", "post,delete").split(",")

    def through(self, happenings: Iterable[Happening]) -> list[tuple[str, str]]:
        return [told for happening in happenings if (told := self.hears(happening)) is not None]

    def hears(self, happening: Happening) -> tuple[str, str] | None:
        """Return what the stream receives of this happening, or None. Also update the follow graph."""
        kind = happening["kind"]
        if kind in GRAPH:
            matched = self._graph(happening)
            name = happening["target"]["id"]
        else:
            name = happening["status"]["id"]
            matched = self._post(happening["status"]) if kind == "post" else self._ends(name)
        return (kind, name) if matched and kind in self.kinds else None

    def _post(self, status: Status) -> bool:
        self.statuses[status["id"]] = status
        matched = self._matches(status)
        if matched:
            # A delete follows its post, so what counts is that the post could reach this stream, not that it was sent.
            self.reached.add(status["id"])
        return matched

    def _ends(self, name: str) -> bool:
        """Whether the delete of a status is received: also of an older one by somebody whom the viewer follows since.

        A page may have shown that one.
        """
        return name in self.reached or (name in self.statuses and self._matches(self.statuses[name]))

    def _matches(self, status: Status) -> bool:
        return self._base(status) and speaks(status, self.params.get("language"))

    def _graph(self, happening: Happening) -> bool:
        ends = {happening["source"]["id"], happening["target"]["id"]}
        matched = "firehose" in self.params or bool(ends & self._listed())
        if happening["source"]["id"] == self.viewer:
            change = self.following.add if happening["kind"] == "follow" else self.following.discard
            change(happening["target"]["id"])
        return matched

    def _base(self, status: Status) -> bool:
        if "firehose" in self.params:
            return True
        if "sample" in self.params:
            return sampled(status["id"], self.params["sample"])
        return (
            ("track" in self.params and tracked(self._words_of(status), self.params["track"]))
            or ("follow" in self.params and self._follows(status))
            or ("locations" in self.params and located(status, self.params["locations"]))
        )

    def _words_of(self, status: Status) -> Status:
        """Return the status whose text counts. A repost without its own text counts as its original."""
        return self.statuses[status["origin"]] if is_repost(status) else status

    def _listed(self) -> set[str]:
        ids = set(self.params.get("follow", "").split(",")) - {""}
        return ids - {"@me"} | self.following if "@me" in ids else ids

    def _follows(self, status: Status) -> bool:
        listed = self._listed()
        concerned = {status["uid"], starts_with_mention_of(status)}
        if status["in_reply_to"] is not None:
            concerned.add(self.statuses[status["in_reply_to"]]["uid"])
        if is_repost(status):
            concerned.add(self.statuses[status["origin"]]["uid"])
        return bool(concerned & listed)


def is_repost(status: Status) -> bool:
    """Whether it is a repost without its own text. With text it is a quote."""
    return status["origin"] is not None and status["message"] == ""


def starts_with_mention_of(status: Status) -> str | None:
    """Return the id of the user mentioned at the very beginning of the text, as in a reply typed by hand."""
    text = status["message"]
    start = len(text) - len(text.lstrip())
    for mention in status["entities"]["mentions"]:
        if mention["indices"][0] == start:
            found: str | None = mention.get("id")
            return found
    return None


def speaks(status: Status, language: str | None) -> bool:
    """Whether the status is in one of these languages. `en` includes `en-GB`, but not the reverse.

    A language and a macro-language that it is part of include each other, but two parts do not.
    """
    if language is None:
        return True
    lang = _present(status["lang"] or "und")
    return any(_includes(_present(wanted), lang) for wanted in language.split(","))


def _present(tag: str) -> list[str]:
    code, *rest = tag.lower().split("-")
    return [RENAMED.get(code, code), *rest]


def _includes(wanted: list[str], lang: list[str]) -> bool:
    related = wanted[0] in {lang[0], PARTS.get(lang[0])} or PARTS.get(wanted[0]) == lang[0]
    return related and lang[1 : len(wanted)] == wanted[1:]


def sampled(status_id: str, percent: str) -> bool:
    score = int.from_bytes(blake2b(status_id.encode(), key=SAMPLE_HASH_KEY).digest()[:8], "big")
    return score < Decimal(percent) * 2**64 / 100


def located(status: Status, locations: str) -> bool:
    """Whether the status lies in one of the boxes: by its point, or by its place if it has no point."""
    if is_repost(status):
        return False
    numbers = [float(n) for n in locations.split(",")]
    boxes = [halves for i in range(0, len(numbers), 4) for halves in _unwrapped(numbers[i : i + 4])]
    point, place = status["location"], status["place"]
    if point is not None:
        return any(w <= point["lon"] <= e and s <= point["lat"] <= n for w, s, e, n in boxes)
    if place is None or place.get("box") is None:
        return False
    return any(_overlap(box, other) for box in boxes for other in _unwrapped(place["box"]))


def _unwrapped(box: list[float]) -> list[Box]:
    west, south, east, north = box
    if west <= east:
        return [(west, south, east, north)]
    return [(west, south, 180.0, north), (-180.0, south, east, north)]


def _overlap(a: Box, b: Box) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def tracked(status: Status, track: str) -> bool:
    said, stretches, text = tokens(status), runs(status), fold(_without_entities(status))
    return any(
        all(is_said(term, said, stretches, text) for term in map(fold, phrase.split()) if term)
        for phrase in track.split(",")
        if _words(fold(phrase))  # a phrase of punctuation only matches nothing
    )


def is_said(term: str, said: Collection[str], stretches: Iterable[str], text: str) -> bool:
    """Whether a folded term is one of the words, part of a stretch, or stands in the text at the borders of words."""
    if term in said:
        return True
    if names_entity(term):
        return False
    if all(map(is_word_character, term)) and not pictures(term):
        return any(map(is_unspaced, term)) and any(term in stretch for stretch in stretches)
    return any(stands_at(term, text, at) for at in range(len(text)))


def names_entity(term: str) -> bool:
    """Whether the term is a sign and a name, so that only an entity matches. A tag of digits only is none."""
    name = term[1:]
    if term[:1] not in ("#", "@", "$") or not all(map(is_word_character, name)):
        return False
    letters = [c for c in name if unicodedata.category(c)[0] in "LM"]
    return bool({"#": letters, "@": name.isascii() and name, "$": name.isascii() and name.isalpha()}[term[0]])


def stands_at(term: str, text: str, at: int) -> bool:
    """Whether the term stands at this place of a text, with no letter or digit beside it and not inside an emoji."""
    end = at + len(term)
    if text[at:end] != term or any(start < edge < stop for start, stop in pictures(text) for edge in (at, end)):
        return False
    own = {edge for start, stop in pictures(term) for edge in range(start, stop)}
    free = [edge in own or is_unspaced(term[edge]) for edge in (0, len(term) - 1)]
    return not any(_is_letter(text, beside) and not alone for beside, alone in zip((at - 1, end), free, strict=True))


def _is_letter(text: str, at: int) -> bool:
    """Whether a character of a word stands at this index: of a script with spaces, and not part of an emoji."""
    if not 0 <= at < len(text) or not is_word_character(text[at]) or is_unspaced(text[at]):
        return False
    return not any(start <= at < stop for start, stop in pictures(text))


def tokens(status: Status) -> set[str]:
    """Return every term that matches the status. Entities are also there with their sign (`#`, `@`, `$`)."""
    entities = status["entities"]
    said: set[str] = set()
    for sign, names in _names(entities).items():
        said.update(sign + name for name in names)
        said.update(names if sign != "$" else ())
    for tag in entities["hashtags"]:
        said |= _words(fold(tag["text"]))
    for form in _links(entities):
        said |= _of_url(fold(form))
    return (said | _words(fold(_without_entities(status)))) - {""}


def runs(status: Status) -> set[str]:
    """Return the stretches without spaces and marks of the text, the hashtags and the links."""
    entities = status["entities"]
    texts = [_without_entities(status), *(e["text"] for e in entities["hashtags"])]
    texts += _links(entities)
    return set[str]().union(*(_parts(_without_pictures(fold(text))) for text in texts))


@lru_cache(KEPT)
def fold(text: str) -> str:
    """Fold case and compose accents, so that neither makes a difference. An `i` has no second dot.

    Invisible characters are left out, and the full-width signs of entities are those of ASCII.
    """
    text = visible(text).translate({0xFF03: "#", 0xFF20: "@", 0xFF04: "$"})
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    while "i\u0307" in folded:
        folded = unicodedata.normalize("NFC", folded.replace("i\u0307", "i"))
    return folded


def _names(entities: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        "#": [fold(e["text"]) for e in entities["hashtags"]],
        "@": [fold(e["login"]) for e in entities["mentions"]],
        "$": [fold(e["text"]) for e in entities["cashtags"]],
    }


def _links(entities: Mapping[str, Any]) -> list[str]:
    """Return both forms of each link. A shortened form is left out, because it may end inside a word."""
    forms = [url[form] for url in entities["urls"] for form in ("expanded_url", "display_url")]
    return [form for form in forms if not form.endswith("…")]


def _of_url(url: str) -> frozenset[str]:
    bare = url.split("://", 1)[-1].removeprefix("www.").rstrip("/")
    return _words(bare) | {bare}


def _without_entities(status: Status) -> str:
    text = list(status["message"])
    for entity in (e for group in status["entities"].values() for e in group):
        start, end = entity["indices"]
        text[start:end] = " " * (end - start)
    return "".join(text)


@cache
def is_word_character(character: str) -> bool:
    """Whether words consist of such characters: letters, digits, marks on them, `_`, and joiners between them."""
    return character == "_" or character in JOINERS or unicodedata.category(character)[0] in "LMN"


@cache
def is_unspaced(character: str) -> bool:
    return is_word_character(character) and unicodedata.name(character, "").startswith(UNSPACED)


def visible(text: str) -> str:
    """Leave out invisible characters, except inside an emoji, and joiners with a letter on both sides."""
    kept, at = "", 0
    text = "".join(c for c in text if c in JOINERS or "\U000e0020" <= c <= "\U000e007f" or not INVISIBLE.match(c))
    after_letter = False
    while at < len(text):
        sizes = range(min(LONGEST_EMOJI, len(text) - at), 0, -1)
        size = next((size for size in sizes if text[at : at + size] in EMOJI), 0)
        if not size and text[at] in JOINERS:
            run = len(text) - at - len(text[at:].lstrip(JOINERS))
            behind = text[at + run :]
            emoji = any(behind[:length] in EMOJI for length in range(1, LONGEST_EMOJI + 1))
            if after_letter and behind and not emoji and is_word_character(behind[0]):
                kept += text[at : at + run]
            at += run
            continue
        piece = text[at : at + (size or 1)]
        after_letter = not size and is_word_character(piece)
        kept += piece if size or not INVISIBLE.match(piece) else ""
        at += len(piece)
    return kept


JOINERS = "\u200c\u200d"
INVISIBLE = regex.compile(r"\p{Default_Ignorable_Code_Point}")
EMOJI = frozenset(one.replace("\ufe0f", "").replace("\ufe0e", "") for one in EMOJI_DATA)
LONGEST_EMOJI = max(map(len, EMOJI))


@lru_cache(KEPT)
def pictures(folded: str) -> tuple[tuple[int, int], ...]:
    """Return start and end of each emoji or other pictograph of a folded text: the longest at each place."""
    found, at = [], 0
    while at < len(folded):
        end = next((end for end in range(min(at + LONGEST_EMOJI, len(folded)), at, -1) if folded[at:end] in EMOJI), at)
        if end == at and unicodedata.category(folded[at]) == "So":
            end = at + 1
        if end > at:
            found.append((at, end))
        at = max(end, at + 1)
    return tuple(found)


@lru_cache(KEPT)
def _words(text: str) -> frozenset[str]:
    """Return the emoji of a text, and the words between them."""
    found = frozenset(text[start:end] for start, end in pictures(text))
    return found.union(*map(_parts, _by_script(_without_pictures(text))))


def _without_pictures(text: str) -> str:
    rest = list(text)
    for start, end in pictures(text):
        rest[start:end] = " " * (end - start)
    return "".join(rest)


def _by_script(chunk: str) -> list[str]:
    """Cut the text where a script without spaces begins or ends."""
    return ["".join(piece) for _, piece in groupby(chunk, is_unspaced)]


def _parts(chunk: str) -> set[str]:
    """Cut the text at all punctuation. A mark or joiner without a letter before it is none of a word."""
    found = "".join(c if is_word_character(c) else " " for c in chunk).split()
    marks = "".join(c for c in chunk if c in JOINERS or (unicodedata.category(c)[0] == "M" and not is_unspaced(c)))
    return {word.lstrip(marks) for word in found}
