"""Deleted posts leave a lake: compared with a plain model, and wherever the process is killed."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # see above
import pytest

from stream_server.commands import export_files, lake_erasure
from stream_server.commands import lake as lake_module
from stream_server.commands.exit_codes import CommandFailure
from stream_server.commands.export_files import UnfinishedFile
from stream_server.commands.export_pages import Page
from stream_server.commands.lake_erasure import Erased, Eraser
from stream_server.commands.lake_files import LakeFile, open_lake
from stream_server.events.position import EPOCH_MS
from tests.stream_server.commands.lake_history import DAY, History, erase
from tests.stream_server.commands.lakes import (
    NOON_MS,
    PARAMETERS,
    Follower,
    Message,
    entry,
    files_of,
    killed_anywhere,
    messages_of,
    rows_of,
    unfinished_in,
    write_lake,
)
from tests.tiers import seeds


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of these tests need no pause, and each file has several row groups."""
    monkeypatch.setattr(lake_module, "PACE_SECONDS", 0)
    monkeypatch.setattr(export_files, "MAX_GROUP_ROWS", 7)


@pytest.mark.parametrize("seed", seeds(30, first_tier=2, second_tier=6))
async def test_what_is_left_is_what_a_plain_model_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """No column of any file has a word of what was deleted or replaced, and all else is as it was."""
    monkeypatch.setattr(lake_erasure, "MAX_IDS", 5)
    history = History(seed, 250)
    await write_lake(tmp_path, history.log, size=50)
    names = files_of(tmp_path)
    (result,) = await erase(tmp_path)
    assert files_of(tmp_path) == names
    assert len(names) > 5
    rows = rows_of(tmp_path)
    assert [json.loads(row["json"]) for row in rows] == history.left()
    everything = repr(rows)
    assert not [word for word in history.gone | history.replaced if word in everything]
    assert len(history.replaced) > 3
    assert 0 < result.files <= len(names) * 30
    assert result.erased >= len(history.log) - len(rows) > 0
    assert not await erase(tmp_path), "a second pass finds nothing"
    await write_lake(tmp_path, [entry(10_000, 10 * DAY)])
    assert [json.loads(row["json"]) for row in rows_of(tmp_path)][:-1] == history.left()


@pytest.mark.parametrize("seed", seeds(10, first_tier=1, second_tier=2))
async def test_a_pass_that_is_killed_anywhere_is_done_again(tmp_path: Path, seed: int) -> None:
    """Meanwhile a reader finds each file whole, either as it was or without what is deleted."""
    history = History(seed, 90)
    folder = tmp_path / "lake"
    await write_lake(folder, history.log)
    with killed_anywhere(folder, tmp_path) as copies:
        await erase(folder)
    assert sum(bool(unfinished_in(copy)) for copy in copies) >= 3, "no kill came while a file was written"
    left = [one["cursor"] for one in history.left()]
    for copy in copies:
        assert set(left) <= {one["cursor"] for one in messages_of(copy)}
        await erase(copy)
        assert messages_of(copy) == history.left()
        assert not unfinished_in(copy)


async def test_a_lake_goes_on_behind_a_newest_file_that_was_written_anew(tmp_path: Path) -> None:
    chance = History(0, 0)
    chance.post()
    chance.post()
    chance.delete()
    await write_lake(tmp_path, chance.log)
    assert await erase(tmp_path) == [Erased(1, 1)]
    await write_lake(tmp_path, [*chance.log, entry(10, 20)])
    assert [one["kind"] for one in messages_of(tmp_path)] == ["post", "delete", "post"]


async def test_rows_of_a_status_that_an_edit_took_out_of_the_filters_leave(tmp_path: Path) -> None:
    """Up to this edit. If another one brings the status back, its row stays, and earlier rows show it."""
    ids = {name: str((NOON_MS - EPOCH_MS + at) * 4096) for at, name in enumerate(("out", "back", "quote"))}
    texts: dict[str, Message] = {name: {"id": ids[name], "uid": "7", "message": f"{name} 1"} for name in ids}
    texts["quote"]["original"] = texts["out"]
    log = [
        *(entry(at, at, status=texts[name]) for at, name in enumerate(ids, 1)),
        *(entry(at, at, "edit", left={"id": ids[name], "uid": "7"}) for at, name in ((4, "out"), (5, "back"))),
        entry(6, 6, "edit", status=texts["back"] | {"message": "back 2", "edits": 2}),
    ]
    await write_lake(tmp_path, log)
    assert await erase(tmp_path) == [Erased(3, 1)]
    shown = [(row["kind"], row["id"], row["message"]) for row in rows_of(tmp_path)]
    assert shown == [
        ("post", ids["back"], "back 2"), ("post", ids["quote"], "quote 1"), ("edit", ids["out"], None),
        ("edit", ids["back"], None), ("edit", ids["back"], "back 2"),
    ]  # fmt: skip
    assert "out 1" not in repr(rows_of(tmp_path))


def version(edits: int, text: str, seconds: float) -> Message:
    """Return the status "1" as an edit at this time left it."""
    made = {"id": "1", "uid": "7", "message": text}
    return made | {"edits": edits, "edited": entry(1, seconds)["at"]} if edits else made


async def test_a_file_that_shows_the_last_version_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the file of the edit itself, nor one that has what the server replayed after the edit."""
    log = [
        entry(1, 1, status=version(0, "old", 1)), entry(2, 700, "like", status=version(1, "new", 1300)),
        entry(3, 1300, "edit", status=version(1, "new", 1300)),
    ]  # fmt: skip
    await write_lake(tmp_path, log)
    begun: list[Path] = []
    begin = UnfinishedFile.begin

    def counting(unfinished: UnfinishedFile) -> None:
        begun.append(unfinished.path)
        begin(unfinished)

    monkeypatch.setattr(UnfinishedFile, "begin", counting)
    assert await erase(tmp_path) == [Erased(1, 1)]
    assert begun == files_of(tmp_path)[:1]
    assert not await erase(tmp_path)
    assert len(begun) == 1
    assert [row["message"] for row in rows_of(tmp_path)] == ["new"] * 3


async def test_a_row_never_shows_an_earlier_version_than_before(tmp_path: Path) -> None:
    """The server replays the newest text. The edit with it may be in a file that is not complete yet."""
    log = [entry(1, 1, status=version(2, "newest", 900)), entry(2, 2, "edit", status=version(1, "newer", 2))]
    await write_lake(tmp_path, log)
    assert not await erase(tmp_path)
    assert [row["message"] for row in rows_of(tmp_path)] == ["newest", "newer"]


async def test_an_edit_that_redis_lost_is_replaced_too(tmp_path: Path) -> None:
    """The next edit has the number of the lost one, as an event and as an edit."""
    log = [
        entry(1, 1, status=version(0, "old", 1)), entry(9, 2, "edit", status=version(1, "lost", 2)),
        entry(5, 3, "edit", status=version(1, "kept", 3)),
    ]  # fmt: skip
    await write_lake(tmp_path, log)
    assert await erase(tmp_path) == [Erased(2, 1)]
    assert [row["message"] for row in rows_of(tmp_path)] == ["kept"] * 3


@pytest.mark.parametrize("moved", ["file", "folder"])
async def test_what_is_moved_away_meanwhile_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: str
) -> None:
    history = History(0, 0)
    history.post()
    history.seconds = 700.0
    history.delete()
    await write_lake(tmp_path, history.log)
    first, _ = files_of(tmp_path)
    plain = lake_erasure._without

    def moving(*given: Any) -> Any:
        if first.exists():
            (first if moved == "file" else first.parent.parent).rename(tmp_path / "away")
        return plain(*given)

    monkeypatch.setattr(lake_erasure, "_without", moving)
    await erase(tmp_path)
    assert not first.exists()
    if moved == "file":
        assert messages_of(tmp_path) == history.left()


@pytest.mark.parametrize("reading", ["_first_delete", "_gone_in"])
async def test_what_is_moved_away_before_it_is_read_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reading: str
) -> None:
    history = History(0, 0)
    for history.seconds in (0.0, 700.0):
        history.post()
    history.seconds = 1400.0
    history.delete_status(next(reversed(history.statuses.values())))
    await write_lake(tmp_path, history.log)
    first, *_ = files_of(tmp_path)
    plain = getattr(lake_erasure, reading)

    def moving(given: Any) -> Any:
        if first.exists():
            first.rename(tmp_path / "away")
        return plain(given)

    monkeypatch.setattr(lake_erasure, reading, moving)
    assert await erase(tmp_path) == [Erased(1, 1)]
    assert [one["kind"] for one in messages_of(tmp_path)] == ["delete"]


async def test_a_delete_waits_for_its_time(tmp_path: Path) -> None:
    """The oldest delete decides. Then all that are known are done, also those of the process before."""
    chance = History(0, 0)
    chance.post()
    chance.seconds = 700.0
    chance.delete()
    await write_lake(tmp_path, chance.log)
    assert not await erase(tmp_path, DAY, NOON_MS / 1000 + 700 + DAY - 1)
    assert len(messages_of(tmp_path)) == 2
    assert await erase(tmp_path, DAY, NOON_MS / 1000 + 700 + DAY) == [Erased(1, 1)]
    assert [one["kind"] for one in messages_of(tmp_path)] == ["delete"]


async def test_a_clock_that_is_behind_does_not_prolong_the_life_of_a_text(tmp_path: Path) -> None:
    """The log has gone on for long enough."""
    history = History(0, 0)
    history.post()
    history.delete()
    await write_lake(tmp_path, [*history.log, entry(10, DAY + 1)])
    assert await erase(tmp_path, DAY, 0) == [Erased(1, 1)]


async def test_the_next_file_notes_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the next process looks at the files behind it only."""
    history = History(3, 60)
    await write_lake(tmp_path, history.log)
    with open_lake(tmp_path, PARAMETERS) as lake:
        follower, told = Follower(lake), list[Erased]()
        eraser = Eraser(lake, 0, told.append)
        await eraser.run_due()
        assert len(told) == 1
        last = entry(1000, 10 * DAY, "delete", status={"id": "1", "uid": "7"})
        follower.writer.add(Page([last], last["cursor"]))
        follower.writer.complete()
    read: list[Path] = []
    plain = lake_erasure._read

    def reading(file: LakeFile, columns: list[str]) -> Any:
        read.append(file.path)
        return plain(file, columns)

    monkeypatch.setattr(lake_erasure, "_read", reading)
    assert not await erase(tmp_path)
    assert set(read) == {files_of(tmp_path)[-1]}


@pytest.mark.parametrize("content", [b"", b"PAR1 cut", b"a page", None])
async def test_a_damaged_old_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    """The others are as they were. A page of rows may be damaged where the end of the file is whole."""
    history = History(2, 80)
    await write_lake(tmp_path, history.log)
    damaged = files_of(tmp_path)[1]
    if content is None:
        pq.write_table(pa.table({"id": ["1"]}), damaged)
    elif content == b"a page":
        whole = damaged.read_bytes()
        damaged.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    else:
        damaged.write_bytes(content)
    others = [path.read_bytes() for path in files_of(tmp_path) if path != damaged]
    with pytest.raises(CommandFailure, match=damaged.name):
        await erase(tmp_path)
    assert [path.read_bytes() for path in files_of(tmp_path) if path != damaged] == others
    assert not unfinished_in(tmp_path)
