"""The queries of the guide's page about lakes give what a plain count of the log gives."""

import contextlib
import io
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from stream_server.commands import lake as lake_module
from tests.docs_examples import blocks
from tests.end_to_end.server import ROOT
from tests.stream_server.commands.lakes import NOON_MS, Message, entry, gap, write_lake

PAGE = ROOT / "docs" / "guide" / "lake.md"

TAGS: tuple[list[str], ...] = (["Tea", "milk"], [], ["tea"], ["Café"])


def answers(number: int) -> list[Any]:
    """Run a program of the page in the working folder, and return what it printed, a value for each line."""
    program = [block.text for block in blocks(PAGE) if block.language == "python"][number]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, str(PAGE), "exec"), {"__name__": "__main__"})
    names = {"datetime": __import__("datetime")}
    return [eval(line, names) for line in printed.getvalue().splitlines()]


def a_log() -> tuple[list[Message], list[Message]]:
    """Return a log of 30 posts in three hours, and the last states of those that are there at the end.

    Two are edited twice within a millisecond, one of them out of the filters and back, and one only out of them. Then
    every third is deleted. Redis has lost the edit of a post before it was edited again, with a lower number.
    """
    posts = [
        entry(n, n * 300, status={
            "id": str(n), "uid": "7", "login": "ann", "message": f"text {n}",
            "entities": {"hashtags": [{"text": tag} for tag in TAGS[n % 4]], "mentions": []},
        })
        for n in range(1, 31)
    ]  # fmt: skip
    edits = [
        entry(40 + at, 9300, "edit", **members)
        for at, members in enumerate((left_of(1), edited(1, "one"), left_of(2), edited(4, "x"), edited(4, "y")))
    ]
    lost = entry(90, 9310, "edit", **edited(5, "lost"))
    again = entry(50, 9320, "edit", **edited(5, "again"))
    deletes = [entry(100 + n, 9500 + n, "delete", status={"id": str(n), "uid": "7"}) for n in range(3, 31, 3)]
    there = [post for n, post in enumerate(posts, 1) if n % 3 and n not in {1, 2, 4, 5}]
    log = [*posts, *edits, lost, again, gap(entry(99, 9400), 17), *deletes]
    return log, [*there, edits[1], edits[-1], again]


def left_of(n: int) -> Message:
    return {"left": {"id": str(n), "uid": "7"}}


def edited(n: int, tag: str) -> Message:
    entities = {"hashtags": [{"text": tag}], "mentions": []}
    return {"status": {"id": str(n), "uid": "7", "login": "ann", "message": f"text {tag}", "entities": entities}}


@pytest.mark.parametrize("number", [0, 1], ids=["duckdb", "polars"])
async def test_the_queries_of_the_page_count_the_last_versions_of_what_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(lake_module, "PACE_SECONDS", 0)
    log, left = a_log()
    await write_lake(tmp_path / "lake", log)
    monkeypatch.chdir(tmp_path)
    found = answers(number)
    hours = Counter(datetime.fromisoformat(post["at"]).astimezone(UTC).hour for post in left)
    day = datetime.fromtimestamp(NOON_MS / 1000, UTC).date()
    assert found[0] == [(day, hour, count) for hour, count in sorted(hours.items())]
    tags = Counter(tag["text"].lower() for post in left for tag in post["status"]["entities"]["hashtags"])
    assert found[1] == sorted(tags.items(), key=lambda pair: (-pair[1], pair[0]))
    if number == 0:
        assert found[2] == [("trimmed", "17")]


async def test_a_day_is_read_from_its_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders are columns, by which DuckDB leaves the files of other days out."""
    monkeypatch.setattr(lake_module, "PACE_SECONDS", 0)
    await write_lake(tmp_path, [entry(1, 1), entry(2, 86_400)])
    events = f"FROM read_parquet('{tmp_path}/*/*/*.parquet') WHERE dt = '2025-11-29'"
    assert duckdb.execute(f"SELECT id {events}").fetchall() == [("2",)]
    (_, plan), *_ = duckdb.execute(f"EXPLAIN SELECT id {events}").fetchall()
    assert "Scanning Files: 1/2" in plan
