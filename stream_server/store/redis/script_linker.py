"""Joins the texts of a Lua script: puts in its constants, and leaves out the functions that it does not use.

Redis makes all functions of a script anew for each call, which costs about 0.3 µs each. A script that uses five of its
fifty functions would pay more for the others than for its work. A constant that a function takes from a local variable
makes this dearer, because Lua searches the variable among all others. So constants stand in the text as values.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

_FUNCTION = re.compile(r"^local function (\w+)\(.*?^end\n", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_CONSTANT = re.compile(r"\bKEY\.\w+|\b[A-Z][A-Z_]+\b(?!\.)")


class _Piece(NamedTuple):
    """A function, or the text between two functions, whose ``name`` is empty. ``words`` are the words of its code."""

    name: str
    text: str
    words: frozenset[str]


def link(texts: Iterable[str], constants: Mapping[str, str]) -> str:
    """Return the texts joined by line ends, without the functions that nothing behind them names.

    A Lua function can use only functions that stand before it, so the search begins at the end. ``constants`` are the
    values, as Lua texts, that take the place of names. Raises KeyError for an unknown name ``KEY.…``.
    """
    kept, used = list[str](), set[str]()
    for piece in reversed([piece for text in texts for piece in _pieces(text)]):
        if not piece.name or piece.name in used:
            kept.append(piece.text)
            used |= piece.words
    return put_constants("".join(reversed(kept)), constants)


def put_constants(text: str, constants: Mapping[str, str]) -> str:
    """Return a text of Lua with values in the place of names. Raises KeyError for an unknown name ``KEY.…``."""
    return _CONSTANT.sub(lambda found: _value(found[0], constants), text)


def _value(name: str, constants: Mapping[str, str]) -> str:
    """Return the value of a constant, or the name itself if it is a variable of the script."""
    return constants[name] if name.startswith("KEY.") else constants.get(name, name)


@cache
def _pieces(text: str) -> tuple[_Piece, ...]:
    """Split a text at its functions. The texts of the parts come once for each script, and are split once."""
    found, end = [], 0
    for function in _FUNCTION.finditer(text):
        found += [_piece("", text[end : function.start()]), _piece(function[1], function[0])]
        end = function.end()
    return (*found, _piece("", text[end:] + "\n"))


def _piece(name: str, text: str) -> _Piece:
    return _Piece(name, text, frozenset(re.findall(r"\w+", _COMMENT.sub("", text))))
