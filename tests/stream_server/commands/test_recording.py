"""A file of statuses, line by line."""

from pathlib import Path

from stream_server.commands.recording import RecordedStatus, UnreadableLine, read_recording

GOOD = '{"author": "ada", "message": "hi", "posted": "1970-01-01T00:01:00Z", "location": [1.5, 2.5], "place": "Kyoto"}'


def written(folder: Path, *lines: str | bytes) -> Path:
    """A file with these lines."""
    path = folder / "statuses.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return path


def test_a_line_becomes_a_body_of_the_api(tmp_path: Path) -> None:
    """A point becomes lon and lat, a place its name, and what is null or unknown is left out."""
    rest = '{"author": "b", "message": "yo", "posted": null, "location": null, "place": "", "reposts": 3}'
    assert list(read_recording(written(tmp_path, GOOD, "", rest))) == [
        RecordedStatus(
            1, "ada", 60.0, {"message": "hi", "location": {"lon": 1.5, "lat": 2.5}, "place": {"name": "Kyoto"}}
        ),
        RecordedStatus(3, "b", None, {"message": "yo"}),
    ]


def test_lines_that_are_no_status_are_told(tmp_path: Path) -> None:
    """Each bad line is named by its number, and the good ones behind it are read all the same."""
    bad: list[str | bytes] = [
        "{", "[]", '{"message": "no author"}', '{"author": 1, "message": "x"}', '{"author": " ", "message": "x"}',
        '{"author": "a", "message": "x", "location": [1]}', '{"author": "a", "message": "x", "posted": "soon"}',
        b'{"author": "a", "message": "\xff"}', "[" * 100_000,
    ]  # fmt: skip
    found = list(read_recording(written(tmp_path, *bad, GOOD)))
    assert [one.line for one in found if isinstance(one, UnreadableLine)] == list(range(1, len(bad) + 1))
    assert all(one.reason for one in found if isinstance(one, UnreadableLine))
    assert isinstance(found[-1], RecordedStatus)


def test_a_long_place_is_cut(tmp_path: Path) -> None:
    """Profiles have longer places than the API takes, which would lose the status for nothing."""
    (one,) = read_recording(written(tmp_path, '{"author": "a", "message": "x", "place": "%s"}' % ("p" * 300)))
    assert isinstance(one, RecordedStatus)
    assert one.body["place"] == {"name": "p" * 100}
