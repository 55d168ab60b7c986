"""Rules for the Lua library: conversions of numbers, JSON, time, and answers kept for retries."""

import asyncio
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

import stream_server
from stream_server.errors import Unavailable
from stream_server.events.position import format_iso_time
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis import scripts
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lua_library import LuaLibrary, make_scripts, read_library
from stream_server.store.redis.script_settings import SizeLimits, load_scripts, lua_constants
from tests.redis_process import RedisProcess

FILES = read_library()
LIBRARY = LuaLibrary(FILES.values(), lua_constants(SizeLimits()))


def _code(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text).strip()


FUNCTIONS = {
    found[1]: found[0]
    for text in FILES.values()
    for found in re.finditer(r"^(?:local )?function ([\w.]+)\(.*?^end$", _code(text), re.MULTILINE | re.DOTALL)
}
"""The code of each function, and of each call with its kind before its name."""

CHANGES = r"(?:HSET|HSETNX|SET|ZADD|HINCRBY|ZINCRBY|DEL|HDEL|ZREM|ZREMRANGEBY\w+|XADD|XTRIM|SADD|SREM|PUBLISH|INCR)"

NUMBERS = r"(?:ms|seq|n|now|days|seconds|count|ties|number|year|month|day|i|\d+)"
"""Names that hold numbers in the scripts, and digits."""

FORBIDDEN = {
    "cjson": r"\bcjson\b",  # cuts coordinates to 14 digits and turns [] into {}
    "tostring": r"\btostring\b",  # writes ids as 3.7e+14
    "bit": r"\bbit\.",  # 32 bits
    "number after ..": rf"\.\.\s*(?:{NUMBERS}\b(?!\s*\()|tonumber|floor|#)",
    "number before ..": rf"\b{NUMBERS}\s*\.\.",
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
        ("local a = ms .. '-'", "number before .."),
        ("local a = 'x' .. #ids", "number after .."),
    ],
)
def test_the_search_finds_each_fault(line: str, fault: str) -> None:
    assert fault in faults(line)


@pytest.mark.parametrize("name", sorted(FILES))
def test_each_file_and_each_call_says_what_it_does(name: str) -> None:
    assert re.match(r"-- \w", FILES[name])
    lines = FILES[name].splitlines()
    calls = [at for at, line in enumerate(lines) if re.match(r"function \w+\.", line)]
    assert [lines[at] for at in calls if not lines[at - 1].startswith("-- ")] == []


KEEPERS = {
    "write": ("keep_reply",),
    "deed": ("keep_reply",),
    "claim": ("claim_entry",),
    "line": ("keep_ingested", "keep_unchanged"),
}
"""Functions that keep the answer of a write, by how its call treats a repeated request."""


def _changing() -> set[str]:
    """Functions that change data, directly or through another function, but for those that keep an answer."""
    keepers = {name for names in KEEPERS.values() for name in names} - {"claim_entry"}
    changing = {name for name, body in FUNCTIONS.items() if re.search(rf"redis\.p?call\('{CHANGES}'", body)} - keepers
    while more := {name for name, body in FUNCTIONS.items() if name not in changing and _calls(body, name, changing)}:
        changing |= more
    return changing


def _calls(body: str, name: str, changing: set[str]) -> bool:
    return any(re.search(rf"(?<!function )\b{other}\(", body) for other in changing - {name})


CHANGING = _changing()

UNKEPT = {
    "job_advance", "job_begin_pass", "job_claim", "job_delete_dependents", "job_fail", "job_unpark", "timeline_refill",
    "leftovers_delete", "counters_check", "log_record_rollback", "log_trim", "subject_user", "ingest_begin",
    "lease_hold", "statuses_expire", "home_visit", "homes_sleep", "job_erase", "job_sweep", "subscription_take",
    "subscriptions_ack", "subscription_join", "subscriptions_renew", "webhooks_claim", "webhooks_report", "names_store",
}  # fmt: skip
"""Calls of jobs, repair, trimming, expiry, visits, acks, leases and webhooks, the one that makes a user, and one that
audits once. Each may run twice, so it keeps no answer."""


def _first_change(code: str) -> int:
    """The index at which a function first changes data, directly or by a call."""
    calls = "|".join(sorted(CHANGING))
    body = code.index(")")  # behind its own name
    found = re.compile(rf"redis\.p?call\('{CHANGES}'|\b(?:{calls}|append)\(").search(code, body)
    return len(code) if found is None else found.start()


WRITES = sorted(call for call, declared in LIBRARY.declarations.items() if declared.kind != "run")


@pytest.mark.parametrize("name", WRITES)
def test_writes_keep_an_answer(name: str) -> None:
    kind = LIBRARY.declarations[name].kind
    assert any(keeper in FUNCTIONS[f"{kind}.{name}"] for keeper in KEEPERS[kind])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_refuse_before_any_change(name: str) -> None:
    """A refusal ends the script. A function that refuses is named for it, so that its callers see it."""
    code = FUNCTIONS[name]
    assert "refuse(" not in code[_first_change(code) :] or name == "claim_entry"  # which refuses if it changes nothing
    is_named = re.match(r"require_|refuse|\w+\.|post_status$|claim_entry$|earlier_reply$", name)
    assert is_named or not re.search(r"\b(?:require_|refuse)\w*\(", code)


def test_a_write_looks_for_the_kept_answer_first() -> None:
    for name, (kind, *_) in LIBRARY.declarations.items():
        last = LIBRARY.script(name).rstrip().splitlines()[-1]
        expected = {
            "write": "earlier_reply() or ",
            "deed": "earlier_reply() or require_active_user(",
            "claim": "reply:sub(1, 8) == 'REFUSED ' and earlier_reply() or",
            "line": "earlier_line()",
        }
        assert last.startswith("return " + expected.get(kind, name)), name


def test_only_calls_that_may_run_twice_keep_no_answer() -> None:
    unkept = {name: FUNCTIONS[f"run.{name}"] for name, (kind, *_) in LIBRARY.declarations.items() if kind == "run"}
    assert {name for name, code in unkept.items() if _first_change(code) < len(code)} == UNKEPT


GLOBALS = {"error", "ipairs", "pcall", "setmetatable", "tonumber", "type", "unpack"}
WORDS = {"and", "elseif", "function", "if", "in", "not", "or", "return", "while"}


@pytest.mark.parametrize("name", sorted(LIBRARY.declarations))
def test_no_script_misses_a_function(name: str) -> None:
    """Each function that a script calls is a local function above the call, a parameter, or Lua's own."""
    code = re.sub(r"'[^'\n]*'", "''", LIBRARY.script(name))
    for found in re.finditer(r"(?<![.:\w])(\w+)\(", code):
        called, before = found[1], code[: found.start()]
        if called not in GLOBALS | WORDS:
            defined = rf"local (?:function )?(?:\w+, )*{called}\b|function[^)\n]*\((?:[^)]*\W)?{called}\b"
            assert re.search(defined, before) or before.endswith("function "), called


def test_a_call_reads_further_arguments_only_if_it_declares_that_they_may_follow() -> None:
    read = "  return ARGV[REST]\n"
    made = LuaLibrary([f"function run.x(one, two, ...)\n{read}end\n"], {}).script("x")
    assert made.endswith("local function x(one, two)\n  return ARGV[5]\nend\nreturn x(ARGV[3], ARGV[4])\n")
    for parameters, body in (("one", read), ("one, ...", "  return 1\n")):
        with pytest.raises(ValueError, match="both or neither"):
            LuaLibrary([f"function run.x({parameters})\n{body}end\n"], {}).script("x")
    code = _code("\n".join(FILES.values()))
    assert set(re.findall(r"ARGV\[(?:\d+|REST)", code)) == {"ARGV[1", "ARGV[2", "ARGV[REST"}, "an index of its own"


def test_arguments_are_given_by_the_names_of_the_declaration() -> None:
    text = "function run.x(one, two, ...) --> sum, rest\n  return {one, ARGV[REST]}\nend\n"
    made = make_scripts(LuaLibrary([text], {}))["x"]
    assert made.declared == ("run", ("one", "two"), True, ("sum", "rest"), "")
    assert made.order({"two": 2, "one": 1}) == (1, 2)
    text = "function run.y(one, pair --[[left,\n  right]], last, ...)\n  return pair.right .. ARGV[REST]\nend\n"
    made = make_scripts(LuaLibrary([text], {}))["y"]
    assert made.declared.parameters == ("one", "left", "right", "last"), "the fields of a table are arguments, too"
    assert "function y(one, pair, last)\n  return pair.right .. ARGV[7]\n" in made.text
    assert made.text.endswith("return y(ARGV[3], {left = ARGV[4], right = ARGV[5]}, ARGV[6])\n")
    like = scripts.ScriptCall("like", {"uid": "1", "id": "2"})
    called = scripts.ScriptRunner(RedisClient("unix:///nowhere", 1.0), SizeLimits()).call_command
    assert called(keys.META, like)[-2:] == ("1", "2")
    for wrong in ({"uid": "1"}, {"uid": "1", "status": "2"}, {"uid": "1", "id": "2", "more": "3"}):
        with pytest.raises((TypeError, KeyError)):
            called(keys.META, like._replace(named=wrong))
    with pytest.raises(TypeError):
        called(keys.META, like._replace(rest=("3",)))


def test_a_declaration_names_the_user_whose_tokens_lose_rights() -> None:
    def declared(line: str) -> tuple[tuple[str, ...], str]:
        made = LuaLibrary([f"{line}\nend\n"], {}).declarations["x"]
        return made.results, made.rights

    assert declared("function deed.x(admin, uid) --> fence, ids -- RIGHTS uid") == (("fence", "ids"), "uid")
    assert declared("function deed.x(admin) -- RIGHTS *") == ((), "*")
    with pytest.raises(ValueError, match="x takes rights of id, which is no argument of it"):
        declared("function deed.x(uid) -- RIGHTS id")
    for wrong in ("-- RIGHT uid", "--RIGHTS uid", "-- RIGHTS uid, of all", "-- RIGHTS: uid", "-- of the user"):
        with pytest.raises(ValueError, match="behind the declaration of x"):
            declared(f"function deed.x(uid) --> ids {wrong}")
    with pytest.raises(ValueError, match="x takes rights, but a call of the kind run tells nobody"):
        declared("function run.x(uid) -- RIGHTS uid")
    told: list[str | None] = []
    runner = scripts.ScriptRunner(RedisClient("unix:///nowhere", 1.0), SizeLimits())
    runner.on_rights_change = told.append
    for name, named in {
        "sessions_end_all": {"uid": "7"},
        "suspension_change": {"admin": "1", "uid": "8", "kind": "suspend", "note": ""},
        "ingest_delete_user": {"foreign_id": "9", "admin": "1"},
        "like": {"uid": "7", "id": "2"},
    }.items():
        with pytest.raises(Unavailable):
            asyncio.run(runner.write(name, IdempotencyKey.generate(), **named))
    assert told == ["7", "8", None]


def test_every_function_is_used() -> None:
    text = _code("\n".join(FILES.values()))
    idle = {name for name in FUNCTIONS if "." not in name and len(re.findall(rf"\b{name}\b", text)) < 2}
    assert idle - {"earlier_line", "earlier_reply"} == set()  # which the last lines of scripts call


def test_every_call_is_made() -> None:
    """The calls of ingested lines are named by what the line does."""
    folder = Path(stream_server.__file__).parent / "store"
    text = "\n".join(file.read_text("utf-8") for file in folder.rglob("*.py"))
    lines = {name for name, (kind, *_) in LIBRARY.declarations.items() if kind == "line"}
    assert {name for name in LIBRARY.declarations.keys() - lines if f'"{name}"' not in text} == set()


def test_the_library_has_functions_only_and_each_name_once() -> None:
    for text, fault in (
        ("local x = 1\n", "code outside of a function"),
        ("local function one()\nend\nlocal function one()\nend\n", "twice"),
        ("local ONE = 1\nlocal ONE = 2\n", "twice"),
    ):
        with pytest.raises(ValueError, match=fault):
            LuaLibrary([text], {})


def test_a_script_has_the_functions_that_it_needs_in_their_order() -> None:
    text = """-- A comment with idle()
local MOST = 3
local function idle()
end
local function twice() -- not idle()
  -- not idle()
  return once() + once() -- nor here, where idle('it') is no name
end
local function once()
  return KEY.log .. MOST .. 'MOST once'
end
function run.both(one, other)
  return twice()
end
"""
    made = LuaLibrary([text], {"KEY.log": "'l'"}).script("both")
    assert re.findall(r"function (\w+)", made) == ["once", "twice", "both"]
    assert "--" not in made
    assert "return 'l' .. 3 .. 'MOST once'" in made
    assert made.endswith("return both(ARGV[3], ARGV[4])\n")
    with pytest.raises(KeyError, match=r"KEY\.nothing"):
        LuaLibrary(["function run.x()\n  return KEY.nothing\nend\n"], {}).script("x")


@pytest.fixture
def client(redis_server: RedisProcess) -> Iterator["redis.Redis"]:
    made = redis_server.client()
    yield made
    made.close()


def _script(body: str) -> str:
    """The script of a call with this body."""
    text = f"function run.asked()\n  {body}\nend\n"
    return LuaLibrary([*FILES.values(), text], keys.lua_key_names()).script("asked")


@pytest.mark.every_redis
def test_lua_writes_time_as_python_does(client: "redis.Redis") -> None:
    source = random.Random(20_240_229)
    edges = [
        0, 951_782_399_999, 951_782_400_000, 1_709_164_800_000, 1_709_251_199_999, 1_735_689_599_999,
        1_735_689_600_000, 4_107_542_399_999, 4_107_542_400_000, 4_133_980_799_999,
    ]  # fmt: skip
    times = edges + [source.randrange(0, 7_258_118_400_000) for _ in range(5000)]
    script = _script("local t = {} for i = 3, #ARGV do t[#t + 1] = to_iso8601(tonumber(ARGV[i])) end return t")
    answer = client.eval(script, 1, "k", "-", "0", *(str(ms) for ms in times))
    assert isinstance(answer, list)
    assert [one.decode() for one in answer] == [format_iso_time(ms) for ms in times]


@pytest.mark.every_redis
def test_lua_writes_ids_exactly(client: "redis.Redis") -> None:
    source = random.Random(53)
    positions = [(source.randrange(1_704_067_200_000, 3_903_090_455_551), source.randrange(4096)) for _ in range(2000)]
    script = _script(
        "local t = {} for i = 3, #ARGV, 2 do t[#t + 1] = make_id(tonumber(ARGV[i]), tonumber(ARGV[i + 1])) end return t"
    )
    answer = client.eval(script, 1, "k", "-", "0", *(str(part) for position in positions for part in position))
    assert isinstance(answer, list)
    expected = [(ms - 1_704_067_200_000) * 4096 + seq for ms, seq in positions]
    assert max(expected) < 2**53
    assert [int(one) for one in answer] == expected


def test_every_script_has_its_limits() -> None:
    sizes = SizeLimits(10, 20, 30)
    made = load_scripts(sizes)
    assert made == load_scripts(sizes)
    assert "'{core}:log', 'MAXLEN', '~', '10'," in made["status_post"].text
    assert "-(20 + 1)" in made["status_post"].text
    assert "0, 30 - 1, 'WITHSCORES'" in made["status_post"].text
