"""The linker of Lua scripts: what it leaves out, and that no script of the store misses a function."""

import re
from importlib import resources

import pytest

from stream_server.store.redis.script_linker import link
from stream_server.store.redis.scripts import SizeLimits, load_scripts

PART = """-- Two functions, and one that needs another.
local MOST = 3

local function one()
  return 1
end

-- Twice what one() gives.
local function two()
  return one() + one()
end

local function three()
  if MOST then
    return 3
  end
end
"""

SCRIPTS = load_scripts(SizeLimits())


def test_unused_functions_are_left_out() -> None:
    assert _functions(link([PART, "return three()"], {})) == ["three"]


def test_a_function_keeps_the_functions_that_it_needs() -> None:
    assert _functions(link([PART, "return two()"], {})) == ["one", "two"]


def test_a_name_in_a_comment_is_no_use() -> None:
    assert _functions(link([PART, "-- three()\nreturn MOST"], {})) == []


def test_all_other_text_stays_in_its_order() -> None:
    linked = link([PART, "local function own()\n  return MOST\nend\nreturn own()"], {})
    assert linked.index("local MOST = 3") < linked.index("-- Twice") < linked.index("local function own()")
    assert linked.endswith("return own()\n")


def test_a_function_that_is_only_passed_on_stays() -> None:
    assert _functions(link([PART, "return pick(one)"], {})) == ["one"]


def test_constants_stand_as_values() -> None:
    constants = {"KEY.status": "'{core}:status:'", "MOST": "7", "TEXT": "('\\\\1')"}
    linked = link(["redis.call('GET', KEY.status .. MOST, TEXT, UTMOST, ALMOST)"], constants)
    assert linked == "redis.call('GET', '{core}:status:' .. 7, ('\\\\1'), UTMOST, ALMOST)\n"


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(KeyError, match=r"KEY\.nothing"):
        link(["return KEY.nothing"], {"KEY.status": "'s'"})


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_no_script_misses_a_function(name: str) -> None:
    """Each name in the code of a script that is a function of some part is defined before its first use."""
    folder = resources.files("stream_server.store").joinpath("lua")
    files = [folder / "prelude.lua", *folder.joinpath("parts").iterdir()]
    defined = {function for file in files for function in _functions(file.read_text("utf-8"))}
    code = re.sub(r"--.*", "", SCRIPTS[name].text)
    called = set(re.findall(r"(?<![.:\w])(\w+)\(", code)) & defined
    assert called <= set(_functions(code))
    for function in called:
        first = re.search(rf"(?<![.:\w]){function}\(", code)
        assert first
        assert code[: first.start()].endswith("local function ")


def _functions(text: str) -> list[str]:
    return re.findall(r"^local function (\w+)", text, re.MULTILINE)
