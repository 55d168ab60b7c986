"""The parts of Lua scripts: each script names the parts that it needs, in order, and none is unused."""

import re
from importlib import resources
from importlib.resources.abc import Traversable

import pytest

LUA = resources.files("stream_server.store").joinpath("lua")

FUNCTION = re.compile(r"^local function (\w+)\(.*?^end$", re.MULTILINE | re.DOTALL)
NAMES = re.compile(r"^local ([A-Z_, \n]+) =", re.MULTILINE)
WORD = re.compile(r"(?<![.:\w])[A-Za-z_]\w*")


def _texts(folder: Traversable) -> dict[str, str]:
    """Code by name, without comments and strings."""
    files = {file.name.removesuffix(".lua"): file for file in folder.iterdir() if file.name.endswith(".lua")}
    return {name: re.sub(r"--[^\n]*|'[^'\n]*'", "''", file.read_text("utf-8")) for name, file in files.items()}


VERBS = _texts(LUA)
PRELUDE = VERBS.pop("prelude")
PARTS = _texts(LUA.joinpath("parts"))
FUNCTIONS = {part: {found[1]: found[0] for found in FUNCTION.finditer(text)} for part, text in PARTS.items()}

CONSTANTS = {
    part: {name.strip() for found in NAMES.finditer(text) for name in found[1].split(",")}
    for part, text in PARTS.items()
}


def _running(part: str) -> str:
    """The code of a part outside of its functions."""
    return FUNCTION.sub("", PARTS[part])


def _openings() -> set[str]:
    """Parts that may return from the script. No function call leads to them."""
    return {part for part in PARTS if re.search(r"\breturn\b", _running(part))}


def _named(verb: str) -> list[str]:
    first = LUA.joinpath(f"{verb}.lua").read_text("utf-8").partition("\n")[0]
    return first.removeprefix("-- parts: ").split() if first.startswith("-- parts: ") else []


def _needed(verb: str, named: list[str]) -> tuple[set[str], set[str]]:
    """The parts that a script uses, and the functions that it uses without naming their part."""
    openings = _openings() & set(named)
    texts = [VERBS[verb], *map(_running, openings)]
    needed, missing, seen = set(openings), set[str](), set[str]()
    own = set(re.findall(r"\blocal (?:function )?(\w+)", VERBS[verb]))
    elsewhere = {name for functions in FUNCTIONS.values() for name in functions} - own
    while texts:
        text = texts.pop()
        for word in set(WORD.findall(text)) - seen:
            seen.add(word)
            parts = [part for part in named if word in FUNCTIONS[part] or word in CONSTANTS[part]]
            needed.update(parts)
            texts += [FUNCTIONS[part].get(word, "") for part in parts]
            if not parts and word in elsewhere and re.search(rf"(?<![.:\w]){word}\(", text):
                missing.add(word)
    return needed, missing


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_scripts_name_exactly_the_parts_that_they_use(verb: str) -> None:
    """A part too many costs memory in every process. A missing part fails at the first call, maybe half way."""
    named = _named(verb)
    needed, missing = _needed(verb, named)
    assert (set(named) - needed, missing) == (set(), set())


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_parts_come_after_the_parts_that_they_call(verb: str) -> None:
    named = _named(verb)
    for at, part in enumerate(named):
        later = {name for other in named[at + 1 :] for name in FUNCTIONS[other]} - set(FUNCTIONS[part])
        assert not {word for word in re.findall(r"(?<![.:\w])(\w+)\(", PARTS[part]) if word in later}


def test_every_function_of_a_part_is_called() -> None:
    texts = [*VERBS.values(), PRELUDE, *PARTS.values()]
    idle = {
        name
        for functions in FUNCTIONS.values()
        for name in functions
        if sum(len(re.findall(rf"\b{name}\b", text)) for text in texts) < 2
    }
    assert idle == set()
