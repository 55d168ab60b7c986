"""The expiry of statuses: what leaves is archived first, everything else is right afterwards, and replays go on."""

import asyncio
import errno
import gzip
import json
import logging
import os
import resource
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stream_server.commands.doctor_machine import CheckState
from stream_server.commands.doctor_redis import check_redis
from stream_server.config import config
from stream_server.config.settings import InvalidSetting
from stream_server.events.position import LOG_START, created_ms, format_iso_time
from stream_server.feed.log_reader import LogReader
from stream_server.store import keys
from stream_server.store.jobs import expiry
from stream_server.store.jobs.archive import StatusArchive
from stream_server.store.jobs.expiry import ExpiryLoop, make_expiry_loop
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store
from tests.end_to_end.server import ROOT
from tests.stream_server.store.job_queue import Killed, drain, home
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import ids
from tests.waiting import eventually

DAYS = 30
DAY_MS = 86_400_000


class Scene:
    """A store with old and young statuses. ``now_ms`` is the moment at which the old ones are too old."""

    def __init__(self, store: Store, people: People, raw: Any, folder: Path) -> None:
        self.store, self.people, self.raw, self.folder = store, people, raw, folder
        self.loop = self.make_loop()
        self.now_ms = 0

    def make_loop(self, *, archive: bool = True) -> ExpiryLoop:
        """Another process."""
        made = ExpiryLoop(self.store.expiry, DAYS, StatusArchive(str(self.folder)) if archive else None)
        made.page_pause_seconds = 0
        return made

    async def end_of_old(self) -> None:
        """Everything before this call is too old, and everything behind it is not. The log begins behind this call."""
        last = int(self.raw.hget(keys.META, "ms"))
        while True:
            seconds, micros = self.raw.time()
            if seconds * 1000 + micros // 1000 > last:
                break
        marker = await self.people.status(await self.people.user(f"marker{last}"), "young")
        self.now_ms = created_ms(int(marker["id"])) + DAYS * DAY_MS
        self.raw.xtrim(keys.LOG, maxlen=1, approximate=False)

    async def round(self, loop: ExpiryLoop | None = None) -> bool:
        """Run a round at the moment ``now_ms``, and the jobs that it leaves. An interval is over."""
        self.raw.hset(keys.key_for("expiry"), "until", 0)
        ended = await (loop or self.loop).run_round(self.now_ms)
        await drain(self.store, self.raw)
        return ended

    def loop_day(self) -> str:
        """The day of the round, which names the file."""
        return format_iso_time(self.now_ms)[:10]

    def lines(self) -> list[dict[str, Any]]:
        """All lines of the archive, as `zcat` reads them."""
        texts = [gzip.decompress(path.read_bytes()) for path in sorted(self.folder.glob("statuses-*.ndjson.gz"))]
        return [json.loads(line) for text in texts for line in text.splitlines()]

    def archived(self, noun: str) -> list[str]:
        return [line[noun]["id"] for line in self.lines() if noun in line]

    def exists(self, status_id: str) -> bool:
        return bool(self.raw.exists(keys.key_for("status", status_id)))

    def mentions_of(self, subject: str) -> set[str]:
        """The keys that name an id, or have it in a member of a set.

        `expired` does not count, nor does `audit`: its members are numbers of deeds, and one may equal an id by chance.
        """
        found = set()
        for key in (name.decode() for name in self.raw.keys("*")):
            members = self.raw.zrange(key, 0, -1) if self.raw.type(key) == b"zset" else []
            if subject in key or any(subject in member.decode() for member in members):
                found.add(key)
        return found - {keys.key_for("expired"), keys.key_for("audit")}


@pytest.fixture
def scene(store: Store, people: People, raw: Any, tmp_path: Path) -> Scene:
    return Scene(store, people, raw, tmp_path / "archive")


async def test_old_statuses_leave_with_all_that_belongs_to_them(scene: Scene) -> None:
    store, people = scene.store, scene.people
    ada, bob, carl = await people.users(3)
    for reader in (bob, carl):
        await store.follows.follow(reader, ada, new_key())
    root = (await people.status(ada, "a root #tea @u1"))["id"]
    answer = (await people.status(bob, "an answer", in_reply_to=root))["id"]
    repost = (await people.status(carl, "", origin=answer))["id"]
    group = json.loads(await store.groups.create(ada, "g", "public", "", new_key()))["id"]
    posted_in_group = (await people.status(ada, "to the group", group=group))["id"]
    await store.likes.like(bob, root, new_key())
    await store.favorites.add(bob, root, new_key())
    comment = json.loads(await store.comments.create(carl, root, "so true @u1", new_key()))["id"]
    many = [(await people.status(carl, f"number {n}"))["id"] for n in range(30)]  # more than one step takes
    await scene.end_of_old()
    quote = (await people.status(bob, "look", origin=root))["id"]
    await people.status(carl, "young, too", in_reply_to=root)
    old = [root, answer, repost, posted_in_group, *many]
    head = await store.log.head()

    assert await scene.round()
    assert not any(scene.exists(each) for each in old)
    assert scene.loop.left == len(old)
    assert int(scene.raw.hget(keys.META, "removed")) == len(old), "pages that are being read look for their texts"
    assert await store.log.head() == head, "no event tells of the age"
    assert await store.repair.run(fix=False) == []
    assert [(await people.me(uid))["posts"] for uid in (ada, bob, carl)] == [0, 1, 1]
    assert json.loads(await store.statuses.get(ada, quote))["original"] is None
    await scene.round()  # timelines and favorites forget what left in the round before
    # A notification about a repost may outlive a repost whose original left before. Pages leave it out.
    kept = {keys.key_for("replies", root), keys.key_for("thread", root), keys.key_for("reposts", root)}
    for subject in (*old, comment):
        assert scene.mentions_of(subject) <= (kept if subject != repost else {keys.key_for("notices", bob)})
    assert home(scene.raw, carl) == {member for member in home(scene.raw, carl) if scene.exists(member)}
    assert await store.repair.run(fix=False) == []
    assert sorted(scene.archived("status")) == sorted(old)
    assert scene.archived("comment") == [comment]


async def test_the_archive_has_what_the_api_shows_with_audience_and_counters(scene: Scene) -> None:
    store, people = scene.store, scene.people
    ada, bob = await people.users(2)
    shown = await people.status(ada, "h\u00e9llo")
    await store.likes.like(bob, shown["id"], new_key())
    await store.comments.create(bob, shown["id"], "yes", new_key())
    await scene.end_of_old()
    await scene.round()
    comment, status = scene.lines()
    assert (comment["comment"]["status"], comment["comment"]["message"]) == (shown["id"], "yes")
    assert status["audience"] == "public"
    assert status["left"].startswith(scene.loop_day())
    assert status["status"] == {**shown, "likes": 1, "comments": 1}
    (path,) = scene.folder.iterdir()
    assert path.name.startswith(f"statuses-{scene.loop_day()}T")
    assert path.stat().st_mode & 0o077 == 0, "protected statuses are in it, too"


async def test_a_status_stays_while_the_log_has_its_post(scene: Scene) -> None:
    ada = await scene.people.user("ada")
    status = (await scene.people.status(ada, "on the log"))["id"]
    later = created_ms(int(status)) + 400 * DAY_MS
    assert await scene.loop.run_round(later)
    assert scene.exists(status)
    assert not scene.folder.exists()


async def test_a_replay_shows_what_happened_to_a_status_that_left_since(scene: Scene) -> None:
    """Nobody deleted it, so the events about it come; those about a status that its author deleted do not."""
    store, people = scene.store, scene.people
    ada, bob, carl = await people.users(3)
    posted = [(await people.status(ada, text))["id"] for text in "abcdefg"]
    liked, commented, quoted, unliked, uncommented, deleted, _ = posted
    await store.likes.like(bob, unliked, new_key())
    gone = json.loads(await store.comments.create(bob, uncommented, "well", new_key()))["id"]
    await scene.end_of_old()
    await store.likes.like(bob, liked, new_key())
    await store.likes.unlike(bob, unliked, new_key())
    await store.comments.delete(bob, gone, new_key())
    comment = json.loads(await store.comments.create(carl, commented, "well", new_key()))["id"]
    await store.likes.like(bob, deleted, new_key())
    quote = (await people.status(bob, "look", origin=quoted))["id"]
    await store.statuses.delete(ada, deleted, new_key())
    before = {e.position for e in await store.log.read(LOG_START, 100)}
    await scene.round()
    assert not any(map(scene.exists, posted))
    shown = {liked, commented, quoted, unliked, uncommented}
    assert await store.log.find_existing(posted, [comment]) == {*shown, comment}

    first = await store.log.floor()
    assert first is not None
    page = await LogReader(store.log).read_page(first, 100)
    marked = {(e.kind, e.is_deleted or e.original_is_deleted) for e in page.entries if e.kind != "notification"}
    assert marked == {("like", False), ("unlike", False), ("comment", False), ("uncomment", False),
                      ("post", False), ("delete", False), ("like", True)}  # fmt: skip
    assert {e.position for e in await store.log.read(LOG_START, 100)} == before
    await people.status(carl, "the newest entry")
    scene.raw.xtrim(keys.LOG, maxlen=1, approximate=False)
    scene.raw.zadd(keys.key_for("expired"), dict.fromkeys((*shown, comment), 1))  # they left long ago
    await scene.round()
    assert scene.raw.zcard(keys.key_for("expired")) == 0
    assert scene.exists(quote)


async def test_many_likes_and_comments_are_removed_by_a_job(redis_url: str, raw: Any, tmp_path: Path) -> None:
    async with open_store(redis_url, size_limits=SizeLimits(fanout_batch_size=5)) as store:
        scene = Scene(store, People(store), raw, tmp_path / "archive")
        users = await scene.people.users(12)
        status = (await scene.people.status(users[0], "popular"))["id"]
        for uid in users:
            await store.likes.like(uid, status, new_key())
            await store.comments.create(uid, status, "me too", new_key())
        await scene.end_of_old()
        assert await scene.loop.run_round(scene.now_ms)
        assert raw.exists(keys.key_for("job", f"status-{status}"))
        await drain(store, raw)
        assert scene.mentions_of(status) <= {f"home:{{{users[0]}}}"}
        assert raw.keys("{core}:comment:*") == []
        assert len(scene.archived("comment")) == 12
        assert await store.repair.run(fix=False) == []


@pytest.mark.parametrize("moment", ["before the archive is written", "before the removal", "after the removal"])
async def test_a_crash_leaves_each_status_in_redis_or_in_the_archive(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    ada = await scene.people.user("ada")
    old = [(await scene.people.status(ada, f"{n}"))["id"] for n in range(3)]
    await scene.end_of_old()
    killed = scene.make_loop()
    remove = scene.store.expiry.remove

    async def die(*arguments: Any) -> Any:
        if moment.startswith("after"):
            await remove(*arguments)
        raise Killed

    target = "write" if moment == "before the archive is written" else "remove"
    if target == "write":
        monkeypatch.setattr(StatusArchive, "write", _raise_killed)
    else:
        monkeypatch.setattr(scene.store.expiry, "remove", die)
    with pytest.raises(Killed):
        await killed.run_round(scene.now_ms)
    monkeypatch.undo()
    assert [scene.exists(each) for each in old] == [not moment.startswith("after")] * 3
    # The process did not leave its lease. Another one continues when the lease is over.
    assert not await scene.loop.run_round(scene.now_ms)
    assert await scene.round()
    assert not any(map(scene.exists, old))
    twice = 2 if moment == "before the removal" else 1
    assert sorted(scene.archived("status")) == sorted(old * twice)


def _raise_killed(*_: Any) -> None:
    raise Killed


async def test_nothing_leaves_while_the_archive_cannot_be_written(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, redis_url: str
) -> None:
    ada = await scene.people.user("ada")
    old = [(await scene.people.status(ada, f"{n}"))["id"] for n in range(3)]
    await scene.end_of_old()
    monkeypatch.setattr(os, "fsync", _disk_full)
    with caplog.at_level(logging.ERROR, "stream_server.store.jobs.expiry"):
        assert not await scene.round()
        assert not await scene.round()
    assert all(map(scene.exists, old))
    assert scene.loop.archive_failures == 2
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == ["No space left on device"]
    broken = [each.sentence for each in await check_redis(redis_url, 5) if each.state is CheckState.BROKEN]
    assert any("No space left" in sentence for sentence in broken)
    monkeypatch.undo()
    assert await scene.round()
    assert not any(map(scene.exists, old))
    assert sorted(scene.archived("status")) == sorted(old)
    assert not any("No space left" in each.sentence for each in await check_redis(redis_url, 5))


def _disk_full(_: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_nothing_leaves_while_the_disk_has_room_for_a_part_only(scene: Scene) -> None:
    """A file takes the first part of a write without an error."""
    ada = await scene.people.user("ada")
    status = (await scene.people.status(ada, "all or nothing"))["id"]
    await scene.end_of_old()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        assert not await scene.round()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert scene.exists(status)
    assert scene.loop.archive_failures == 1
    assert [*scene.folder.iterdir()] == []
    assert await scene.round()
    assert scene.archived("status") == [status]


CHANGES = ["a comment", "a like", "another comment instead"]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_between_reading_and_removal_is_archived_too(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    ada, bob = await scene.people.users(2)
    status = (await scene.people.status(ada, "about to leave"))["id"]
    comments = scene.store.comments
    first = json.loads(await comments.create(bob, status, "first", new_key()))["id"]
    await scene.end_of_old()
    remove, changed = scene.store.expiry.remove, list[str]()

    async def remove_after_a_change(*arguments: Any) -> Any:
        if not changed:
            changed.append(change)
            if change == "a like":
                await scene.store.likes.like(bob, status, new_key())
            else:
                await comments.create(bob, status, "wait", new_key())
            if change == "another comment instead":
                await comments.delete(bob, first, new_key())
        return await remove(*arguments)

    monkeypatch.setattr(scene.store.expiry, "remove", remove_after_a_change)
    assert await scene.round()
    assert changed
    assert not scene.exists(status)
    counts = [(line["status"]["comments"], line["status"]["likes"]) for line in scene.lines() if "status" in line]
    assert counts == [(1, 0), {"a comment": (2, 0), "a like": (1, 1)}.get(change, (1, 0))]
    texts = [line["comment"]["message"] for line in scene.lines() if "comment" in line]
    assert texts == ["first", *{"a comment": ["first", "wait"], "a like": ["first"]}.get(change, ["wait"])]


async def test_one_process_of_all_runs_the_rounds_once_an_interval(scene: Scene) -> None:
    other = scene.make_loop()
    assert await scene.store.expiry.make_lease().hold(60)
    assert not await scene.loop.run_round(0)
    assert await scene.round()
    assert not await scene.loop.run_round(0), "the interval is not over"
    assert not await other.run_round(0)
    assert await scene.round(other)


async def test_the_service_of_a_server_runs_rounds_by_its_settings(scene: Scene) -> None:
    ada = await scene.people.user("ada")
    status = (await scene.people.status(ada, "for a moment"))["id"]
    await scene.end_of_old()
    await asyncio.sleep(0.01)  # in the first round the status is old already: the next one is seconds later
    settings = config.load({"status_max_days": 1e-8, "status_archive_dir": str(scene.folder)}, {})
    service = make_expiry_loop(scene.store.expiry, settings.status_max_days, settings.status_archive_dir)
    running = asyncio.create_task(service.run())
    try:
        await eventually(lambda: service.left == 1)
    finally:
        running.cancel()
        await asyncio.wait({running})
    assert scene.archived("status") == [status]


async def test_without_an_archive_statuses_only_leave(scene: Scene) -> None:
    ada = await scene.people.user("ada")
    status = (await scene.people.status(ada, "for nobody"))["id"]
    await scene.end_of_old()
    assert await scene.round(scene.make_loop(archive=False))
    assert not scene.exists(status)
    assert not scene.folder.exists()


async def test_pages_skip_what_left_before_timelines_forget_it(scene: Scene) -> None:
    ada, bob = await scene.people.users(2)
    await scene.store.follows.follow(bob, ada, new_key())
    old = (await scene.people.status(ada, "old"))["id"]
    await scene.end_of_old()
    young = (await scene.people.status(ada, "young"))["id"]
    await scene.round()
    assert home(scene.raw, bob) == {old, young}
    assert ids(await scene.store.timelines.read_home(bob, PageRequest(10))) == [young]


KILLED_WHILE_WRITING = """
import os, signal, sys
from stream_server.store.jobs.archive import StatusArchive
archive = StatusArchive(sys.argv[1])
archive.write("2026-12-31T18:00:00.000Z", b"whole\\n")
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
archive.write("2026-12-31T18:00:00.000Z", b"half\\n")
"""


def test_what_a_killed_process_has_begun_is_no_file_of_the_archive(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    command = [sys.executable, "-c", KILLED_WHILE_WRITING, str(folder)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    later = StatusArchive(str(folder))
    later.write("2026-12-31T19:00:00.000Z", b"later\n")
    assert [path.suffix for path in sorted(folder.iterdir())] == [".gz", ".partial", ".gz"]
    assert zcat(folder) == b"whole\nlater\n"


def zcat(folder: Path) -> bytes:
    """What the command of docs/operations.md prints of the archive."""
    command = "zcat statuses-*.ndjson.gz"
    return subprocess.run(command, cwd=folder, shell=True, capture_output=True, check=True).stdout


async def test_processes_share_a_folder_and_the_lines_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    texts = [f"{at.second}\n".encode() for at in TIMES]
    archives = [StatusArchive(str(folder)) for _ in range(4)]

    async def write(which: int) -> None:
        for n in range(which, len(TIMES), len(archives)):
            await asyncio.to_thread(archives[which].write, TIMES[n].isoformat(), texts[n])

    await asyncio.gather(*map(write, range(len(archives))))
    assert zcat(folder) == b"".join(texts)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


TIMES = [datetime(2026, 12, 31, 23, 59, second, tzinfo=UTC) for second in range(60)]


async def test_a_round_makes_few_files_and_removes_each_status_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of the scan has few old statuses. The scan of a Redis that grows may give a key twice."""
    ada = await scene.people.user("ada")
    old = [(await scene.people.status(ada, f"{n}"))["id"] for n in range(20)]
    await scene.end_of_old()
    monkeypatch.setattr(expiry, "KEYS_PER_SCAN", 1)
    scan, pages = scene.store.expiry.scan, list[list[str]]()

    async def scan_twice(cursor: str) -> tuple[str, dict[str, list[str]]]:
        following, found = await scan(cursor)
        pages.append(found["status"])
        return following, {**found, "status": found["status"] + (pages[-2] if len(pages) > 1 else [])}

    monkeypatch.setattr(scene.store.expiry, "scan", scan_twice)
    assert await scene.round()
    assert sum(map(bool, pages)) > 5
    assert sorted(scene.archived("status")) == sorted(old)
    assert scene.loop.left == len(old)
    assert len([*scene.folder.iterdir()]) == 1


@pytest.mark.parametrize(("bound", "value"), [("STATUSES_PER_FILE", 3), ("FILE_BYTES", 1000)])
async def test_a_file_is_written_when_there_is_enough_for_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    ada = await scene.people.user("ada")
    old = [(await scene.people.status(ada, f"{n}"))["id"] for n in range(20)]
    for text in ("one", "two", "three", "four"):
        await scene.store.comments.create(ada, old[0], text * 100, new_key())
    await scene.end_of_old()
    monkeypatch.setattr(expiry, bound, value)
    monkeypatch.setattr(expiry, "KEYS_PER_SCAN", 1)
    monkeypatch.setattr(expiry, "COMMENTS_PER_READ", 1)
    assert await scene.round()
    assert not any(map(scene.exists, old))
    assert sorted(scene.archived("status")) == sorted(old)
    assert len(scene.archived("comment")) == 4
    assert len([*scene.folder.iterdir()]) > 3


def test_a_maximum_age_needs_a_decision_about_the_archive() -> None:
    with pytest.raises(InvalidSetting, match="--status-archive-dir"):
        config.load({"status_max_days": 30}, {})
    assert config.load({"status_max_days": 30, "status_archive_dir": "none"}, {}).status_max_days == 30
