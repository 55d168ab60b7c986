"""The sample rows in ``lua/status.lua``: both readers make the same JSON of them, and the writer writes them again."""

import json
import re
from typing import Any

import pytest

from stream_server.store import keys
from stream_server.store.reads.statuses import expand, parse_row
from stream_server.store.redis.lua_library import LuaLibrary, read_library
from stream_server.store.redis.script_settings import SizeLimits, lua_constants
from stream_server.store.status_row import Mark

DESCRIPTION = read_library()["status.lua"].partition("\nlocal ")[0]
USUAL, FULL = (
    re.sub(rb"<(\w+)>", lambda found: Mark[found[1].decode()].byte, sample.replace("\n-- ", "").encode())
    for sample in re.findall(r"^-- SAMPLE (.+(?:\n-- .+)*)", DESCRIPTION, re.MULTILINE)
)
USUAL_JSON: dict[str, object] = {
    "id": "7", "uid": "2", "login": "ada", "message": "tea", "posted": "2026-01-02T03:04:05.678Z", "location": None,
    "place": None, "lang": "en", "entities": {"mentions": [], "hashtags": [], "cashtags": [], "urls": []},
    "in_reply_to": None, "in_reply_to_uid": None, "origin": None, "media": [], "meta": None, "group": None,
    "conversation": "7", "likes": 1, "comments": 2, "reposts": 3,
}  # fmt: skip
FULL_JSON = USUAL_JSON | {
    "foreign_id": "f-9", "message": "#tea", "location": {"lat": 1.5, "lon": 2.0}, "in_reply_to": "5",
    "in_reply_to_uid": "6", "meta": {"a": 1}, "group": "4", "conversation": "3",
    "entities": {"mentions": [], "hashtags": [{"text": "tea", "start": 0, "end": 4}], "cashtags": [], "urls": []},
}  # fmt: skip

READ_AND_WRITE = """
function run.asked(id)
  local row = find_status(id)
  return {embedded_json(row), row_text(row)}
end
"""


def test_the_samples_have_every_mark_and_every_mark_has_its_own_byte() -> None:
    assert {mark for mark in Mark if mark.byte in USUAL + FULL} == set(Mark)
    assert len({mark.byte for mark in Mark}) == len(Mark)
    assert max(mark.byte for mark in Mark) < b" ", "JSON must not contain it"


@pytest.mark.every_redis
@pytest.mark.parametrize(("text", "expected"), [(USUAL, USUAL_JSON), (FULL, FULL_JSON)], ids=["usual", "full"])
def test_both_readers_make_the_same_json_of_a_row_and_lua_writes_the_row(
    raw: Any, text: bytes, expected: dict[str, object]
) -> None:
    fields = {"row": text, "uid": "2", "likes": "1", "comments": "2", "reposts": "3"}
    raw.hset(keys.key_for("status", "7"), mapping=fields)
    library = LuaLibrary([*read_library().values(), READ_AND_WRITE], lua_constants(SizeLimits()))
    by_lua, written = raw.eval(library.script("asked"), 1, keys.META, "-", 0, "7")
    row = parse_row(b"7", [text, b"2", b"1", b"2", b"3"])
    assert row is not None
    assert json.loads(by_lua) == expected
    assert expand(row.short_json()) == by_lua
    assert written == text
    assert row.conversation.decode() == expected["conversation"]
    assert row.posted.decode() == expected["posted"]
    assert row.group.decode() == (expected["group"] or "")
