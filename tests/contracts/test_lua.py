"""Rules for every Lua script: conversions of numbers, JSON, time, and answers kept for retries."""

import random
import re
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

import pytest
import redis

from stream_server.events.position import format_iso_time
from stream_server.store import keys
from stream_server.store.redis import scripts
from stream_server.store.redis.script_linker import link
from tests.redis_process import RedisProcess

LUA = resources.files("stream_server.store").joinpath("lua")


def _texts(folder: Traversable) -> dict[str, str]:
    return {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".lua")}


VERBS = _texts(LUA)
PRELUDE = VERBS.pop("prelude.lua")
PARTS = _texts(LUA.joinpath("parts"))
FILES = {"prelude.lua": PRELUDE, **VERBS, **{f"parts/{name}": text for name, text in PARTS.items()}}

CHANGES = r"(?:HSET|HSETNX|SET|ZADD|HINCRBY|ZINCRBY|DEL|HDEL|ZREM|ZREMRANGEBY\w+|XADD|XTRIM|SADD|SREM|PUBLISH|INCR)"

NUMBERS = r"(?:ms|seq|n|now|days|seconds|count|ties|number|year|month|day|i|\d+)"
"""Names that hold numbers in the scripts, and digits."""

COUNTERS = r"(?:followers|following|posts|signup)"

FORBIDDEN = {
    "cjson": r"\bcjson\b",  # cuts coordinates to 14 digits and turns [] into {}
    "tostring": r"\btostring\b",  # writes ids as 3.7e+14
    "bit": r"\bbit\.",  # 32 bits
    "number after ..": rf"\.\.\s*(?:{NUMBERS}\b(?!\s*\()|tonumber|floor|#|[\w.]+\.{COUNTERS}\b)",
    "number before ..": rf"(?:\b{NUMBERS}|(?<!KEY)\.{COUNTERS})\s*\.\.",
}


def faults(text: str) -> list[str]:
    code = re.sub(r"--[^\n]*|'[^'\n]*'", "''", text)
    return [name for name, pattern in FORBIDDEN.items() if re.search(pattern, code)]


@pytest.mark.parametrize("name", sorted(FILES))
def test_scripts_do_not_convert_numbers_to_text(name: str) -> None:
    assert faults(FILES[name]) == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("local a = cjson.encode(x)", "cjson"),
        ("local a = tostring(id)", "tostring"),
        ("local a = bit.lshift(ms, 12)", "bit"),
        ("local a = 'x' .. ms", "number after .."),
        ("local a = 'x' .. tonumber(y)", "number after .."),
        ("local a = 'x' .. who.followers", "number after .."),
        ("local a = ms .. '-'", "number before .."),
        ("local a = 'x' .. #ids", "number after .."),
    ],
)
def test_the_search_finds_each_fault(line: str, fault: str) -> None:
    assert fault in faults(line)


@pytest.mark.parametrize("name", sorted(VERBS))
def test_scripts_begin_with_their_parts_and_a_comment(name: str) -> None:
    assert re.match(r"(-- parts: [a-z_ ]+\n)?-- \w", VERBS[name])


KEEPERS = {"keep_reply", "keep_ingested", "keep_unchanged"}
"""Functions that keep the answer of a write and return it."""


def _changing() -> set[str]:
    """Functions of the parts that change data, directly or through another function."""
    bodies = {}
    for text in (PRELUDE, *PARTS.values()):
        for found in re.finditer(r"^local function (\w+)\(.*?^end", _code(text), re.MULTILINE | re.DOTALL):
            bodies[found[1]] = found[0]
    changing = {name for name, body in bodies.items() if re.search(rf"redis\.call\('{CHANGES}'", body)} - KEEPERS
    while more := {name for name, body in bodies.items() if name not in changing and _calls(body, name, changing)}:
        changing |= more
    return changing


def _calls(body: str, name: str, changing: set[str]) -> bool:
    return any(re.search(rf"(?<!function ){other}\(", body) for other in changing - {name})


def _code(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text).strip()


CHANGING = _changing()
OPENINGS = ("-- parts: idempotent", "-- parts: ingested")
"""The first lines of every write. These parts return the kept answer of the same request, or of the same line."""

UNKEPT = {
    "job_advance.lua", "job_begin_pass.lua", "job_claim.lua", "job_delete_dependents.lua", "job_fail.lua",
    "job_unpark.lua", "timeline_refill.lua", "orphans_check.lua", "counters_check.lua", "log_record_rollback.lua",
    "log_trim.lua", "subject_user.lua", "ingest_begin.lua", "expiry_lease.lua", "favorites_prune.lua",
    "statuses_expire.lua", "home_visit.lua", "homes_sleep.lua",
}  # fmt: skip
"""Scripts of jobs, repair, trimming, expiry and visits, the one that makes a user, and one that audits once. Each may
run twice, so it keeps no answer."""


def _first_change(code: str) -> int:
    """The index at which a script first changes data, directly or by a call."""
    calls = "|".join(sorted(CHANGING))
    found = re.search(rf"redis\.call\('{CHANGES}'|\b(?:{calls})\(", code)
    return len(code) if found is None else found.start()


WRITES = sorted(name for name, text in VERBS.items() if text.startswith(OPENINGS))


@pytest.mark.parametrize("name", WRITES)
def test_writes_keep_an_answer_and_refuse_before_any_change(name: str) -> None:
    code = _code(VERBS[name])
    change = _first_change(code)
    assert any(f"{keeper}(" in code for keeper in KEEPERS)
    assert "refuse(" not in code[change:]


def test_the_part_that_posts_refuses_before_any_change() -> None:
    code = _code(PARTS["status_posting.lua"])
    change = _first_change(code)
    assert 0 < code.index("refuse(") < change < len(code)
    assert "refuse(" not in code[change:]


def test_a_write_begins_with_the_kept_answer() -> None:
    assert _code(PARTS["idempotent.lua"]) == "local before = earlier_reply()\nif before then\n  return before\nend"
    assert _code(PARTS["ingested.lua"]).startswith("local ingested = redis.call('HGET', KEY.ingested, FINGERPRINT)\nif")


def test_only_scripts_that_may_run_twice_keep_no_answer() -> None:
    unkept = {name: _code(text) for name, text in VERBS.items() if name not in WRITES}
    assert {name for name, code in unkept.items() if _first_change(code) < len(code)} == UNKEPT


@pytest.fixture
def client(redis_server: RedisProcess) -> Iterator["redis.Redis"]:
    made = redis_server.client()
    yield made
    made.close()


def _prelude(body: str) -> str:
    return link([PRELUDE, body], keys.lua_key_names() | {"LOG_MAX_ENTRIES": "'10'"})


@pytest.mark.every_redis
def test_lua_writes_time_as_python_does(client: "redis.Redis") -> None:
    source = random.Random(20_240_229)
    edges = [
        0, 951_782_399_999, 951_782_400_000, 1_709_164_800_000, 1_709_251_199_999, 1_735_689_599_999,
        1_735_689_600_000, 4_107_542_399_999, 4_107_542_400_000, 4_133_980_799_999,
    ]  # fmt: skip
    times = edges + [source.randrange(0, 7_258_118_400_000) for _ in range(5000)]
    script = _prelude("local t = {} for i = 3, #ARGV do t[#t + 1] = to_iso8601(tonumber(ARGV[i])) end return t")
    answer = client.eval(script, 1, "k", "-", "0", *(str(ms) for ms in times))
    assert isinstance(answer, list)
    assert [one.decode() for one in answer] == [format_iso_time(ms) for ms in times]


@pytest.mark.every_redis
def test_lua_writes_ids_exactly(client: "redis.Redis") -> None:
    source = random.Random(53)
    positions = [(source.randrange(1_704_067_200_000, 3_903_090_455_551), source.randrange(4096)) for _ in range(2000)]
    script = _prelude(
        "local t = {} for i = 3, #ARGV, 2 do t[#t + 1] = make_id(tonumber(ARGV[i]), tonumber(ARGV[i + 1])) end return t"
    )
    answer = client.eval(script, 1, "k", "-", "0", *(str(part) for position in positions for part in position))
    assert isinstance(answer, list)
    expected = [(ms - 1_704_067_200_000) * 4096 + seq for ms, seq in positions]
    assert max(expected) < 2**53
    assert [int(one) for one in answer] == expected


def test_every_script_is_loaded() -> None:
    sizes = scripts.SizeLimits(10, 20, 30)
    made = scripts.load_scripts(sizes)
    assert {f"{name}.lua" for name in made} == set(VERBS)
    assert made == scripts.load_scripts(sizes)
    assert "'{core}:log', 'MAXLEN', '~', '10'," in made["status_post"].text
    assert "-(20 + 1)" in made["status_post"].text
    assert "0, 30 - 1, 'WITHSCORES'" in made["status_post"].text


def test_every_part_is_used() -> None:
    lines = [line for text in VERBS.values() for line in re.findall(r"-- parts: (.*)", text)]
    assert {f"{part}.lua" for line in lines for part in line.split()} == set(PARTS)
