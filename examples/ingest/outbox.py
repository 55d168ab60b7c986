"""Bring the events of an existing site to a stream-server, each exactly once, with only the standard library.

    python outbox.py http://127.0.0.1:8000 $TOKEN site.db

The site writes each change of its data and one row of the table `outbox` in the same SQLite transaction (`Site.add`).
This program sends the rows that have no answer yet, and stores the answers. It may be killed at any time: a row that
was sent and not marked is sent again, and the server answers it as it did before. The token needs the scope `ingest`.
"""

import contextlib
import http.client
import json
import sqlite3
import sys
import time
import urllib.parse
import uuid
from collections.abc import Iterator
from typing import Any

ROWS_AT_ONCE = 1000
PAUSE_SECONDS = 1.0

END_CODES = frozenset({
    "unavailable", "outcome_unknown", "internal", "token_expired", "token_revoked", "invalid_token",
})  # fmt: skip
"""Errors of the server or of the token. They end the answers, and say nothing of the row in whose place they stand."""

TABLE = """
CREATE TABLE IF NOT EXISTS outbox (
  number INTEGER PRIMARY KEY, line TEXT NOT NULL, id TEXT, cursor TEXT, error TEXT,
  answered INTEGER NOT NULL DEFAULT 0
)
"""


class Failed(Exception):
    """Raised if the server cannot go on. Its answers so far are valid; the other rows are sent again."""


FAILURES = (Failed, OSError, http.client.HTTPException)
"""What :func:`send` may raise. The last one: the server ended in the middle of its answers."""


class Site:
    """The outbox of the site."""

    def __init__(self, path: str) -> None:
        self._base = sqlite3.connect(path)
        self._base.execute(TABLE)
        self._base.execute("CREATE INDEX IF NOT EXISTS open ON outbox (number) WHERE answered = 0")

    def close(self) -> None:
        self._base.close()

    def add(self, line: dict[str, Any]) -> None:
        """Add a line. A real site calls this inside the transaction that changes its own tables.

        A change gets an id, so that it counts once. Statuses have theirs.
        """
        if line["op"] not in ("post", "delete"):
            line = {"id": uuid.uuid4().hex, **line}
        with self._base:
            self._base.execute("INSERT INTO outbox (line) VALUES (?)", (json.dumps(line),))

    def unanswered(self) -> list[tuple[int, str]]:
        """Return the next rows to send, in their order."""
        query = "SELECT number, line FROM outbox WHERE answered = 0 ORDER BY number LIMIT ?"
        return self._base.execute(query, (ROWS_AT_ONCE,)).fetchall()

    def mark(self, answers: list[tuple[int, dict[str, Any]]]) -> None:
        """Store the answers of rows. A row with an error is not sent again: a person must look at it."""
        rows = [(a.get("id"), a.get("cursor"), json.dumps(a["error"]) if "error" in a else None, n) for n, a in answers]
        with self._base:
            update = "UPDATE outbox SET answered = 1, id = ?, cursor = ?, error = ? WHERE number = ?"
            self._base.executemany(update, rows)


def send(url: str, token: str, lines: list[str]) -> Iterator[dict[str, Any]]:
    """Send lines as one request and yield their answers. Raises one of FAILURES if something went wrong."""
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
    with contextlib.closing(kind(parts.netloc, timeout=60)) as connection:
        connection.request("POST", "/v1/ingest", "\n".join(lines).encode(), headers)
        with connection.getresponse() as response:
            if response.status != 200:
                raise Failed(response.read().decode())
            for text in response:
                if not text.endswith(b"\n"):
                    raise Failed("the server ended in the middle of an answer")
                answer = json.loads(text)
                if answer.get("error", {}).get("code") in END_CODES:
                    raise Failed(text.decode())
                yield answer


def run(site: Site, url: str, token: str) -> None:
    """Send what the outbox has, without end."""
    while True:
        rows = site.unanswered()
        answers: list[tuple[int, dict[str, Any]]] = []
        try:
            found = send(url, token, [line for _, line in rows]) if rows else ()
            answers.extend((rows[answer["line"] - 1][0], answer) for answer in found)
        except FAILURES as error:
            print(f"will be repeated: {error}", file=sys.stderr, flush=True)
        site.mark(answers)
        for number, answer in answers:
            print(number, answer.get("id") or answer["error"]["message"], flush=True)
        if len(answers) < ROWS_AT_ONCE:
            time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(f"usage: {sys.argv[0]} URL TOKEN DATABASE")
    address, jwt, database = sys.argv[1:]
    with contextlib.suppress(KeyboardInterrupt), contextlib.closing(Site(database)) as outbox:
        run(outbox, address, jwt)
