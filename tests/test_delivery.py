"""Each promise about delivery names its tests. The tests exist, and at least one of them is in the first tier."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "delivery.md").read_text(encoding="utf-8")

_TEST = re.compile(r"`([\w/.]+\.py)::(\w+)`")
_SENTENCE = re.compile(r"^\* .*(?:\n  .*)*", re.MULTILINE)
_PROMISE = re.compile(r"^\| [1-7] \| .*$", re.MULTILINE)
_LATER = re.compile(r"pytest\.mark\.(?:extended|nightly)\b")
_ROW = re.compile(r"^\| R(\d+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)


def test_every_sentence_of_the_contract_has_a_test_in_the_first_tier() -> None:
    """If only slow tests held a promise, it could be broken for hours without notice."""
    contract = PAGE.partition("<!-- contract -->")[2].partition("<!-- /contract -->")[0]
    sentences = _SENTENCE.findall(contract)
    assert len(sentences) > 40
    assert [sentence for sentence in sentences if not any(_is_quick(*test) for test in _TEST.findall(sentence))] == []


def test_the_seven_promises_are_held_by_the_first_tier() -> None:
    """All tests named beside the seven promises are in the first tier."""
    promises = _PROMISE.findall(PAGE)
    assert len(promises) == 7
    assert [test for row in promises for test in _TEST.findall(row) if not _is_quick(*test)] == []
    assert all(_TEST.search(row) for row in promises)


def test_the_tests_of_the_contract_exist() -> None:
    """Each named test is a function of the named file, whose path begins below ``tests/``."""
    named = set(_TEST.findall(PAGE))
    assert sorted(f"{path}::{name}" for path, name in named if name not in _functions(path)) == []


def test_every_question_about_reliability_is_answered() -> None:
    """R1 to R25 stand in order, each with its tests or the reason why it does not pass yet."""
    rows = _ROW.findall(PAGE)
    assert [int(number) for number, *_ in rows] == list(range(1, 26))
    for number, _, verdict, tests in rows:
        assert verdict.startswith(("passed", "in part", "not yet")), f"R{number}"
        assert _TEST.search(tests) or not verdict.startswith("passed"), f"R{number}"


@cache
def _functions(path: str) -> dict[str, bool]:
    """Return the functions of a test file, and whether the first tier runs them."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    marks = [ast.unparse(node.value) for node in tree.body if isinstance(node, ast.Assign) and _marks(node)]
    later = any(map(_LATER.search, marks))
    return {
        node.name: not later and not any(_LATER.match(ast.unparse(one)) for one in node.decorator_list)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _marks(node: ast.Assign) -> bool:
    return ast.unparse(node.targets[0]) == "pytestmark"


def _is_quick(path: str, name: str) -> bool:
    return _functions(path).get(name, False)
