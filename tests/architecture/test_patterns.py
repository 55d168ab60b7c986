"""Regular expressions use only what each supported Python matches right."""

import ast
import re

import pytest

from tests.architecture.source import imports, modules, tree

ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
ATOMIC = re.compile(r"[*+?}]\+|\(\?>")


def atomic_parts(pattern: str) -> list[str]:
    """Return the possessive quantifiers and the beginnings of atomic groups in a pattern."""
    return ATOMIC.findall(ESCAPE_OR_CLASS.sub("x", pattern))


def texts(node: ast.AST) -> list[str]:
    """Return the texts in a piece of code, except docstrings. An ``x`` stands for each value that is put in."""
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(one.value) if isinstance(one, ast.Constant) else "x" for one in node.values)]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return []
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return [node.value if isinstance(node.value, str) else node.value.decode("latin-1")]
    return [text for child in ast.iter_child_nodes(node) for text in texts(child)]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"a++", ["++"]), (r"(?:ab?c)*+", ["*+"]), (r"[*+]?+", ["?+"]), (r"a{1,2}+", ["}+"]), (r"(?>a)", ["(?>"]),
        (r"a+", []), (r"[*+.^]+", []), (r"\++", []), (r"[]*+]", []), (r"[^]*+]*", []), (r"[\]*+]*?", []),
    ],
)  # fmt: skip
def test_possessive_quantifiers_are_recognized(pattern: str, found: list[str]) -> None:
    assert atomic_parts(pattern) == found


def test_no_pattern_is_possessive() -> None:
    """Python 3.11.0 to 3.11.4 match possessive groups wrong, without a word (CPython gh-100061, gh-106052)."""
    using = {name: path for name, path in modules().items() if "re" in imports(path)}
    assert len(using) > 20
    assert {
        name: parts for name, path in using.items() for text in texts(tree(path)) if (parts := atomic_parts(text))
    } == {}
