"""Reads new posts from the hub's ring once a second, and counts their terms.

`TrendSketch` has the counts, in bounded memory.
"""

import asyncio
import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from heapq import nlargest
from typing import NamedTuple
from zlib import crc32

import msgspec

from filters.tables import present_tag
from filters.tokens import blank_unspaced, fold, has_unspaced
from stream_server.events.entry import PUBLIC_AUDIENCE, Entry
from stream_server.hub.hub import Hub

BUCKET_MS = 300_000
"""Duration of a bucket in milliseconds."""

WINDOW_BUCKETS = 12
"""Number of buckets of the present hour, with the one that is being filled, and of the hour before."""

HOUR_MS = BUCKET_MS * WINDOW_BUCKETS

MAX_TERMS = 4000
"""Number of terms in the bucket that is being filled at which the rare half is forgotten."""

MAX_CLOSED_TERMS = 1000
"""Number of terms that a bucket keeps when it is complete."""

BITMAP_BITS = 1 << 25
"""Size of the bitmap of authors and terms: 4 MiB. Fifty posts a second set a sixteenth of it in an hour."""

ANY_LANGUAGE = ""

Term = tuple[str, str, str]
"""The kind of a term (``tag`` or ``word``), its language (the primary subtag), and its folded text."""


class Trend(NamedTuple):
    """A term that grows.

    Attributes:
        text: The case-folded text, without ``#``.
        authors: Number of authors who used the term in the present hour, among the counted posts.
        before: The same number for the hour before.
        growth: ``authors`` divided by the number expected from the hour before, which is at least 1.
    """

    text: str
    authors: int
    before: int
    growth: float


class TrendReport(NamedTuple):
    """The trends of the present hour.

    Attributes:
        from_ms: The begin of the present hour or, after a start, of its known part; in ms since 1970.
        posts: Number of public posts in this time.
        counted: Number of posts whose terms were counted.
        max_undercount: By how much ``authors`` may be too low, because rare terms are forgotten.
    """

    trends: list[Trend]
    from_ms: int
    posts: int
    counted: int
    max_undercount: int


class TermCounts:
    """A Misra-Gries summary: each count is at most ``max_undercount`` too low, and never too high."""

    def __init__(self) -> None:
        self.counts: dict[Term, int] = {}
        self.max_undercount = 0

    def add(self, term: Term) -> None:
        """Count a term once."""
        self.counts[term] = self.counts.get(term, 0) + 1
        if len(self.counts) > MAX_TERMS:
            self.shrink(MAX_TERMS // 2)

    def shrink(self, capacity: int) -> None:
        """Keep at most ``capacity`` terms: subtract the largest count without room from all counts, and drop zeros."""
        if len(self.counts) <= capacity:
            return
        cut = nlargest(capacity + 1, self.counts.values())[-1]
        self.counts = {term: count - cut for term, count in self.counts.items() if count > cut}
        self.max_undercount += cut


@dataclass(slots=True)
class Bucket:
    """The terms of five minutes, with the numbers of public and of counted posts."""

    number: int
    terms: TermCounts = field(default_factory=TermCounts)
    posts: int = 0
    counted: int = 0


class TrendSketch:
    """The counts of the last two hours."""

    def __init__(self) -> None:
        self._buckets = deque([Bucket(0)])
        self._hour = -1
        self._bitmap = bytearray()
        self._closed: dict[tuple[str, str], Counter[str]] = {}
        self._before: dict[tuple[str, str], Counter[str]] = {}
        self._first_ms = 0

    def add_posts(self, ms: int, posts: int) -> None:
        """Count ``posts`` public posts at the time ``ms`` (since 1970). Times must not go back from call to call."""
        self.advance(ms)
        self._buckets[-1].posts += posts
        if ms // HOUR_MS > self._hour:
            self._hour, self._bitmap = ms // HOUR_MS, bytearray(BITMAP_BITS // 8)

    def advance(self, ms: int) -> None:
        """Let the present hour end at the time ``ms`` (since 1970), even if nobody posts."""
        self._first_ms = self._first_ms or ms
        number = ms // BUCKET_MS
        if number <= self._buckets[-1].number:
            return
        # Begin the bucket with this number. Add up the complete ones, of this hour and of the hour before.
        self._buckets[-1].terms.shrink(MAX_CLOSED_TERMS)
        self._buckets.append(Bucket(number))
        while self._buckets[0].number <= number - 2 * WINDOW_BUCKETS:
            self._buckets.popleft()
        self._closed, self._before = _sums(self._in_window(0)), _sums(self._in_window(1))

    def add_terms(self, author: str, terms: set[Term]) -> None:
        """Count the terms of one post.

        Terms that its author has used since the last full hour of the clock count no more.
        """
        bucket, bitmap = self._buckets[-1], self._bitmap
        bucket.counted += 1
        seed = crc32(author.encode())
        for term in terms:
            bit = crc32("\t".join(term).encode("utf-8", "surrogatepass"), seed) % BITMAP_BITS
            mask = 1 << (bit & 7)
            if not bitmap[bit >> 3] & mask:
                bitmap[bit >> 3] |= mask
                bucket.terms.add(term)

    def report(self, kind: str, language: str, most: int) -> TrendReport:
        """Return the ``most`` terms of a kind that grow most.

        ``language`` is a primary language subtag; empty for all.
        """
        current, now = self._buckets[-1], self._in_window(0)
        counts = Counter(self._closed.get((kind, language), {}))
        for (its_kind, its_language, text), count in current.terms.counts.items():
            if its_kind == kind and language in {ANY_LANGUAGE, its_language}:
                counts[text] += count
        earlier = self._before.get((kind, language), Counter[str]())
        counted, counted_before = (sum(b.counted for b in buckets) for buckets in (now, self._in_window(1)))
        ratio = counted / counted_before if counted_before else 0.0
        # A lower count than three is no trend: one author may count twice, before and after the full hour.
        expected = ((n, text, earlier[text] * ratio) for text, n in counts.items() if n >= 3)
        # The score says by how many standard deviations of chance (Poisson) a count is above the expected one.
        scored = (((n - mean) / math.sqrt(mean + 1), n, text) for n, text, mean in expected)
        best = nlargest(most, (each for each in scored if each[0] > 0))
        trends = [Trend(text, n, earlier[text], round(n / max(1.0, earlier[text] * ratio), 2)) for _, n, text in best]
        from_ms = max(self._first_ms, (current.number - WINDOW_BUCKETS + 1) * BUCKET_MS)
        undercount = sum(bucket.terms.max_undercount for bucket in now)
        return TrendReport(trends, from_ms, sum(bucket.posts for bucket in now), counted, undercount)

    def _in_window(self, hours_ago: int) -> list[Bucket]:
        first = self._buckets[-1].number - (hours_ago + 1) * WINDOW_BUCKETS
        return [bucket for bucket in self._buckets if first < bucket.number <= first + WINDOW_BUCKETS]


def _sums(buckets: list[Bucket]) -> dict[tuple[str, str], Counter[str]]:
    """Add up the counts of the terms, by kind (tag or word) and language. The empty language stands for all."""
    found: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for bucket in buckets:
        for (kind, language, text), count in bucket.terms.counts.items():
            found[kind, language][text] += count
    for (kind, _), counts in list(found.items()):
        found[kind, ANY_LANGUAGE].update(counts)
    return found


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
        """Count the new posts once a second, until cancelled."""
        await self._may_begin.wait()
        while True:
            await self.count_new_posts()
            await asyncio.sleep(1.0)

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
            post = decode_post(entry.body)
            if post is None or post.uid in self._hub.restricted_accounts.restricted:
                continue
            if str(entry.position.status_number) not in ring.deleted_ids:
                self._sketch.add_terms(post.uid, terms_of(post))


MAX_TERM_CHARS = 30
"""Longest tag or word in code points. Longer ones are not counted."""

_ENTITIES = re.compile(r"https?://\S+|www\.\S+|[@#\uff03$]\w+")
_LETTER, _APOSTROPHES = r"[^\W\d_]", r"'\u2019"
_WORD = re.compile(
    rf"(?<![\w{_APOSTROPHES}]){_LETTER}(?:{_LETTER}|[{_APOSTROPHES}](?={_LETTER})){{2,{MAX_TERM_CHARS - 1}}}(?!\w)"
)


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
