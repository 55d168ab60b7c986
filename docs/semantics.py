"""Generate the tables of `docs/filters.md`: for each example what the filter should do, and what it does.

The examples about text are those of the test suite. The table of entities needs the data of twitter-text (see
`tests/filters/data.py`). On a machine without this data the table stays unchanged.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import msgspec
import yaml

from filters.entities import extract_entities
from filters.event import Event
from filters.location import Location
from filters.registry import Registry
from filters.rules.operators import OperatorSpec, operator_specs
from filters.rules.rule import Rule
from filters.sample import Sample
from filters.subscription import Subscription, parse_subscription
from filters.track import Track
from stream_server.events.content import NO_FACTS, EntryFacts, StatusFields, WireFields, make_content
from tests.filters.rules.cases import CASES
from tests.filters.test_entities import EXTRACT, TLDS
from tests.filters.test_validation import VALIDATE
from tests.public_data import FOLDER
from tests.test_reference import DOCUMENTED, EMOJI, INVISIBLE, OWN, UNSPACED

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""The header of a table and its rows."""

ANNA, BEN, CARL = "7", "8", "9"
"""The ids of three users. The examples follow Anna."""

SUITE = FOLDER / "twitter-text"

_HIDDEN = re.compile("[\u00ad\u200b\u200c\u200e\u200f\u2060\U000e0100]|(?<![^ ])\ufe0f")
"""Invisible characters of the examples. A selector behind an emoji stays as it is."""

SAMPLED = 100_000
"""Number of status ids from which the samples of the table are taken."""


class Example(NamedTuple):
    """One check of a filter.

    Attributes:
        asked: The value of the filter.
        case: What it is compared with.
        result: Whether the filter matches.
        expected: Whether it should.
    """

    asked: str
    case: str
    result: bool
    expected: bool


def _by_value(name: str, examples: Iterable[Example]) -> Table:
    """Return a row for each value of a filter: what it should match, and what not. A wrong result is marked with ✗.

    Values with one example only stand together in the last row.
    """
    rows: dict[str, tuple[list[str], list[str]]] = {}
    for one in examples:
        matching, other = rows.setdefault(one.asked, ([], []))
        (matching if one.expected else other).append(one.case if one.result is one.expected else f"✗ {one.case}")
    single = {asked: cells for asked, cells in rows.items() if len(cells[0]) + len(cells[1]) == 1}
    shown = [(asked, *map("; ".join, cells)) for asked, cells in rows.items() if asked not in single]
    if single:
        together = (
            "; ".join(f"{asked}: {cells[side][0]}" for asked, cells in single.items() if cells[side]) for side in (0, 1)
        )
        shown.append(("others", *together))
    return (name, "matches", "does not match"), shown


def _code(text: str) -> str:
    """Return ``text`` as code, with escapes for what readers would not see.

    These are combining characters of a text that is not in NFC, and invisible characters outside emoji.
    """
    shown = text if unicodedata.is_normalized("NFC", text) else "".join(map(_escape_combining, text))
    return f"`{_HIDDEN.sub(lambda found: _escape(found.group()), shown)}`"


def _escape_combining(character: str) -> str:
    return _escape(character) if unicodedata.combining(character) else character


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _post(text: str, **facts: Any) -> Event:
    return Event("post", author=CARL, status_id="1", text=text, entities=extract_entities(text), **facts)


def _track_rows(examples: Iterable[tuple[str, str, bool]]) -> Table:
    return _by_value("`track`", (
        Example(_code(term), _code(text), Track.parse(term).matches(_post(text)), expected)
        for term, text, expected in examples
    ))  # fmt: skip


def _status(message: str, **more: Any) -> dict[str, Any]:
    """Return a status by Carl as the log contains it. A mention of Anna has her id."""
    entities = {name: [one._asdict() for one in family] for name, family in extract_entities(message)._asdict().items()}
    for mention in entities["mentions"]:
        mention["id"] = {"anna": ANNA}.get(mention["login"])
    return {"id": "4096", "uid": CARL, "login": "carl", "message": message, "entities": entities} | more


def _seen(status: dict[str, Any], facts: EntryFacts = NO_FACTS) -> Event:
    """Return the status as the event that filters get."""
    return make_content("post", facts, WireFields(status=msgspec.convert(status, StatusFields))).event


def _link(url: str, display_url: str, expanded_url: str) -> dict[str, Any]:
    written = {"url": url, "display_url": display_url, "expanded_url": expanded_url, "indices": [0, len(url)]}
    return {"mentions": [], "hashtags": [], "cashtags": [], "urls": [written]}


_LINKED = _status("https://t.co/x1", entities=_link("https://t.co/x1", "shown.org/tea", "https://example.com/coffee"))
_TEA = _status("tea", id="1", uid=ANNA)

LOOKED_AT = [
    ("a word of the text", "tea", _status("Tea?"), True),
    ("the text of a hashtag", "tea", _status("#tea"), True),
    ("the login of a mention", "anna", _status("to @anna"), True),
    ("a cashtag, searched with `$`", "$tea", _status("buy $TEA"), True),
    ("a cashtag, searched without `$`", "tea", _status("buy $TEA"), False),
    ("`expanded_url` of a link", "coffee", _LINKED, True),
    ("`display_url` of a link", "shown.org/tea", _LINKED, True),
    ("`url` of a link, where it is shortened", "t.co/x1", _LINKED, False),
    ("the original of a repost", "tea", _status("", original=_TEA), True),
    ("the original of a quote", "tea", _status("look", original=_TEA), False),
    ("the login of the author", "carl", _status("tea"), False),
    ("the name of the place", "berlin", _status("tea", place={"name": "Berlin"}), False),
]

FOLLOWED = [
    ("Anna posts", _status("hello", uid=ANNA), True),
    ("Anna reposts Ben", _status("", uid=ANNA, original=_status("x", id="1", uid=BEN)), True),
    ("Carl answers Anna", _status("yes", in_reply_to_uid=ANNA), True),
    ("Carl reposts Anna", _status("", original=_TEA), True),
    ("Carl answers Anna by writing `@anna yes`", _status("@anna yes"), True),
    ("the same with spaces before the `@`", _status("  @anna yes"), True),
    ("Carl mentions Anna: `hello @anna!`", _status("hello @anna!"), False),
    ("Carl reposts Anna by writing `RT @anna tea`", _status("RT @anna tea"), False),
    ("Carl's post begins with a list of Anna: `@anna/list`", _status("@anna/list"), False),
    ("Carl quotes Anna", _status("look", original=_TEA), False),
    ("Carl reposts Ben, who answered Anna", _status("", original=_status("x", uid=BEN, in_reply_to_uid=ANNA)), False),
    ("Carl posts something else", _status("anna"), False),
]

CITY, SEA = "-74,40,-73,41", "177,-20,-170,-10"


def _at(lon: float, lat: float) -> dict[str, Any]:
    return {"location": {"lon": lon, "lat": lat}}


def _in(*box: float) -> dict[str, Any]:
    return {"place": {"name": "somewhere", "box": box}}


LOCATED = [
    (CITY, "a point inside", _at(-73.5, 40.5), True),
    (CITY, "a point in a corner", _at(-74, 40), True),
    (CITY, "a point on the eastern edge", _at(-73, 40.5), True),
    (CITY, "a point just outside", _at(-73.5, 41.0001), False),
    (CITY, "latitude and longitude exchanged", _at(40.5, -73.5), False),
    (f"-122.75,36.8,-121.75,37.8,{CITY}", "a point in the second of two boxes", _at(-73.5, 40.5), True),
    (CITY, "a place inside", _in(-73.6, 40.4, -73.5, 40.5), True),
    (CITY, "a place that contains the box", _in(-180, -90, 180, 90), True),
    (CITY, "a place that overlaps", _in(-73.2, 40.8, -70, 42), True),
    (CITY, "a place that touches a corner", _in(-73, 41, -72, 42), True),
    (CITY, "a place beside the box", _in(-72.9, 40, -72, 41), False),
    (CITY, "a point outside, with a place inside", _at(0, 0) | _in(-74, 40, -73, 41), False),
    (CITY, "a point inside, with a place outside", _at(-73.5, 40.5) | _in(0, 0, 1, 1), True),
    (CITY, "a place without a box", {"place": {"name": "New York"}}, False),
    (CITY, "neither point nor place", {}, False),
    (SEA, "a point west of the date line", _at(179, -15), True),
    (SEA, "a point east of the date line", _at(-171, -15), True),
    (SEA, "a point on the date line, written as 180", _at(180, -15), True),
    (SEA, "a point on the date line, written as -180", _at(-180, -15), True),
    ("179,-20,180,-10", "a point on the date line, written as -180", _at(-180, -15), False),
    (SEA, "a point on the other side of the globe", _at(0, -15), False),
    (SEA, "a place across the date line", _in(175, -18, -179, -17), True),
    (SEA, "a place around the globe that leaves the box out", _in(-160, -18, 170, -17), False),
    ("-175,-20,-174,-10", "a place across the date line that reaches the box", _in(179, -18, -174.5, -17), True),
    ("-180,-90,180,90", "a point anywhere", _at(13.4, 52.5), True),
    (CITY, "a repost of a post from the box", {"message": "", "original": _status("x") | _at(-73.5, 40.5)}, False),
]

COMBINED = [
    ("track=tea&locations=" + CITY, "about tea, from outside the box", _status("tea") | _at(0, 0), True),
    ("track=tea&locations=" + CITY, "about milk, from inside the box", _status("milk") | _at(-73.5, 40.5), True),
    ("track=tea&locations=" + CITY, "about milk, from outside the box", _status("milk") | _at(0, 0), False),
    ("track=tea&follow=" + ANNA, "about tea, by another user", _status("tea"), True),
    ("track=tea&follow=" + ANNA, "about milk, by user 7", _status("milk", uid=ANNA), True),
    ("track=tea&language=en", "tea in English", _status("tea", lang="en"), True),
    ("track=tea&language=en", "tea in British English", _status("tea", lang="en-GB"), True),
    ("track=tea&language=en-GB", "tea in English", _status("tea", lang="en"), False),
    ("track=tea&language=en", "tea in German", _status("tea", lang="de"), False),
    ("track=tea&language=en", "English, but no tea", _status("milk", lang="en"), False),
    ("track=tea&language=en,de", "tea in German", _status("tea", lang="de"), True),
    ("track=tea&language=und", "tea, the language is unknown", _status("tea"), True),
    ("track=tea&kinds=delete", "a post about tea", _status("tea"), False),
]


def looked_at() -> Table:
    """Return which fields of a status `track` considers."""
    _, rows = _by_value("", (
        Example("", where, Track.parse(term).matches(_seen(status)), expected)
        for where, term, status, expected in LOOKED_AT
    ))  # fmt: skip
    return ("`track` finds", "`track` does not find"), [row[1:] for row in rows]


def follow() -> Table:
    """Return which statuses `follow` matches."""
    asked = parse_subscription({"follow": ANNA}, Registry.from_entry_points())
    _, rows = _by_value("", (Example("", what, asked.matches(_seen(status)), ok) for what, status, ok in FOLLOWED))
    return ("`follow=` Anna's id matches", "does not match"), [row[1:] for row in rows]


def locations() -> Table:
    """Return which statuses `locations` matches."""
    return _by_value("`locations`", (
        Example(_code(boxes), where, Location.parse(boxes).matches(_seen(_status("x") | more)), expected)
        for boxes, where, more, expected in LOCATED
    ))  # fmt: skip


def sample() -> Table:
    """Return the number of statuses in samples of several sizes, and whether each is inside the next larger one."""
    found: dict[str, set[int]] = {}
    for percent in ("0.1", "1", "10", "50", "100"):
        taken = Sample.parse(percent)
        found[percent] = {n for n in range(SAMPLED) if taken.matches(Event("post", status_id=str(n << 12)))}
    larger = [*list(found.values())[1:], set(range(SAMPLED))]
    rows = [
        (_code(percent), f"{len(ids):,}", "✓" if ids <= outer else "✗")
        for (percent, ids), outer in zip(found.items(), larger, strict=True)
    ]
    return ("`sample`", f"of {SAMPLED:,} statuses", "all of them in the next larger"), rows


def combination() -> Table:
    """Return what combinations of parameters match."""
    registry = Registry.from_entry_points()
    return _by_value("parameters", (
        Example(_code(query), what, _asked(query, registry).matches(_seen(status)), expected)
        for query, what, status, expected in COMBINED
    ))  # fmt: skip


def _asked(query: str, registry: Registry) -> Subscription:
    return parse_subscription(dict(pair.split("=") for pair in query.split("&")), registry)


def operators() -> Table:
    """Return the operators of the rule language. Those with a star cannot stand alone."""
    rows = [
        (f"{_operator(row)}{'' if row.standalone else ' *'}", row.help, _code(row.example)) for row in operator_specs()
    ]
    return ("operator", "finds", "example"), rows


def _operator(row: OperatorSpec) -> str:
    if not row.name:
        return _code(row.value)
    named = f"`{row.name}:` {row.value}"
    return f"{named}; also {', '.join(f'`{alias}:`' for alias in row.aliases)}" if row.aliases else named


def rules() -> Table:
    """Return the rules of which the tests have both a status that matches and one that does not."""
    registry = Registry.from_entry_points()
    head, rows = _by_value("rule", (
        Example(_code(case.rule), case.what, Rule.parse(case.rule, registry).matches(case.event), case.matches)
        for case in CASES
    ))  # fmt: skip
    return head, [row for row in rows if all(row) and row[0] != "others"]


def entities() -> Table | None:
    """Return how many cases of twitter-text's suite pass, or None without the data of the suite."""
    if not SUITE.exists():
        return None
    rows = [_held("extract.yml", EXTRACT), _held("validate.yml", VALIDATE), _held("tlds.yml", TLDS)]
    return ("file", "cases", "pass"), rows


def _held(file: str, functions: dict[str, Callable[[str], Any]]) -> tuple[str, ...]:
    tests = yaml.safe_load((SUITE / file).read_text())["tests"]
    held = [
        function(case["text"]) == case["expected"] for section, function in functions.items() for case in tests[section]
    ]
    return _code(file), f"{len(held):,}", f"{sum(held):,} {'✓' if all(held) else '✗'}"


TABLES: dict[str, Callable[[], Table | None]] = {
    "track": partial(_track_rows, DOCUMENTED),
    "track_further": partial(_track_rows, OWN),
    "emoji": partial(_track_rows, EMOJI),
    "invisible": partial(_track_rows, INVISIBLE),
    "track_looks": looked_at,
    "unspaced": partial(_track_rows, UNSPACED),
    "follow": follow,
    "locations": locations,
    "sample": sample,
    "combination": combination,
    "entities": entities,
    "operators": operators,
    "rules": rules,
}
"""The functions that build the tables, by the names that the pages use."""
