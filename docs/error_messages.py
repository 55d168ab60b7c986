"""The messages of the API's errors by their codes, as the code has them. ``tables.py`` makes a table of them.

A message is what the code gives to an error that it raises: a literal, or a name or a table with literals. What the
code only passes on is not seen here, but where it is made.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from filters.error import ParameterError
from filters.rules.condition import RuleError
from stream_server import errors
from stream_server.wire.errors import STATUS_BY_CODE

ROOT = Path(__file__).parents[1]

NOT_OF_THE_API = tuple(f"stream_server/{name}/" for name in ("client", "commands", "demo", "web/dialects"))

DEFAULT_CODES = {name: one.code for name, one in vars(errors).items() if isinstance(one, type) and hasattr(one, "code")}
DEFAULT_CODES |= {one.__name__: "invalid_parameter" for one in (ParameterError, RuleError)}
"""The codes of the errors by the names of their classes, unless an argument gives another one."""

VALUE = "…"
"""Stands in a message for a value."""

Scopes = tuple[ast.AST, ...]


def error_messages() -> dict[str, list[str]]:
    """Return the messages of each code, in alphabetical order."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in sorted([*(ROOT / "filters").rglob("*.py"), *(ROOT / "stream_server").rglob("*.py")]):
        if not str(file.relative_to(ROOT)).startswith(NOT_OF_THE_API):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for call, scopes in _calls_of(tree):
                for code in _codes(call):
                    found[code] |= {text for text in texts(call.args[0], scopes) if text.strip(f"{VALUE}`: ")}
    return {code: sorted(found[code], key=str.lower) for code in STATUS_BY_CODE}


def _calls_of(tree: ast.Module) -> Iterator[tuple[ast.Call, Scopes]]:
    """Yield the calls that make an error, each with the statement and the function that have it, and the module."""
    functions = (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
    for statement, function in ((each, one) for one in functions for each in one.body):
        for call in ast.walk(statement):
            if isinstance(call, ast.Call) and call.args and _name(call) in DEFAULT_CODES:
                yield call, (statement, function, tree)


def _name(call: ast.Call) -> str:
    """Return the name of the called class, such as ``NotFound`` for ``errors.NotFound(…)``."""
    return ast.unparse(call.func).rpartition(".")[2]


def _codes(call: ast.Call) -> list[str]:
    """Return the codes that an error may have."""
    given = next((word.value for word in call.keywords if word.arg == "code"), None)
    if given is None:
        return [DEFAULT_CODES[_name(call)]]
    patterns = {text.replace(VALUE, "*") for text in texts(given, ())}
    return [code for code in STATUS_BY_CODE if any(pattern != "*" and fnmatch(code, pattern) for pattern in patterns)]


def texts(node: ast.expr, scopes: Scopes) -> set[str]:
    """Return what an expression may be, with `VALUE` for what only the running program knows."""
    found = {VALUE}
    match node:
        case ast.Constant(value=str(text)):
            found = {text}
        case ast.JoinedStr(values=parts):
            found = {"".join(str(part.value) if isinstance(part, ast.Constant) else VALUE for part in parts)}
        case ast.IfExp():
            found = texts(node.body, scopes) | texts(node.orelse, scopes)
        case ast.Dict(values=values):
            found = {text for value in values for text in texts(value, scopes)}
        case ast.Subscript():
            found = texts(node.value, scopes)
        case ast.Call(func=ast.Attribute(value=owner, attr="format" | "get")):
            given = {text for each in (owner, *node.args[1:]) for text in texts(each, scopes)}
            found = {text.replace("{}", VALUE).replace("{:,}", VALUE) for text in given}
        case ast.Name(id=name):
            places = ([*_assigned(scope, name), *_given(scope, name, scopes[-1])] for scope in scopes)
            nearest = next(filter(None, places), [])
            found = {text for value in nearest for text in texts(value, scopes[-1:])} or {VALUE}
    return found


def _assigned(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield what is assigned to a name, also as one of several."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=True)
                    yield from (value for one, value in pairs if ast.unparse(one) == name)
                elif ast.unparse(target) == name:
                    yield node.value


def _given(function: ast.AST, name: str, module: ast.AST) -> Iterator[ast.expr]:
    """Yield what the calls in the module give to a parameter, if the scope is a function."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    names = [one.arg for one in function.args.args if one.arg != "self"]
    for call in ast.walk(module):
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == function.name:
            yield from (word.value for word in call.keywords if word.arg == name)
            if name in names and len(call.args) > names.index(name):
                yield call.args[names.index(name)]
