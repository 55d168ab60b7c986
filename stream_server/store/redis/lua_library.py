"""Makes the scripts of Redis from the library of Lua functions in ``store/lua``: one script for each *call*.

The library has one file a noun. A file has comments, constants (``local NAME = value``), helpers (``local function``),
and calls (``function kind.name``), which Python makes by their names. No code runs outside of a function, and functions
share only `appended` and `log_bytes`: what else one needs, it is given. So a *script* is the text of the helpers that
its call needs, each behind those that it uses itself, then the text of the call, and a last line that runs it. A
function needs a helper if the name of the helper stands in its code; names in comments and strings do not count.

The kind of a call says how it treats a repeated request:

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

A call that may take rights from tokens says so at the end of its declaration: ``-- RIGHTS <argument>`` names the
argument with the id of the user whose tokens they are, and ``-- RIGHTS *`` says that it may be any user::

    function deed.sessions_end_all(uid) -- RIGHTS uid

No other comment may stand there. A ``run.`` call may not take rights: `ScriptRunner` tells of those of writes only.

A parameter with names in a comment behind it is a table. Python gives a value for each of these names, as if they were
arguments of the call, and in Lua they are the fields of the table. So a call with many values has no long list of
positions, and hands the table on as it is::

    function claim.status_refer(draft --[[author, message, lang]], ...) --> json

Redis makes all functions of a script anew for each call, which costs about 0.1 µs each. A constant that a function
takes from a local variable makes this dearer, so constants stand in the text as values.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from hashlib import sha1
from importlib import resources
from itertools import chain, count
from operator import itemgetter
from typing import Any, NamedTuple, Self, TypeVar

Value = TypeVar("Value")

_STRING = r"'[^'\n]*'"
_STATEMENT = re.compile(
    r"local (?P<constant>[A-Z][A-Z0-9_]*) = (?P<value>.+)\n"
    r"|(?:local function (?P<helper>\w+)|function (?P<kind>\w+)\.(?P<call>\w+))"
    r"\((?P<parameters>[^)]*)\)(?: --> (?P<results>[\w, ]+?))?(?: -- RIGHTS (?P<rights>\w+|\*))?"
    r"(?P<body>(?: --.*)?\n(?s:.*?)^end\n)"
    r"|(?:\s|--.*)+",
    re.MULTILINE,
)
_COMMENT = re.compile(rf"({_STRING})|^[ \t]*--.*\n|[ \t]*--.*", re.MULTILINE)
_WORD = re.compile(rf"{_STRING}|\w+")
_PARAMETER = re.compile(r"(?P<name>\w+)(?: --\[\[(?P<fields>[\w,\s]+)\]\])?")
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
        parameters: The names of its arguments, in their order. The fields of a table stand in its place.
        takes_rest: Whether more arguments may follow.
        results: The names of the values of its reply, in their order.
        rights: The argument with the user from whose tokens the call may take rights, ``*`` if it may be any user, ''
            for a call that takes none.
    """

    kind: str
    parameters: tuple[str, ...]
    takes_rest: bool
    results: tuple[str, ...]
    rights: str = ""


class Script(NamedTuple):
    """The complete text of a Lua script, its SHA-1, by which EVALSHA calls it, and what its call declares.

    ``order`` returns arguments, given by name, in the order of the declaration. It raises KeyError if one is missing.
    """

    text: str
    sha1: str
    declared: Declaration
    order: Callable[[Mapping[str, Any]], tuple[Any, ...]]


class _Function(NamedTuple):
    """A function of the library: its text without comments, and the words of it, which may be names of helpers."""

    text: str
    words: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Self:
        """Make one of a text with comments. A string is one word with its quotation marks, and so no name."""
        code = _COMMENT.sub(r"\1", text)
        return cls(code, frozenset(_WORD.findall(code)))


class LuaLibrary:
    """The helpers, calls and constants of the library.

    Attributes:
        declarations: What each call declares, by its name.
    """

    def __init__(self, texts: Iterable[str], constants: Mapping[str, str]) -> None:
        """Read the files of the library. ``constants`` are further values, as Lua texts, by name (``KEY.…`` too).

        Raises ValueError for code outside of a function, for a name that is there twice, for a call whose RIGHTS name
        no argument of it, and for another comment behind the declaration of a call: it might be a misspelled RIGHTS.
        """
        self._constants = dict(constants)
        self._helpers: dict[str, _Function] = {}
        self._calls: dict[str, _Function] = {}
        self.declarations: dict[str, Declaration] = {}
        for text in texts:
            self._read(text)

    def script(self, call: str) -> str:
        """Return the complete text of the script of a call.

        Raises KeyError for an unknown call or ``KEY.…`` name, and ValueError for one of `REST` and ``...`` without the
        other.
        """
        needed = dict[str, None]()
        self._collect(self._calls[call], needed)
        # All functions share the bytes that the script has appended, and those of all entries (log.lua). The second has
        # no value until next_position reads it, so that an entry without a position fails.
        shared = "local appended, log_bytes = 0\n"
        text = "".join([shared, *(self._helpers[name].text for name in needed), self._calls[call].text])
        declared = self.declarations[call]
        if declared.takes_rest != bool(re.search(r"\bREST\b", text)):
            raise ValueError(f"{call} must have both or neither: `...` in its declaration, and REST")
        return self._put_constants(text, str(_FIRST_ARGUMENT + len(declared.parameters)))

    def _collect(self, function: _Function, needed: dict[str, None]) -> None:
        """Add the helpers that a function needs, each behind those that it needs itself."""
        for word in sorted(function.words & self._helpers.keys() - needed.keys()):
            helper = self._helpers[word]
            if helper is not function:
                self._collect(helper, needed)
                needed.setdefault(word)

    def _read(self, text: str) -> None:
        """Add the constants, helpers and calls of a file."""
        at = 0
        while at < len(text):
            found = _STATEMENT.match(text, at)
            if found is None:
                raise ValueError(f"code outside of a function: {text[at : at + 60]!r}")
            at = found.end()
            if found["constant"]:
                _add(self._constants, found["constant"], found["value"])
            elif found["helper"]:
                helper = _Function.of(f"local function {found['helper']}({found['parameters']}){found['body']}")
                _add(self._helpers, found["helper"], helper)
            elif found["call"]:
                self._add_call(found["call"], found)

    def _add_call(self, name: str, found: re.Match[str]) -> None:
        """Add the call that `_STATEMENT` has found."""
        declared = _PARAMETER.finditer(found["parameters"])
        given = [(each["name"], _WORD.findall(each["fields"] or "")) for each in declared]
        arguments = tuple(chain.from_iterable(fields or [parameter] for parameter, fields in given))
        results, rights, body = tuple(_WORD.findall(found["results"] or "")), found["rights"] or "", found["body"]
        if not body.startswith("\n"):
            comment = body.partition("\n")[0].strip()
            raise ValueError(f"behind the declaration of {name} may stand RIGHTS, not {comment!r}")
        if rights and found["kind"] == "run":
            raise ValueError(f"{name} takes rights, but a call of the kind run tells nobody of it")
        if rights not in {"", "*", *arguments}:
            raise ValueError(f"{name} takes rights of {rights}, which is no argument of it")
        takes_rest = found["parameters"].endswith("...")
        _add(self.declarations, name, Declaration(found["kind"], arguments, takes_rest, results, rights))
        # Not with `...`: Lua would make a table of the arguments at each call.
        head = f"local function {name}({', '.join(parameter for parameter, _ in given)})"
        self._calls[name] = _Function.of(head + body + _script_end(name, found["kind"], given))

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


def _script_end(call: str, kind: str, given: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return the lines that run a call with the arguments of the script.

    ``given`` has the name of each of its parameters, and the fields of one that is a table.
    """
    values = (f"ARGV[{at}]" for at in count(_FIRST_ARGUMENT))
    arguments = ", ".join(
        "{" + ", ".join(f"{field} = {next(values)}" for field in fields) + "}" if fields else next(values)
        for _, fields in given
    )
    return _ENDINGS[kind].format(name=call, arguments=arguments, call=f"{call}({arguments})")


def _add(table: dict[str, Value], name: str, value: Value) -> None:
    if name in table:
        raise ValueError(f"{name} is in the library twice")
    table[name] = value


def make_scripts(library: LuaLibrary) -> Mapping[str, Script]:
    """Return the script of each call of a library, by its name."""
    made = {}
    for name, declared in library.declarations.items():
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
