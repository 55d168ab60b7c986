"""Takes deleted posts and replaced texts out of the files of a lake: rewrites each file that shows one.

What leaves is what a replay of the server leaves out: the rows that show the text of a deleted status or comment, also
its likes. A repost or quote of a deleted status stays, with ``original`` null. The rows that tell of the delete stay,
because they have only ids, and so do its edits, with ``left``. A row that shows a status before an edit gets the status
as it was edited. If the edit took the status out of the lake's filters, it is as if it was deleted, up to this edit.

Each file is replaced by a whole one, so a pass may stop anywhere and be done twice.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import msgspec

from stream_server.commands.export_files import UnfinishedFile, row_of
from stream_server.commands.lake_files import NOTES_KEY, SHOWN, Lake, LakeDamaged, LakeFile, position_of, shown_in
from stream_server.commands.output import member
from stream_server.events.position import LOG_START, Position, created_ms
from stream_server.events.versions import show_version, with_ids_only

MAX_IDS = 100_000
MAX_VERSION_BYTES = 64 * 2**20
"""Ids of deleted statuses, comments and users, and of edited statuses, that a pass over the files has in memory, and
the JSON of the edited ones. A row group may exceed them."""

_TELLING = frozenset({"delete", "uncomment", "user_delete"})
"""The kinds that tell of a delete. They stay, with ids only."""

_REPLACING = _TELLING | {"edit"}
"""The kinds that make texts of earlier rows go."""

_BETWEEN_USERS = frozenset({"follow", "unfollow", "request", "unrequest", "block", "unblock", "mute", "unmute"})
"""The kinds that show a second user, who is not in the column ``uid``."""


class Erased(msgspec.Struct):
    """The result of a pass: rows that are gone or changed, and files that were written anew."""

    erased: int = 0
    files: int = 0

    def sentences(self) -> list[str]:
        """Return the result in words."""
        return [f"deleted posts and replaced texts are taken out: {self.erased:,} rows in {self.files:,} files"]


class Gone:
    """The deletes and edits that some files have.

    Attributes:
        ids: Ids of deleted statuses and comments.
        users: Ids of deleted users.
        edited: The last `edit` of each status, as JSON, by the id of the status.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.users: set[str] = set()
        self.edited: dict[str, str] = {}
        self._version_bytes = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is gone."""
        return not (self.ids or self.users or self.edited)

    @property
    def is_full(self) -> bool:
        """Whether it takes as much memory as it may."""
        count = len(self.ids) + len(self.users) + len(self.edited)
        return count >= MAX_IDS or self._version_bytes >= MAX_VERSION_BYTES

    def add(self, rows: Any) -> None:
        """Add what rows of the kinds _REPLACING say."""
        for kind, name, uid, text in zip(*(rows[column].to_pylist() for column in _TOLD), strict=True):
            if kind == "user_delete":
                self.users.add(uid)
            elif kind == "edit":
                self._version_bytes += len(text) - len(self.edited.get(name, ""))
                self.edited[name] = text
            else:
                self.ids.add(name)

    def since_ms(self) -> int:
        """Return the time from which on something of it may be shown, in Unix ms: an id has the time of its making."""
        return 0 if self.users else created_ms(min(map(int, self.ids | self.edited.keys())))

    def leave(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return what is left of an event: the event, a changed one, or None."""
        left = self._without_deleted(event)
        return left and self._as_edited(left)

    def _as_edited(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return an event with the statuses that it shows as they were edited later."""
        status = member(event, "status")
        for shown in (status, member(status, "original")):
            if "message" not in shown or shown["id"] not in self.edited:
                continue
            edit = msgspec.json.decode(self.edited[shown["id"]])
            is_shown = "status" in edit and _version(edit["status"]) <= _version(shown)
            if is_shown or _place(edit) <= _place(event):
                continue
            if "status" in edit:
                event = show_version(event, edit["status"])
            elif shown is status:
                return None
            else:
                event = event | {"status": status | {"original": None}}
        return event

    def _without_deleted(self, event: dict[str, Any]) -> dict[str, Any] | None:
        status, comment = member(event, "status"), member(event, "comment")
        if event["kind"] == "uncomment":
            if status.get("id") in self.ids and "message" in status:
                return event | {"status": {"id": status["id"], "uid": status["uid"], "deleted": True}}
            return event
        people = {member(event, name).get("id") for name in ("source", "target", "user")}
        authors = {one.get("uid") for one in (status, comment)}
        if {status.get("id"), comment.get("id")} & self.ids or (people | authors) & self.users:
            return with_ids_only(event) if event["kind"] == "edit" else None
        if member(status, "original").get("id") in self.ids:
            return event | {"status": status | {"original": None}}
        return event


def _place(event: dict[str, Any]) -> Position:
    """Return the place of an event on the log."""
    return position_of(event["cursor"]) or LOG_START


def _version(status: dict[str, Any]) -> tuple[str, int]:
    """Return what tells a version of a status from its others, and is greater for a later one.

    The number of edits alone does not: it comes again if Redis has lost an edit that the lake has.
    """
    return status.get("edited", ""), status.get("edits", 0)


_TOLD = ("kind", "id", "uid", "json")
"""The columns that say what is gone."""


def _gone_in(files: list[LakeFile]) -> Iterator[tuple[Gone, LakeFile]]:
    """Yield what the rows of some files say, in pieces that fit into memory, each with the last file of the piece.

    A file that was deleted or moved away meanwhile says nothing.
    """
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra, slow to load

    gone = Gone()
    for file in files:
        with suppress(FileNotFoundError), _opened(file) as opened:
            for number in range(opened.num_row_groups):
                kinds = opened.read_row_group(number, columns=["kind"])["kind"]
                telling = _is_one_of(kinds, _REPLACING)
                if pc.any(telling).as_py():
                    gone.add(opened.read_row_group(number, columns=list(_TOLD)).filter(telling))
                if gone.is_full:
                    yield gone, file
                    gone = Gone()
    yield gone, files[-1]


@contextmanager
def _opened(file: LakeFile) -> Iterator[Any]:
    """Yield the open file. Raises :class:`LakeDamaged` if it is no file of a lake, also when its rows are read."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra, slow to load

    try:
        with pq.ParquetFile(file.path) as opened:
            if SHOWN not in opened.schema_arrow.names:
                raise LakeDamaged(f"{file.path} is not a file of this lake: it has no column `{SHOWN}`")
            yield opened
    except (OSError, ValueError) as error:  # those of pyarrow about damaged bytes are of both kinds
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise LakeDamaged(f"{file.path} is damaged: {error}") from None


def _read(file: LakeFile, columns: list[str]) -> Any:
    with _opened(file) as opened:
        return opened.read(columns=columns)


def _is_one_of(column: Any, values: frozenset[str] | set[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an extra, slow to load
    import pyarrow.compute as pc  # noqa: PLC0415 - an extra

    return pc.is_in(column.cast(pa.string()), value_set=pa.array(list(values), pa.string()))


def _rows_with(table: Any, gone: Gone) -> list[int]:
    """Return the numbers of the rows that may show something of ``gone``, in ascending order."""
    import pyarrow.compute as pc  # noqa: PLC0415 - an extra

    shown = table[SHOWN].combine_chunks()
    names = gone.ids | gone.edited.keys()
    found = set(pc.list_parent_indices(shown).filter(_is_one_of(pc.list_flatten(shown), names)).to_pylist())
    if gone.users:
        by_users = pc.or_(_is_one_of(table["uid"], gone.users), _is_one_of(table["kind"], _BETWEEN_USERS))
        telling = _is_one_of(table["kind"], _TELLING)
        found.update(pc.indices_nonzero(pc.and_not(by_users, telling)).to_pylist())
    return sorted(found)


def _changes(table: Any, gone: Gone) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield the numbers of the rows of a row group that show what is gone, each with what is left of its event."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    rows = _rows_with(table, gone)
    for row, text in zip(rows, table["json"].take(pa.array(rows, pa.int64())).to_pylist(), strict=True):
        event = msgspec.json.decode(text)
        left = gone.leave(event)
        if left is not event:
            yield row, left


def _without(table: Any, gone: Gone) -> tuple[Any, int]:
    """Return the rows of a row group without what is gone, and how many rows are gone or changed."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    places: list[int | None] = list(range(table.num_rows))
    changed, replacing = 0, list[tuple[Any, ...]]()
    for row, left in _changes(table, gone):
        changed, places[row] = changed + 1, None
        if left is not None:
            places[row] = table.num_rows + len(replacing)
            replacing.append((*row_of(left), shown_in(left)))
    if not changed:
        return table, 0
    columns = zip(*replacing, strict=True) if replacing else [()] * len(table.schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, table.schema, strict=True)]
    both = pa.concat_tables([table, pa.table(arrays, schema=table.schema)]).unify_dictionaries().combine_chunks()
    return both.take(pa.array([place for place in places if place is not None], pa.int64())), changed


def _is_changed(opened: Any, number: int, gone: Gone) -> bool:
    """Return whether a row group of an open file shows what is gone. Most tell it without their events."""
    hints = ["kind", "uid", SHOWN]
    if not _rows_with(opened.read_row_group(number, columns=hints), gone):
        return False
    return next(_changes(opened.read_row_group(number, columns=[*hints, "json"]), gone), None) is not None


def rewrite(file: LakeFile, gone: Gone) -> int:
    """Write a file anew without what is gone, if it shows any of it. Return how many rows are gone or changed.

    The memory is that of a row group. Raises OSError if the disk is full: the file is as before then. A file that was
    deleted or moved away meanwhile stays away.
    """
    try:
        return _rewrite(file, gone)
    except FileNotFoundError:
        return 0


def _rewrite(file: LakeFile, gone: Gone) -> int:
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    with _opened(file) as old:
        groups = range(old.num_row_groups)
        if not any(_is_changed(old, number, gone) for number in groups):  # such as a file with the last edit itself
            return 0
        unfinished, changed = UnfinishedFile(file.path), 0
        try:
            unfinished.begin()
            with pq.ParquetWriter(unfinished.partial, old.schema_arrow, compression="zstd") as new:
                new.add_key_value_metadata({NOTES_KEY: old.metadata.metadata[NOTES_KEY.encode()]})
                for number in groups:
                    table, count = _without(old.read_row_group(number), gone)
                    changed += count
                    if table.num_rows:
                        new.write_table(table)
            if not file.path.exists():
                return 0
            unfinished.finish()
        finally:
            unfinished.abandon()
    return changed


class Eraser:
    """Takes deleted posts and replaced texts out of a lake.

    That is at the latest ``after_seconds`` after their deletes and edits are in complete files. All that is known is
    erased together, so each file is written anew about once in ``after_seconds`` at most. The lake's next file notes
    how far the deletes and edits are done. If the process ends before that, they are done again.
    """

    def __init__(
        self, lake: Lake, after_seconds: int, on_erased: Callable[[Erased], None],
        unix_time: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._lake, self._after, self._on_erased, self._unix_time = lake, after_seconds, on_erased, unix_time
        self._looked_at = lake.notes.erased  # the name of the last file in which there is no delete that is not done
        self._oldest: datetime | None = None  # the time of the oldest delete that is not done, if one is known

    async def run_due(self) -> None:
        """Erase what is due. Raises OSError, for example if the disk is full."""
        newest = self._lake.newest
        if self._oldest is None and newest is not None and self._looked_at != newest.start.cursor:
            for file in self._files_behind(self._looked_at):
                self._oldest = await asyncio.to_thread(_first_delete, file)
                if self._oldest is not None:
                    break
                self._looked_at = file.start.cursor
        if self._oldest is None:
            return
        now = max(self._unix_time(), self._lake.end.ms / 1000)  # this clock may be behind that of the log
        if now - self._oldest.timestamp() >= self._after:
            await self._erase()

    async def _erase(self) -> None:
        done, result = self._lake.notes.erased, Erased()
        while behind := self._files_behind(done):
            pieces = _gone_in(behind)
            while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                gone, last = piece
                for file in _showing(gone, self._lake.files(), last):
                    changed = await asyncio.to_thread(rewrite, file, gone)
                    result.erased += changed
                    result.files += changed > 0
            done = behind[-1].start.cursor
        self._lake.notes.erased = self._looked_at = done
        self._oldest = None
        if result.files:
            self._on_erased(result)

    def _files_behind(self, cursor: str | None) -> list[LakeFile]:
        """Return the files behind the one whose name is ``cursor``."""
        last = None if cursor is None else position_of(cursor)
        return [file for file in self._lake.files() if last is None or file.start > last]


def _showing(gone: Gone, files: list[LakeFile], last: LakeFile) -> Iterator[LakeFile]:
    """Yield the files up to ``last`` that may show what is gone: nothing shows it after its delete."""
    if gone.is_empty:
        return
    since_ms = gone.since_ms()
    for file, following in zip(files, [*files[1:], None], strict=True):
        if following is None or following.start.ms >= since_ms:
            yield file
        if file.start == last.start:
            return


def _first_delete(file: LakeFile) -> datetime | None:
    """Return the time of the first delete or edit in a file; None if there is none, or the file was moved away."""
    try:
        table = _read(file, ["kind", "at"])
    except FileNotFoundError:
        return None
    times = table["at"].filter(_is_one_of(table["kind"], _REPLACING))
    return times[0].as_py() if len(times) else None
