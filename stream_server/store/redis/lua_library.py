"""Makes the texts of Lua scripts from the library in ``store/lua``: a call gets the functions that it uses.

The library has one file a noun. A file has comments, constants (``local NAME = value``), functions, and calls. No code
runs outside of a function, and functions share only `appended` and `surplus`: what else one needs, it is given. So a
script is the functions that its call needs, each behind those that it uses, and the call itself. The first word of a
call says how it treats a repeated request:

``write.``  it looks for the kept reply of the same request first
``deed.``   as ``write.``, and then refuses a first argument that is no user in good standing
``claim.``  it keeps its reply together with its entry of the log, and looks for an earlier one if it refuses
``line.``   a line of another site, which looks for the kept reply of the line first
``run.``    it may run twice, and keeps no reply

The first line of a call declares its arguments and its reply, for Lua and for Python (``store/redis/scripts``)::

    function deed.talk_open(uid, name_json, ...) --> id

A caller in Python gives arguments by these names. With ``...``, more arguments may follow: they stand in ARGV from the
index `REST` on, which has its own value in each script. Behind ``-->`` stand the names of the values of the reply: of a
write those behind the kept one, of a ``run.`` call all. A call without ``-->`` has no such values, or a ``run.`` call
one reply as a whole.

Redis makes all functions of a script anew for each call, which costs about 0.1 µs each. A constant that a function
takes from a local variable makes this dearer, so constants stand in the text as values.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from hashlib import sha1
from importlib import resources
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

Value = TypeVar("Value")

_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)
_STATEMENT = re.compile(
    r"local (?P<constant>[A-Z][A-Z0-9_]*) = (?P<value>.+)\n"
    r"|(?:local function (?P<name>\w+)|function (?P<kind>\w+)\.(?P<call>\w+))"
    r"\((?P<parameters>[^)]*)\)(?: --> (?P<results>.*))?(?P<body>(?s:.*?)^end\n)"
    r"|\s+",
    re.MULTILINE,
)
_STRING = r"'[^'\n]*'"
_WORD = re.compile(rf"{_STRING}|\w+")
_NAME = re.compile(rf"{_STRING}|\bKEY\.\w+|\b[A-Z][A-Z0-9_]*\b(?!\.)")

_ENDINGS = {
    "write": "return earlier_reply() or {call}\n",
    "deed": "return earlier_reply() or require_active_user(ARGV[3]) and {call}\n",
    "claim": "local done, reply = pcall({name}, {arguments})\nif done then return reply end\n"
    "return reply:sub(1, 8) == 'REFUSED ' and earlier_reply() or redis.error_reply(reply)\n",
    "line": "return earlier_line() or {call}\n",
    "run": "return {call}\n",
}
"""The last lines of a script by the first word of its call. ``{call}`` is ``{name}({arguments})``."""

_FIRST_ARGUMENT = 3
"""The index in ARGV of a call's first argument, behind the request's fingerprint and how long its reply is kept."""


class Declaration(NamedTuple):
    """The declaration in the first line of a call.

    Attributes:
        kind: How the call treats a repeated request.
        parameters: The names of its arguments, in their order.
        takes_rest: Whether more arguments may follow.
        results: The names of the values of its reply, in their order.
    """

    kind: str
    parameters: tuple[str, ...]
    takes_rest: bool
    results: tuple[str, ...]


class Script(NamedTuple):
    """The complete text of a Lua script, its SHA-1, by which EVALSHA calls it, and what its call declares.

    ``order`` returns arguments, given by name, in the order of the declaration. It raises KeyError if one is missing.
    """

    text: str
    sha1: str
    declared: Declaration
    order: Callable[[Mapping[str, Any]], tuple[Any, ...]]


class _Function(NamedTuple):
    """A function of the library: its text, and the words in it, which may be names of functions."""

    text: str
    words: frozenset[str]


class LuaLibrary:
    """The functions, calls and constants of the library.

    Attributes:
        calls: What each call declares, by its name.
    """

    def __init__(self, texts: Iterable[str], constants: Mapping[str, str]) -> None:
        """Read the files of the library. ``constants`` are further values, as Lua texts, by name (``KEY.…`` too).

        Raises ValueError for code outside of a function, and for a name that is there twice.
        """
        self._functions: dict[str, _Function] = {}
        self._constants = dict(constants)
        self._scripts: dict[str, _Function] = {}
        self.calls: dict[str, Declaration] = {}
        for text in texts:
            self._read(_COMMENT.sub("", text))

    def script(self, call: str) -> str:
        """Return the complete text of the script of a call.

        Raises KeyError for an unknown call or ``KEY.…`` name, and ValueError for one of `REST` and ``...`` without the
        other.
        """
        needed = dict[str, None]()
        self._collect(self._scripts[call], needed)
        # All functions share the bytes that the script has appended to the log, and the surplus of its size (log.lua).
        shared = "local appended, surplus = 0\n"
        text = "".join([shared, *(self._functions[name].text for name in needed), self._scripts[call].text])
        if self.calls[call].takes_rest != bool(re.search(r"\bREST\b", text)):
            raise ValueError(f"{call} must have both or neither: `...` in its declaration, and REST")
        return self._put_constants(text, str(_FIRST_ARGUMENT + len(self.calls[call].parameters)))

    def _collect(self, function: _Function, needed: dict[str, None]) -> None:
        """Add the functions that a function needs, each behind those that it needs itself."""
        for word in sorted(function.words & self._functions.keys() - needed.keys()):
            other = self._functions[word]
            if other is not function:
                self._collect(other, needed)
                needed.setdefault(word)

    def _read(self, text: str) -> None:
        at = 0
        while at < len(text):
            found = _STATEMENT.match(text, at)
            if found is None:
                raise ValueError(f"code outside of a function: {text[at : at + 60]!r}")
            at = found.end()
            if found["constant"]:
                _add(self._constants, found["constant"], found["value"])
            elif found["name"]:
                text_of = f"local function {found['name']}({found['parameters']}){found['body']}"
                _add(self._functions, found["name"], _to_function(text_of))
            elif found["call"]:
                names = tuple(_WORD.findall(found["parameters"]))
                results = tuple(_WORD.findall(found["results"] or ""))
                declared = Declaration(found["kind"], names, found["parameters"].endswith("..."), results)
                _add(self.calls, found["call"], declared)
                # Not with `...`: Lua would make a table of the arguments at each call.
                text_of = f"local function {found['call']}({', '.join(names)}){found['body']}"
                self._scripts[found["call"]] = _to_function(text_of + _script_end(found["call"], declared))

    def _put_constants(self, text: str, rest: str) -> str:
        """Return a Lua text in which the value of each constant stands in the place of its name, also within values.

        ``rest`` is the value of the constant `REST`.
        """
        constants, before = {**self._constants, "REST": rest}, ""

        def value(found: re.Match[str]) -> str:
            name = found[0]  # or a string, which stays as it is
            return constants[name] if name.startswith("KEY.") else constants.get(name, name)

        while text != before:
            before, text = text, _NAME.sub(value, text)
        return text


def _script_end(name: str, declared: Declaration) -> str:
    """Return the lines that run a call with the arguments of the script."""
    last = _FIRST_ARGUMENT + len(declared.parameters)
    arguments = ", ".join(f"ARGV[{at}]" for at in range(_FIRST_ARGUMENT, last))
    return _ENDINGS[declared.kind].format(name=name, arguments=arguments, call=f"{name}({arguments})")


def _to_function(text: str) -> _Function:
    return _Function(text, frozenset(_WORD.findall(text)))


def _add(table: dict[str, Value], name: str, value: Value) -> None:
    if name in table:
        raise ValueError(f"{name} is in the library twice")
    table[name] = value


def make_scripts(library: LuaLibrary) -> Mapping[str, Script]:
    """Return the script of each call of a library, by its name."""
    made = {}
    for name, declared in library.calls.items():
        text, names = library.script(name), declared.parameters
        # For nine arguments, itemgetter takes 0.1 µs, and a loop 0.5. Of one it would return the bare value.
        order = itemgetter(*names) if len(names) > 1 else partial(_pick, names)
        made[name] = Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest(), declared, order)
    return made


def _pick(names: tuple[str, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(named[name] for name in names)


@cache
def read_library() -> Mapping[str, str]:
    """Return the texts of the files of the Lua library, by file name."""
    files = resources.files("stream_server.store").joinpath("lua").iterdir()
    return {file.name: file.read_text("utf-8") for file in files if file.name.endswith(".lua")}
