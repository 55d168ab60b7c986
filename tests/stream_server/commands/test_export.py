"""The command ``export``: the files, the columns, the time span, and what happens when something fails."""

import asyncio
import csv
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # see above
import pytest

from stream_server.client import Client
from stream_server.commands import export_files, export_pages
from stream_server.commands.exit_codes import CommandFailure
from stream_server.commands.export_files import EventRow, open_export, row_of
from stream_server.commands.export_pages import Page, parse_until, read_pages
from tests.command_line import Outcome, invoke
from tests.end_to_end.api import mint
from tests.end_to_end.server import Server
from tests.stream_server.client.scripted_server import Answer, scripted

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)

ENDINGS = [*(f"{form}{coding}" for form in ("ndjson", "jsonl", "csv") for coding in ("", ".gz", ".zst")), "parquet"]

POST = {
    "kind": "post", "cursor": "c1", "at": "2026-05-01T11:00:00.250Z",
    "status": {
        "id": "1", "uid": "7", "login": "ann", "message": "tea #Café @bob", "lang": "en",
        "location": {"lon": 2.5, "lat": -48.25},
        "entities": {"hashtags": [{"text": "Café"}], "mentions": [{"login": "bob"}]},
    },
}  # fmt: skip
DELETE = {"kind": "delete", "cursor": "c2", "at": "2026-05-01T11:00:01.000Z", "status": {"id": "1", "uid": "7"}}
FOLLOW = {
    "kind": "follow", "cursor": "c3", "at": "2026-05-01T11:00:02.000Z",
    "source": {"id": "7", "login": "ann"}, "target": {"id": "8", "login": "bob"},
}  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_link_in_the_place_of_the_unfinished_file_is_not_followed(tmp_path: Path, ending: str) -> None:
    path, other = tmp_path / f"events.{ending}", tmp_path / "other"
    other.write_bytes(b"precious")
    path.with_name(f".{path.name}.{os.getpid()}.partial").symlink_to(other)
    with open_export(path) as file:
        file.write([POST])
    assert other.read_bytes() == b"precious"
    assert not path.is_symlink()
    assert path.stat().st_size > 0


def test_a_row_has_the_columns_of_its_event() -> None:
    at = datetime(2026, 5, 1, 11, 0, 0, 250_000, tzinfo=UTC)
    row = row_of(POST)
    assert row[:-1] == ("1", at, "post", "7", "ann", "tea #Café @bob", "en", 2.5, -48.25, ["Café"], ["bob"])
    assert json.loads(row.json) == POST
    assert row_of(DELETE)[:6] == ("1", at.replace(second=1, microsecond=0), "delete", "7", None, None)
    assert row_of(FOLLOW)[2:5] == ("follow", "7", "ann")
    assert row_of(FOLLOW).id is None


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_has_the_events_in_order(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if they make several row groups. Nothing but the file is left."""
    monkeypatch.setattr(export_files, "MAX_GROUP_ROWS", 2)
    path = tmp_path / f"events.{ending}"
    with open_export(path) as file:
        file.write([POST, DELETE])
        file.write([FOLLOW])
        assert not path.exists()
    assert events_in(path) == [POST, DELETE, FOLLOW]
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_of_text_has_the_columns_as_they_are(tmp_path: Path) -> None:
    """Commas, quotes, lines and signs of formulas in a text stay as they are."""
    text = '=1, "two"\nthree\r\n'
    path = tmp_path / "events.csv"
    with open_export(path) as file:
        file.write([POST | {"status": POST["status"] | {"message": text}}, DELETE])  # type: ignore[operator]  # the status is a dictionary
    with path.open(encoding="utf-8", newline="") as written:
        post, delete = csv.DictReader(written)
    assert list(post) == list(EventRow._fields)
    assert (post["message"], post["at"], post["tags"], post["mentions"]) == (text, POST["at"], "Café", "bob")
    assert (post["lon"], delete["lon"], delete["message"]) == ("2.5", "", "")


def events_in(path: Path) -> list[dict[str, Any]]:
    """Read a file with the libraries that a notebook would use."""
    if path.suffix == ".parquet":
        lines = pq.read_table(path).column("json").to_pylist()
    else:
        with pa.input_stream(str(path), compression="detect") as stream:
            content = stream.read().decode()
        if ".csv" in path.suffixes:
            lines = [row["json"] for row in csv.DictReader(io.StringIO(content, newline=""))]
        else:
            lines = content.splitlines()
    return [json.loads(line) for line in lines]


def test_the_columns_of_parquet_have_types(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    with open_export(path) as file:
        file.write([POST, FOLLOW])
    table = pq.read_table(path)
    assert tuple(table.column_names) == EventRow._fields
    types = {field.name: str(field.type) for field in table.schema}
    assert types["at"] == "timestamp[ms, tz=UTC]"
    assert (types["lon"], types["tags"], types["id"]) == ("double", "list<element: string>", "string")
    assert table.column("tags").to_pylist() == [["Café"], []]


def test_an_export_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    path.write_text("old")
    with pytest.raises(KeyError), open_export(path) as file:
        file.write([POST, {"at": POST["at"]}])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["events.tsv", "events", ".parquet", ".csv.gz", "events.json", "events.parquet.gz"])
def test_an_unknown_ending_is_refused(tmp_path: Path, name: str) -> None:
    endings = r"must end with one of \.ndjson, \.jsonl, \.csv, \.parquet, and \.gz or \.zst behind it"
    with pytest.raises(CommandFailure, match=endings), open_export(tmp_path / name):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandFailure, match="No such file"), open_export(tmp_path / "none" / "events.ndjson"):
        pass


def test_without_the_extra_one_sentence_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON lines need no extra."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CommandFailure, match=r'pip install "social-stream-server\[server,export\]"'):
        open_export(tmp_path / "events.parquet").__enter__()
    with open_export(tmp_path / "events.ndjson.gz") as file:
        file.write([POST])
    assert events_in(tmp_path / "events.ndjson.gz") == [POST]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW), ("-15m", NOW - timedelta(minutes=15)), ("-2d", NOW - timedelta(days=2)),
        ("2026-04-30", datetime(2026, 4, 30, tzinfo=UTC)),
        ("2026-04-30T10:00+02:00", datetime(2026, 4, 30, 8, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_the_end_is_a_time_or_an_age(text: str, expected: datetime) -> None:
    assert parse_until(text, NOW) == expected


def test_a_wrong_end_is_refused(tmp_path: Path) -> None:
    outcome = invoke("export", "--since", "-1h", "--until", "soon", "--to", tmp_path / "x.ndjson", "--token", "x")
    assert outcome.code == 2
    assert "--until soon: give `now`" in outcome.err


async def test_a_long_filter_is_sent_in_a_body() -> None:
    async with scripted(Answer([b'{"events":[],"cursor":"c","more":false}'])) as script, Client(script.url) as client:
        pages = [page async for page in read_pages(client, {"track": "日本語" * 500}, "-1h", NOW)]
    assert [page.cursor for page in pages] == ["c"]
    assert (script.asked[0].method, script.asked[0].query) == ("POST", {})


class PagedLog:
    """Answers long polls from events of one second each, as a server would. A cursor is the number of an event."""

    def __init__(self, count: int) -> None:
        self.events = [
            {**POST, "cursor": str(n), "at": (NOW + timedelta(seconds=n)).isoformat()} for n in range(1, count + 1)
        ]

    async def request(self, _method: str, _path: str, *, query: dict[str, str], seconds: float) -> dict[str, Any]:
        assert seconds > float(query["wait"])
        since, limit = query["since"], int(query["limit"])
        if since.isdecimal():
            later = self.events[int(since) :]
        else:
            start = NOW if since.startswith("-") else datetime.fromisoformat(since)
            later = [event for event in self.events if datetime.fromisoformat(str(event["at"])) >= start]
        page = later[:limit]
        cursor = page[-1]["cursor"] if page else str(len(self.events))
        return {"events": page, "cursor": cursor, "more": len(later) > limit}

    def read(self, since: str, until: datetime) -> tuple[list[str], str]:
        """Return the cursors of the events that are read, and the one to go on with."""

        async def read() -> list[Page]:
            return [page async for page in read_pages(cast("Client", self), {}, since, until)]

        pages = asyncio.run(read())
        return [event["cursor"] for page in pages for event in page.events], pages[-1].cursor


@pytest.mark.parametrize("since", ["-1h", "0", NOW.isoformat()])
@pytest.mark.parametrize("step", [0.5, 1, 3, 20])
def test_exports_that_continue_each_other_have_each_event_once(
    monkeypatch: pytest.MonkeyPatch, since: str, step: float
) -> None:
    """The end of an export may be anywhere in a page, also before its first event."""
    monkeypatch.setattr(export_pages, "PAGE_EVENTS", 4)
    log, found = PagedLog(11), list[str]()
    for number in range(math.ceil(11 / step) + 1):
        events, since = log.read(since, NOW + timedelta(seconds=number * step))
        found += events
    assert found == [event["cursor"] for event in log.events]


class SiteWithPosts:
    """A server on which ``ann`` has posted, and her token."""

    def __init__(self, folder: Path) -> None:
        self.server = Server(folder).start()
        self.token = ""

    async def fill(self, count: int) -> None:
        async with Client(self.server.address) as client:
            ann = await client.sign_up("ann", "Ann", "ann@example.org", "a good password")
        self.token = mint(ann.id)
        async with Client(self.server.address, self.token) as client:
            for number in range(count):
                await client.post(f"post {number} #tag{number % 3}")

    def export(self, target: Path, *more: str) -> Outcome:
        return invoke(
            "export", "--url", self.server.address, "--token", self.token, "--since", "-1h", "--to", target, *more
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteWithPosts]:
    made = SiteWithPosts(tmp_path_factory.mktemp("export"))
    asyncio.run(made.fill(60))
    yield made
    made.server.stop()


def texts(path: Path) -> list[str]:
    return [event["status"]["message"] for event in events_in(path)]


@pytest.mark.extended
def test_the_command_exports_a_span_of_time(site: SiteWithPosts, tmp_path: Path) -> None:
    """The firehose without a filter, a filter, an end in the past, and the summary as JSON or text."""
    outcome = site.export(tmp_path / "all.parquet", "--json")
    assert outcome.code == 0, outcome.err
    summary = json.loads(outcome.out)
    assert (summary["events"], summary["gaps"], summary["file"]) == (60, [], str(tmp_path / "all.parquet"))
    assert summary["bytes"] == (tmp_path / "all.parquet").stat().st_size
    assert texts(tmp_path / "all.parquet") == [f"post {number} #tag{number % 3}" for number in range(60)]
    outcome = site.export(tmp_path / "tag.ndjson", "--track", "#tag1")
    assert outcome.out.startswith(f"{tmp_path / 'tag.ndjson'}: 20 events from 20")
    events = events_in(tmp_path / "all.parquet")
    middle = events[29]["at"]
    site.export(tmp_path / "half.ndjson", "--until", middle)
    assert texts(tmp_path / "half.ndjson") == [
        event["status"]["message"] for event in events if event["at"] <= middle
    ]  # fmt: skip
    outcome = site.export(tmp_path / "half.ndjson", "--until", middle, "--json")
    outcome = site.export(tmp_path / "rest.ndjson", "--since", json.loads(outcome.out)["cursor"])
    assert texts(tmp_path / "half.ndjson") + texts(tmp_path / "rest.ndjson") == texts(tmp_path / "all.parquet")
    refused = site.export(tmp_path / "refused.ndjson", "--param", "nonsense=1")
    assert refused.code == 1
    assert "unknown_parameter" in refused.err
    assert not (tmp_path / "refused.ndjson").exists()


@pytest.mark.extended
def test_an_export_goes_on_after_the_server_was_killed(site: SiteWithPosts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server dies between two pages and comes back on its port. Each event comes once, in order."""
    monkeypatch.setattr(export_pages, "PAGE_EVENTS", 7)

    async def read(on_page: Callable[[int], None]) -> list[str]:
        found: list[str] = []
        client = Client(site.server.address, site.token, attempts=2, seconds=2)
        async with client:
            pages = read_pages(client, {"firehose": "true", "kinds": "post"}, "-1h", datetime.now(UTC))
            async for page in pages:
                assert page.messages == page.events
                found += [event["status"]["message"] for event in page.events]
                on_page(len(found))
        return found

    async def read_through_a_crash() -> list[str]:
        restarts: list[asyncio.Future[Any]] = []

        def kill_once(found: int) -> None:
            if found > 20 and not restarts:
                site.server.kill()
                site.server.flags = ("--port", site.server.address.rpartition(":")[2])
                restarts.append(asyncio.get_running_loop().run_in_executor(None, site.server.start))

        texts = await read(kill_once)
        assert restarts, "the server was not killed"
        await asyncio.gather(*restarts)
        return texts

    assert asyncio.run(read_through_a_crash()) == [f"post {number} #tag{number % 3}" for number in range(60)]
