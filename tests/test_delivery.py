"""What is promised about delivery names the tests that hold it, and each of them exists."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "delivery.md").read_text(encoding="utf-8")

_TEST = re.compile(r"`([\w/.]+\.py)::(\w+)`")
_SENTENCE = re.compile(r"^\* .*(?:\n  .*)*", re.MULTILINE)
_ROW = re.compile(r"^\| R(\d+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)


def test_every_sentence_of_the_contract_has_a_test() -> None:
    """A promise that nothing holds is a wish."""
    contract = PAGE.partition("<!-- contract -->")[2].partition("<!-- /contract -->")[0]
    sentences = _SENTENCE.findall(contract)
    assert len(sentences) > 40
    assert [sentence for sentence in sentences if not _TEST.search(sentence)] == []


def test_the_tests_of_the_contract_exist() -> None:
    """Each one that is named is a function of the file that is named, whose name begins with ``tests/``."""
    named = set(_TEST.findall(PAGE))
    assert sorted(f"{path}::{name}" for path, name in named if name not in _functions(path)) == []


def test_every_question_about_reliability_is_answered() -> None:
    """R1 to R25 in their order: passed, by which tests, or why not yet."""
    rows = _ROW.findall(PAGE)
    assert [int(number) for number, *_ in rows] == list(range(1, 26))
    for number, _, verdict, tests in rows:
        assert verdict.startswith(("passed", "in part", "not yet")), f"R{number}"
        assert _TEST.search(tests) or not verdict.startswith("passed"), f"R{number}"


@cache
def _functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
