"""A rolling lake: which event is in which file, and that it is in exactly one, whenever the process ends."""

import asyncio
import errno
import os
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # see above
import pytest

from stream_server.commands import export_files
from stream_server.commands import lake as lake_module
from stream_server.commands.exit_codes import CommandFailure
from stream_server.commands.export_pages import Page
from stream_server.commands.lake import follow_pages
from stream_server.commands.lake_files import open_lake, read_notes
from tests.command_line import invoke
from tests.stream_server.commands.lake_history import History, erase
from tests.stream_server.commands.lakes import (
    NOON_MS,
    PARAMETERS,
    Follower,
    entry,
    files_of,
    gap,
    killed_anywhere,
    messages_of,
    rows_of,
    unfinished_in,
    write_lake,
)
from tests.tiers import sample, seeds
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of these tests need no pause."""
    monkeypatch.setattr(lake_module, "PACE_SECONDS", 0)


async def test_a_file_has_the_events_of_its_time_and_the_name_of_the_first_one(tmp_path: Path) -> None:
    log = [entry(number, seconds) for number, seconds in enumerate((0, 599, 600, 1799.9, 3599, 3600, 90_000), 1)]
    told = await write_lake(tmp_path, log, size=3)
    assert [str(path.relative_to(tmp_path)) for path in files_of(tmp_path)] == [
        f"dt=2025-11-28/hour=12/{NOON_MS}-0.1.parquet", f"dt=2025-11-28/hour=12/{NOON_MS + 600_000}-0.3.parquet",
        f"dt=2025-11-28/hour=12/{NOON_MS + 1_799_900}-0.4.parquet",
        f"dt=2025-11-28/hour=12/{NOON_MS + 3_599_000}-0.5.parquet",
        f"dt=2025-11-28/hour=13/{NOON_MS + 3_600_000}-0.6.parquet",
        f"dt=2025-11-29/hour=13/{NOON_MS + 90_000_000}-0.7.parquet",
    ]  # fmt: skip
    assert messages_of(tmp_path) == log
    assert [one.events for one in told] == [2, 1, 1, 1, 1, 1]
    assert [one.file for one in told] == [str(path) for path in files_of(tmp_path)]
    assert [one.bytes for one in told] == [path.stat().st_size for path in files_of(tmp_path)]
    assert rows_of(tmp_path)[0]["shown"] == ["1"]


async def test_the_next_start_goes_on_behind_the_newest_file(tmp_path: Path) -> None:
    log = [entry(number, number * 100) for number in range(1, 41)]
    for end in (1, 7, 7, 12, 40):
        await write_lake(tmp_path, log[:end])
        assert messages_of(tmp_path) == log[:end]
    assert not unfinished_in(tmp_path)


@pytest.mark.parametrize("seed", seeds(20, first_tier=1, second_tier=3))
async def test_each_event_is_in_one_file_wherever_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    """The folder is copied at each step that changes a name in it, and after each page. Each copy is gone on with."""
    chance = random.Random(seed)
    times = sorted(chance.uniform(0, 5000) for _ in range(20))
    log = [entry(number, seconds) for number, seconds in enumerate(times, 1)]
    log.insert(9, gap(log[8]))
    folder = tmp_path / "lake"
    folder.mkdir()
    with killed_anywhere(folder, tmp_path) as copies:
        await write_lake(folder, log, every=1200)
    assert messages_of(folder) == log
    assert sum(bool(unfinished_in(copy)) for copy in copies) > len(files_of(folder)), "no file was half written"
    for copy in copies:
        found = messages_of(copy)
        assert found == log[: len(found)], "a reader found half a file"
        await write_lake(copy, log, every=1200)
        assert messages_of(copy) == log
        assert not unfinished_in(copy)


async def test_a_file_is_completed_in_time_although_no_event_follows(tmp_path: Path) -> None:
    """It waits for as long as its part of the hour was, and then for an event that may be on its way."""
    with open_lake(tmp_path, PARAMETERS) as lake:
        follower = Follower(lake)
        follower.writer.add(Page([entry(1, 500)], entry(1, 500)["cursor"]))
        follower.now = 100 + lake_module.LATE_SECONDS - 1
        follower.writer.complete_late()
        assert not files_of(tmp_path)
        follower.now += 1
        follower.writer.complete_late()
        assert messages_of(tmp_path) == [entry(1, 500)]
        follower.writer.add(Page([entry(2, 501)], entry(2, 501)["cursor"]))
        follower.writer.complete()
    assert messages_of(tmp_path) == [entry(1, 500), entry(2, 501)], "an event that comes late is in a file of its own"


async def test_a_quiet_time_leaves_a_file_with_the_cursor_only(tmp_path: Path) -> None:
    """Without it, a filter that matches nothing for days would begin at a cursor that the log has not any more."""
    with open_lake(tmp_path, PARAMETERS) as lake:
        follower = Follower(lake)
        for seconds in (10, 20, 700):
            follower.writer.add(Page([], entry(seconds, seconds)["cursor"]))
            follower.writer.complete_late()
            follower.now += 700
        follower.writer.complete_late()
        follower.writer.complete()
    cursors = [read_notes(path).cursor for path in files_of(tmp_path)]
    assert cursors == [path.stem for path in files_of(tmp_path)] == [entry(one, one)["cursor"] for one in (10, 20, 700)]
    assert rows_of(tmp_path) == []
    assert await write_lake(tmp_path, [entry(5, 5), entry(800, 800)])
    assert messages_of(tmp_path) == [entry(800, 800)]


async def test_a_log_that_stands_still_leaves_no_file(tmp_path: Path) -> None:
    with open_lake(tmp_path, PARAMETERS) as lake:
        follower = Follower(lake)
        for _ in range(5):
            follower.writer.add(Page([], "0-0.0"))
            follower.writer.complete_late()
            follower.now += 10_000
    assert files_of(tmp_path) == []


async def test_a_gap_is_a_row_before_the_event_behind_it(tmp_path: Path) -> None:
    """Also in the middle of a page, and if its event begins another file."""
    log = [gap(entry(4, 1)), entry(5, 2), gap(entry(8, 650)), entry(9, 700), entry(10, 701), gap(entry(14, 720))]
    told = await write_lake(tmp_path, log)
    assert messages_of(tmp_path) == log
    assert [[one.count for one in file.gaps] for file in told] == [[3], [3, 3]]
    assert [row["kind"] for row in rows_of(tmp_path)] == ["gap", "post", "gap", "post", "post", "gap"]


async def test_a_gap_behind_which_nothing_came_is_told_once(tmp_path: Path) -> None:
    """Its file has a cursor behind it. Until then it is in no file, because the server tells it again."""
    with open_lake(tmp_path, PARAMETERS) as lake:
        follower = Follower(lake)
        lost = gap(entry(4, 1))
        follower.writer.add(Page([lost], lost["cursor"]))
        follower.writer.complete()
        assert files_of(tmp_path) == []
        follower.now = 10_000
        follower.writer.complete_late()
    assert messages_of(tmp_path) == [lost]
    assert read_notes(files_of(tmp_path)[0]).cursor == lost["cursor"]


async def test_a_log_that_lost_its_end_is_followed(tmp_path: Path) -> None:
    """The gap's cursor is before events that the lake has. The next file is behind them all the same."""
    before = [entry(1, 1), entry(2, 2), entry(3, 3)]
    await write_lake(tmp_path, before)
    with open_lake(tmp_path, PARAMETERS) as lake:
        follower = Follower(lake)
        lost = gap(entry(1, 1)) | {"reason": "rolled_back"}
        follower.writer.add(Page([lost], lost["cursor"]))
        follower.now = 10_000
        follower.writer.complete_late()
        assert len(files_of(tmp_path)) == 1
        follower.writer.add(Page([entry(2, 4)], entry(2, 4)["cursor"]))
        follower.writer.complete()
    assert messages_of(tmp_path) == [*before, lost, entry(2, 4)]


async def test_another_server_is_noticed(tmp_path: Path) -> None:
    """Nothing that is in the lake is written over."""
    await write_lake(tmp_path, [entry(1, 1000)])
    with open_lake(tmp_path, PARAMETERS) as lake, pytest.raises(CommandFailure, match="is this the same server"):
        Follower(lake).writer.add(Page([entry(1, 1000)], entry(1, 1000)["cursor"]))
    assert messages_of(tmp_path) == [entry(1, 1000)]


def test_two_processes_never_write_one_lake(tmp_path: Path) -> None:
    busy = pytest.raises(CommandFailure, match="another `stream-server export` writes this lake")
    with open_lake(tmp_path, PARAMETERS), busy:
        open_lake(tmp_path, PARAMETERS).__enter__()
    with open_lake(tmp_path, PARAMETERS):
        pass


async def test_other_filters_need_another_folder(tmp_path: Path) -> None:
    await write_lake(tmp_path, [entry(1, 1)])
    with pytest.raises(CommandFailure, match="this lake has what firehose=true selects"):
        open_lake(tmp_path, {"track": "tea"}).__enter__()


@pytest.mark.parametrize("content", [b"", b"not a table", None])
async def test_a_newest_file_of_somebody_else_is_named(tmp_path: Path, content: bytes | None) -> None:
    await write_lake(tmp_path, [entry(1, 1)])
    strange = files_of(tmp_path)[0].with_name(f"{NOON_MS + 2000}-0.2.parquet")
    if content is None:
        pq.write_table(pa.table({"id": ["1"]}), strange)
    else:
        strange.write_bytes(content)
    with pytest.raises(CommandFailure, match=rf"{strange.name} is not a file of this lake"):
        open_lake(tmp_path, PARAMETERS).__enter__()


class Disk:
    """The steps that write something. From the step ``full_at`` on, or at this one only, the disk is full."""

    def __init__(self, patch: pytest.MonkeyPatch, full_at: int, *, stays_full: bool) -> None:
        self.steps, self.full_at, self.stays_full = 0, full_at, stays_full
        steps = [(Path, "mkdir"), (Path, "touch"), (Path, "replace"), (os, "fsync"), (pq.ParquetWriter, "write_table")]
        for owner, name in (*steps, (export_files.ParquetFile, "close")):
            patch.setattr(owner, name, self.limited(getattr(owner, name)))

    def limited(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def take(*given: Any, **named: Any) -> Any:
            self.steps += 1
            if self.steps == self.full_at or (self.stays_full and self.steps > self.full_at):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return step(*given, **named)

        return take


@pytest.mark.parametrize("stays_full", [True, False])
@pytest.mark.parametrize("step", sample(range(1, 46), lambda step: step % 20 == 5, lambda step: step % 5 == 0))
async def test_a_disk_that_is_full_at_any_step_leaves_whole_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, *, stays_full: bool
) -> None:
    """While files are written and erased. The next start has all events, and erases all."""
    monkeypatch.setattr(export_files, "MAX_GROUP_ROWS", 7)
    history = History(4, 40)
    await write_lake(tmp_path, history.log[:5])
    with monkeypatch.context() as patch:
        disk = Disk(patch, step, stays_full=stays_full)
        with suppress(OSError, CommandFailure):
            await write_lake(tmp_path, history.log)
            await erase(tmp_path)
    assert disk.steps >= step
    assert not unfinished_in(tmp_path)
    found = [one["cursor"] for one in messages_of(tmp_path)]
    assert found == [one["cursor"] for one in history.log if one["cursor"] in found]
    await write_lake(tmp_path, history.log)
    await erase(tmp_path)
    assert messages_of(tmp_path) == history.left()


async def test_what_was_read_is_completed_when_the_server_refuses_more(tmp_path: Path) -> None:
    log = [entry(1, 1), entry(2, 2)]

    async def pages() -> AsyncGenerator[Page, None]:
        yield Page(log, log[-1]["cursor"])
        raise PermissionError("the token has ended")

    with open_lake(tmp_path, PARAMETERS) as lake, pytest.raises(PermissionError):
        await follow_pages(pages(), Follower(lake).writer, None)
    assert messages_of(tmp_path) == log


async def test_a_file_is_completed_in_time_while_the_server_is_away(tmp_path: Path) -> None:
    """The page that does not come holds nothing back, and the events behind it come once."""
    away = asyncio.Event()

    async def pages() -> AsyncGenerator[Page, None]:
        yield Page([entry(1, 1)], entry(1, 1)["cursor"])
        follower.now = 10_000
        await away.wait()
        yield Page([entry(2, 2)], entry(2, 2)["cursor"])

    with open_lake(tmp_path, PARAMETERS) as lake:
        follower = Follower(lake)
        work = asyncio.ensure_future(follow_pages(pages(), follower.writer, None))
        await eventually(lambda: follower.told)
        assert messages_of(tmp_path) == [entry(1, 1)]
        away.set()
        await work
    assert messages_of(tmp_path) == [entry(1, 1), entry(2, 2)]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--every", "1h", "--until", "soon"), "--until soon: give `now`"),
        (("--every", "2h"), "'2h' is longer than 3600 seconds"),
        (("--every", "often"), "'often' is not a duration"),
        (("--erase-after", "1d", "--since", "-1h"), "--erase-after is for a lake: give --every, too"),
        ((), "--since: say where to start"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    outcome = invoke("export", "--token", "x", "--to", tmp_path / "lake", *options)
    assert (outcome.code, sentence in outcome.err) == (2, True), outcome.err
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("mine")
    outcome = invoke("export", "--token", "x", "--to", tmp_path / "lake", "--every", "1h")
    assert (outcome.code, "File exists" in outcome.err) == (1, True), outcome.err
