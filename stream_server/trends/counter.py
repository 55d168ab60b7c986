"""Reads new posts from the hub's ring once a second, and counts their terms."""

import asyncio
import re
from bisect import bisect_right

import msgspec

from filters.language_codes import present_tag
from filters.tokens import blank_unspaced, fold, has_unspaced
from stream_server.events.entry import Entry
from stream_server.events.kinds import PUBLIC_AUDIENCE
from stream_server.hub.hub import Hub
from stream_server.trends.sketch import Term, TrendReport, TrendSketch

TICK_SECONDS = 1.0

MAX_ENTRIES_PER_SECOND = 50
"""Most entries of one second of the log that are looked at: every second one of a hundred, by their numbers."""

LATE_MS = 10_000
"""Milliseconds for which posts may be late: until then the present hour waits for them. It ends without posts, too."""

MAX_TRENDS = 100
"""Most trends of one kind and language."""


class TrendCounter:
    """Counts the terms of the public posts in the hub's ring. Equal logs give equal counts.

    Left out are posts of protected and suspended users and deleted posts, as far as that is known at the count.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._sketch = TrendSketch()
        self._next_number = 0
        self._may_begin = asyncio.Event()
        self._reports: dict[tuple[str, str], TrendReport] = {}

    def begin(self) -> None:
        """Let the counting begin at the oldest entry of the ring. Call it when the ring is filled."""
        self._may_begin.set()

    def report(self, kind: str, language: str) -> TrendReport:
        """Return at most `MAX_TRENDS` trends, see `TrendSketch.report`.

        The result is kept until the next second is counted.
        """
        question = kind, language
        if question not in self._reports:
            self._reports[question] = self._sketch.report(kind, language, MAX_TRENDS)
        return self._reports[question]

    async def run(self) -> None:
        """Count until cancelled."""
        await self._may_begin.wait()
        while True:
            await self.count_new_posts()
            await asyncio.sleep(TICK_SECONDS)

    async def count_new_posts(self) -> None:
        """Count the posts of all whole seconds of the log that are not counted yet."""
        ring = self._hub.ring
        this_second = self._hub.now_ms() // 1000
        while True:
            head = ring.head.n  # after a rollback, the counting continues there
            first = max(ring.floor.n + 1, min(self._next_number, head + 1))
            if first > head:
                break
            second = self._second_of(first)
            last = bisect_right(range(first, head + 1), second, key=self._second_of) + first - 1
            if second >= this_second or (last == head and second == this_second - 1):
                break  # more entries of this second may come
            self._next_number = last + 1
            self._count_entries(first, last)
            await asyncio.sleep(0)
        self._sketch.advance(this_second * 1000 - LATE_MS)
        self._reports.clear()

    def _second_of(self, number: int) -> int:
        (entry,) = self._hub.ring.peek_numbers(number, number)
        return entry.position.ms // 1000

    def _count_entries(self, first: int, last: int) -> None:
        """Count the posts among the entries ``first`` to ``last`` of one second, at most `MAX_ENTRIES_PER_SECOND`."""
        step = -(-(last - first + 1) // MAX_ENTRIES_PER_SECOND)
        ring, found = self._hub.ring, list[Entry]()
        for number in range(first + -first % step, last + 1, step):
            found += ring.peek_numbers(number, number)
        posts = [entry for entry in found if entry.kind == "post" and entry.audience == PUBLIC_AUDIENCE]
        if posts:
            self._sketch.add_posts(posts[0].position.ms, len(posts) * step)
        for entry in posts:
            self._count_post(entry)

    def _count_post(self, entry: Entry) -> None:
        hub = self._hub
        post = decode_post(entry.body)
        if post is None or post.uid in hub.account_status.restricted:
            return
        if str(entry.position.status_number) not in hub.ring.deleted_ids:
            self._sketch.add_terms(post.uid, terms_of(post))


MAX_TERM_CHARS = 30
"""Longest tag or word in code points. Longer ones are not counted."""

_ENTITIES = re.compile(r"https?://\S+|www\.\S+|[@#\uff03$]\w+")
_LETTER, _APOSTROPHES = r"[^\W\d_]", r"'\u2019"
_REST = rf"(?:{_LETTER}|[{_APOSTROPHES}](?={_LETTER})){{2,{MAX_TERM_CHARS - 1}}}"
_WORD = re.compile(rf"(?<![\w{_APOSTROPHES}]){_LETTER}{_REST}(?!\w)")


class _Tag(msgspec.Struct):
    text: str


class _Entities(msgspec.Struct):
    hashtags: list[_Tag] = []


class PostFields(msgspec.Struct):
    """The members of a status that trends use."""

    uid: str
    message: str = ""
    lang: str = "und"
    entities: _Entities = msgspec.field(default_factory=_Entities)


class _Wire(msgspec.Struct):
    status: PostFields


class _Body(msgspec.Struct):
    wire: _Wire


_decoder = msgspec.json.Decoder(_Body)


def decode_post(body: bytes) -> PostFields | None:
    """Return the members of the status in the entry of a post, or None if its JSON is invalid."""
    try:
        return _decoder.decode(body).wire.status
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # the last one: nested very deeply
        return None


def terms_of(post: PostFields) -> set[Term]:
    """Return the tags and words of a post, folded.

    Words have three letters or more. Words of scripts without spaces are left out, because their ends are unknown.
    """
    language = primary_language(post.lang) or "und"
    tags = {("tag", language, text) for tag in post.entities.hashtags if len(text := fold(tag.text)) <= MAX_TERM_CHARS}
    folded = fold(_ENTITIES.sub(" ", post.message))
    if has_unspaced(folded):
        folded = blank_unspaced(folded)
    return tags | {("word", language, word) for word in _WORD.findall(folded)}


def primary_language(tag: str) -> str:
    """Return the present code of the language of a tag, in lower case: ``en`` for ``en-GB``, ``he`` for ``iw``."""
    return present_tag(tag).partition("-")[0]
