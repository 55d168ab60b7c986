"""Reading a recording of statuses, line by line."""

from pathlib import Path

from stream_server.commands.recording import RecordedStatus, UnreadableLine, read_recording

GOOD = '{"author": "ada", "message": "hi", "posted": "1970-01-01T00:01:00Z", "location": [1.5, 2.5], "place": "Kyoto"}'


def write_lines(folder: Path, *lines: str | bytes) -> Path:
    path = folder / "statuses.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return path


def test_a_line_becomes_a_request_body(tmp_path: Path) -> None:
    rest = '{"author": "b", "message": "yo", "posted": null, "location": null, "place": "", "reposts": 3}'
    assert list(read_recording(write_lines(tmp_path, GOOD, "", rest))) == [
        RecordedStatus(
            1, "ada", 60.0, {"message": "hi", "location": {"lon": 1.5, "lat": 2.5}, "place": {"name": "Kyoto"}}
        ),
        RecordedStatus(3, "b", None, {"message": "yo"}),
    ]


def test_unreadable_lines_are_named_by_number(tmp_path: Path) -> None:
    bad: list[str | bytes] = [
        "{", "[]", '{"message": "no author"}', '{"author": 1, "message": "x"}', '{"author": " ", "message": "x"}',
        '{"author": "a", "message": "x", "location": [1]}', '{"author": "a", "message": "x", "posted": "soon"}',
        b'{"author": "a", "message": "\xff"}', "[" * 100_000,
    ]  # fmt: skip
    found = list(read_recording(write_lines(tmp_path, *bad, GOOD)))
    assert [one.line for one in found if isinstance(one, UnreadableLine)] == list(range(1, len(bad) + 1))
    assert all(one.reason for one in found if isinstance(one, UnreadableLine))
    assert isinstance(found[-1], RecordedStatus)


def test_a_long_place_is_cut(tmp_path: Path) -> None:
    (one,) = read_recording(write_lines(tmp_path, '{"author": "a", "message": "x", "place": "%s"}' % ("p" * 300)))
    assert isinstance(one, RecordedStatus)
    assert one.body["place"] == {"name": "p" * 100}
