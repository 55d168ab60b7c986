"""The results in one SQLite file: counts, and the cursor of each partition, changed in one transaction.

A counter that is killed at any moment leaves either both the counts of a batch and the cursor after it, or neither. It
goes on after the cursor that it finds. So each event counts once.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cursors (part TEXT PRIMARY KEY, cursor TEXT NOT NULL, events INTEGER, missed INTEGER);
CREATE TABLE IF NOT EXISTS minutes (minute TEXT PRIMARY KEY, posts INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS terms (
  kind TEXT, minute TEXT, term TEXT, posts INTEGER NOT NULL, PRIMARY KEY (kind, minute, term)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS people (
  kind TEXT, login TEXT, posts INTEGER NOT NULL, PRIMARY KEY (kind, login)
) WITHOUT ROWID;
"""

TRENDING_MINUTES = 10
KEPT_MINUTES = 24 * 60
"""Terms of earlier minutes are forgotten, so the file stays small. The posts of each minute and of people stay."""

TRENDS = """
WITH recent AS (
  SELECT term, SUM(posts) AS posts FROM terms WHERE kind = :kind AND minute > :recent GROUP BY term
), usual AS (
  SELECT term, SUM(posts) * 1.0 * :window / :rest AS posts
  FROM terms WHERE kind = :kind AND minute <= :recent AND minute > :oldest GROUP BY term
)
SELECT recent.term, recent.posts, (recent.posts - COALESCE(usual.posts, 0)) / (1 + COALESCE(usual.posts, 0)) AS rise
FROM recent LEFT JOIN usual USING (term) ORDER BY rise DESC, recent.posts DESC, recent.term LIMIT :count
"""
"""Terms that are more frequent in the last minutes than usual, compared with the rest of the kept time."""

WORD = re.compile(r"[^\W\d_][\w'\u2019]{2,}")
NOT_WORDS = re.compile(r"https?://\S+|[@#$]\w+")
COMMON_TEXT = """
the and for that this with you are was not but have has had from they she his her its our your all can will just about
what when who how out get one new more some than then there been were would could into over also only
"""
COMMON_WORDS = frozenset(COMMON_TEXT.split())


class Post(NamedTuple):
    """The parts of one post that are counted."""

    at: datetime
    login: str
    message: str
    tags: Sequence[str]
    mentions: Sequence[str]


class Batch(NamedTuple):
    """Posts that arrived together, the cursor after them, and how many events the server could not deliver."""

    posts: Sequence[Post]
    cursor: str
    missed: int = 0


def words_of(message: str) -> set[str]:
    """Return the words of a message: three letters or more, no links, tags, mentions and common words."""
    return set(WORD.findall(NOT_WORDS.sub(" ", message).lower())) - COMMON_WORDS


def minute_of(at: datetime) -> str:
    """Return the minute of a time. Minutes in this form sort by time."""
    return f"{at:%Y-%m-%dT%H:%M}"


class Results:
    """The results in ``path``. Several processes may use the file at the same time, each with its own object."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, timeout=30, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")  # a power cut may undo whole batches, with their cursors
        self._database.executescript(SCHEMA)

    def close(self) -> None:
        self._database.close()

    def begin(self, part: int, parts: int) -> str | None:
        """Return the cursor after which this part goes on, None at its first start.

        Raises ValueError if the file was counted with another number of parts: their cursors do not fit together.
        """
        self._database.execute("INSERT OR IGNORE INTO settings VALUES ('parts', ?)", (str(parts),))
        (known,) = self._database.execute("SELECT value FROM settings WHERE name = 'parts'").fetchone()
        if known != str(parts):
            raise ValueError(f"this file was counted in {known} parts; use another file for {parts}")
        row = self._database.execute("SELECT cursor FROM cursors WHERE part = ?", (f"{part}/{parts}",)).fetchone()
        return None if row is None else str(row[0])

    def add(self, part: str, batch: Batch) -> None:
        """Add a batch and its cursor in one transaction."""
        minutes = Counter(minute_of(post.at) for post in batch.posts)
        terms = Counter(row for post in batch.posts for row in _terms(post))
        people = Counter(row for post in batch.posts for row in _people(post))
        with self._database:  # commits, or rolls back if an exception leaves the block
            self._database.execute("BEGIN IMMEDIATE")
            self._count("minutes (minute, posts) VALUES (?, ?)", "minute", [(row, n) for row, n in minutes.items()])
            self._count("terms VALUES (?, ?, ?, ?)", "kind, minute, term", [(*row, n) for row, n in terms.items()])
            self._count("people VALUES (?, ?, ?)", "kind, login", [(*row, n) for row, n in people.items()])
            self._database.execute(
                "INSERT INTO cursors VALUES (?, ?, ?, ?) ON CONFLICT (part) DO UPDATE SET cursor = excluded.cursor, "
                "events = events + excluded.events, missed = missed + excluded.missed",
                (part, batch.cursor, len(batch.posts), batch.missed),
            )

    def forget_old_terms(self) -> None:
        """Forget the terms of minutes before the kept ones."""
        newest = self.newest_minute()
        if newest:
            self._database.execute("DELETE FROM terms WHERE minute <= ?", (_minutes_before(newest, KEPT_MINUTES),))

    def newest_minute(self) -> str:
        return str(self._database.execute("SELECT COALESCE(MAX(minute), '') FROM minutes").fetchone()[0])

    def summary(self, count: int = 10) -> dict[str, list[tuple[str, int]] | dict[str, int]]:
        """Return the figures of the views: posts a minute, trends, the most active and most mentioned users, totals."""
        newest = self.newest_minute()
        query = "SELECT login, posts FROM people WHERE kind = ? ORDER BY posts DESC, login LIMIT ?"
        minutes = "SELECT minute, posts FROM minutes WHERE minute > ? ORDER BY minute"
        totals = "SELECT COALESCE(SUM(events), 0), COALESCE(SUM(missed), 0) FROM cursors"
        events, missed = self._database.execute(totals).fetchone()
        return {
            "minutes": self._database.execute(minutes, (_minutes_before(newest, 60),)).fetchall() if newest else [],
            "tags": self._trends("tag", newest, count),
            "words": self._trends("word", newest, count),
            "active": self._database.execute(query, ("active", count)).fetchall(),
            "mentioned": self._database.execute(query, ("mentioned", count)).fetchall(),
            "totals": {"posts": events, "missed": missed},
        }

    def _trends(self, kind: str, newest: str, count: int) -> list[tuple[str, int]]:
        if not newest:
            return []
        values = {
            "kind": kind, "count": count, "window": TRENDING_MINUTES, "rest": KEPT_MINUTES - TRENDING_MINUTES,
            "recent": _minutes_before(newest, TRENDING_MINUTES), "oldest": _minutes_before(newest, KEPT_MINUTES),
        }  # fmt: skip
        return [(term, posts) for term, posts, _ in self._database.execute(TRENDS, values)]

    def _count(self, columns: str, key: str, rows: list[tuple[str | int, ...]]) -> None:
        update = f"INSERT INTO {columns} ON CONFLICT ({key}) DO UPDATE SET posts = posts + excluded.posts"
        self._database.executemany(update, rows)


def read_summary(path: Path) -> dict[str, list[tuple[str, int]] | dict[str, int]]:
    """Return the summary of a file of results."""
    with closing(Results(path)) as results:
        return results.summary()


def _terms(post: Post) -> Iterable[tuple[str, str, str]]:
    minute = minute_of(post.at)
    yield from (("tag", minute, tag) for tag in {tag.lower() for tag in post.tags})
    yield from (("word", minute, word) for word in words_of(post.message))


def _people(post: Post) -> Iterable[tuple[str, str]]:
    yield "active", post.login
    yield from (("mentioned", login) for login in {login.lower() for login in post.mentions})


def _minutes_before(minute: str, count: int) -> str:
    """Return the minute ``count`` minutes earlier."""
    return minute_of(datetime.fromisoformat(minute) - timedelta(minutes=count))
