"""Strategies for statuses of the log: few users, words and places, so that rules often match."""

from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from filters.entities import extract_entities
from filters.event import Event
from stream_server.events.entry import PUBLIC_AUDIENCE, Entry
from stream_server.events.position import Position

LOGINS = ("Anna", "bob", "Chloe_", "d_4")
"""The users 1 to 4."""

WORDS = (
    "tea", "Tea", "TEA!", "(milk)", "milk", "cold", "cold", "e-mail", "tea's", "café", "cafe\u0301", "Straße", "x_y",
    "#tea", "#Milk", "@bob", "@anna:", "$TWTR", "tea.com", "http://www.tea.com/milk", "https://a.co/Cold", "😍", "🍵",
    "東京", "東京タワーに", "#東京", "iPhoneを", "สวัสดีครับ", "OR", "or", "-", "…", "東。京", "iphone を", "İstanbul",
    "1\ufe0f\u20e3", "tea://", "www.tea.com/milk", "te\u00ada", "mi\u200blk", "co\u2060ld\u200c", "\u200ftea",
    "❤\ufe0f", "\ufe0f", "\uff04TWTR", "$tea", "@bob님이", "ខ្មែរ\u200bភាសា", "#\ufe0f\u20e3",
)  # fmt: skip

PLACES: tuple[dict[str, Any], ...] = (
    {"name": "Berlin", "country": "DE", "box": [13.3, 52.4, 13.5, 52.6]},
    {"name": "Mitte", "country": "de", "box": [13.38, 52.5, 13.42, 52.54]},
    {"name": "New Tea", "country": "US"},
    {"name": "Fiji", "box": [177.0, -18.0, -178.0, -17.0]},
    {"name": "new tea", "country": "GB", "box": [-0.2, -0.2, 0.0, 0.1]},
)

POINTS = ((13.4, 52.5), (13.4, 52.6), (13.35, 52.41), (179.9, -17.5), (-179.9, -17.5), (0.0, 0.0), (0.1, 0.0))

BIOS = ("", "Tea, and e-mail.", "I drink cold milk", "東京 😍", "東。京", "COLD #tea")

META_NAMES = ("room", "Room", "price", "item.price", "odd name", "dc:title", "größe", 'a"b', "x" * 129)
META_VALUES = (
    7, 7.0, 7.5, -1, 0, 1.1, 1e16, 10**16, 1e-7, "7", "7.0", "007", "blog", "Blog", "te\u00ada", "Cafe\u0301", "1..2",
    "", "a b", True, False, None, "true", "null", "x" * 128, "é" * 65,
)  # fmt: skip

MEDIA = ("image", "video", "gif", "audio")


class Posted(NamedTuple):
    """A status as the API answered it, and the facts of its author on the log."""

    status: dict[str, Any]
    facts: dict[str, Any]

    @property
    def event(self) -> Event:
        """The event that filters get for this entry."""
        body = msgspec.json.encode({"wire": {"status": self.status}, "facts": self.facts})
        return Entry(Position(1_795_197_600_000, 0, 1), "post", PUBLIC_AUDIENCE, body).event


def entities(message: str) -> dict[str, Any]:
    """The entities of a message as the API answers them. Mentions of the four users have an id."""
    ids = {login.lower(): str(uid) for uid, login in enumerate(LOGINS, start=1)}
    found = {name: [one._asdict() for one in family] for name, family in extract_entities(message)._asdict().items()}
    for mention in found["mentions"]:
        if mention["login"].lower() in ids:
            mention["id"] = ids[mention["login"].lower()]
    return found


def texts() -> st.SearchStrategy[str]:
    """Some words, also without a blank between them."""
    between = st.sampled_from([" ", " ", " ", "\n", ", ", ""])
    return st.lists(st.tuples(st.sampled_from(WORDS), between), max_size=6).map(
        lambda pairs: "".join(word + gap for word, gap in pairs).strip()
    )


def metas() -> st.SearchStrategy[dict[str, Any] | None]:
    """The fields that an author adds: none, few, or lists and objects in each other, and sometimes too many."""
    values = st.recursive(st.sampled_from(META_VALUES), _nested, max_leaves=5)
    many = st.sampled_from(META_VALUES).map(lambda value: {"many": list(range(31)), "room": [value, "late"]})
    return st.one_of(st.none(), st.dictionaries(st.sampled_from(META_NAMES), values, max_size=4), many)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(META_NAMES), inner, max_size=2)


@st.composite
def plain_statuses(draw: st.DrawFn) -> dict[str, Any]:
    """A status that is neither a repost nor a quote."""
    uid = draw(st.integers(1, 4))
    message = draw(texts())
    point = draw(st.one_of(st.none(), st.none(), st.sampled_from(POINTS)))
    answered = draw(st.one_of(st.none(), st.none(), st.integers(1, 4)))
    kinds = draw(st.one_of(st.just([]), st.lists(st.sampled_from(MEDIA), max_size=2)))
    return {
        "id": str(draw(st.integers(1, 400)) * 4096),
        "uid": str(uid),
        "login": LOGINS[uid - 1],
        "message": message,
        "entities": entities(message),
        "lang": draw(st.sampled_from(["en", "en-GB", "de", "und", "no", "nb", "nn", "he", "yue"])),
        "location": None if point is None else {"lon": point[0], "lat": point[1]},
        "place": draw(st.one_of(st.none(), st.sampled_from(PLACES))),
        "in_reply_to": None if answered is None else "5",
        "in_reply_to_uid": None if answered is None else str(answered),
        "origin": None,
        "media": [{"url": "https://a.co/m", "type": kind} for kind in kinds],
        "conversation": draw(st.sampled_from(["4096", "8192"])),
        "meta": draw(metas()),
        "group": None,
    }


@st.composite
def posted(draw: st.DrawFn) -> Posted:
    """A status of any form: plain, a reply, a quote, or a repost."""
    status = draw(plain_statuses())
    if draw(st.sampled_from([False, False, True])):
        status["original"] = draw(plain_statuses())
        status["origin"] = status["original"]["id"]
        if draw(st.booleans()):
            status |= {"message": "", "entities": entities(""), "lang": status["original"]["lang"], "media": []}
    return Posted(status, draw(facts_of(status)))


@st.composite
def facts_of(draw: st.DrawFn, status: dict[str, Any]) -> dict[str, Any]:
    """The facts on the log: none in an old entry, else the author and the login of the replied-to user."""
    if draw(st.sampled_from([True, False, False, False])):
        return {}
    counts = st.sampled_from([0, 1, 19, 20, 21, 5_000])
    author = {"id": status["uid"], "login": status["login"], "bio": draw(st.sampled_from(BIOS))}
    author |= {name: draw(counts) for name in ("followers", "following", "posts")}
    answered = status["in_reply_to_uid"]
    return {"author": author} | ({} if answered is None else {"reply_to_login": LOGINS[int(answered) - 1]})
