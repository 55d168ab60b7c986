"""Files and functions are short."""

import ast
import re

from tests.architecture.source import modules, tree

FILE_LINES = 400
FUNCTION_LINES = 60


def _functions() -> dict[str, int]:
    lengths = {}
    for name, path in modules().items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                lengths[f"{name}.{node.name}:{node.lineno}"] = node.end_lineno - node.lineno + 1
    return lengths


def test_no_file_is_long() -> None:
    """A file over 400 lines has more than one subject."""
    lengths = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert {name: length for name, length in lengths.items() if length > FILE_LINES} == {}


def test_no_function_is_long() -> None:
    """A function over 60 lines does more than one thing."""
    lengths = _functions()
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES} == {}


def test_packages_open_with_their_contract_and_hold_no_logic() -> None:
    """An `__init__` is a docstring, and perhaps a version."""
    for name, path in modules().items():
        if path.name == "__init__.py":
            body = tree(path).body
            assert ast.get_docstring(tree(path)), f"{name} says nothing"
            plain = ast.Expr | ast.Assign | ast.ImportFrom  # a public surface may name what it offers
            assert all(isinstance(node, plain) for node in body), f"{name} has logic"


def test_packages_name_their_files() -> None:
    """The docstring of each package says what each of its files is for."""
    for name, path in modules().items():
        if path.name == "__init__.py":
            told = ast.get_docstring(tree(path)) or ""
            files = {one.rpartition(".")[2] for one in modules() if one.rpartition(".")[0] == name}
            unnamed = sorted(one for one in files if f"``{one}``" not in told and f"``{one}/``" not in told)
            assert unnamed == [], f"the docstring of {path} has to name these files"


def test_packages_name_no_file_that_is_gone() -> None:
    """A name at the begin of a line of a package's docstring is a file or a folder of the package."""
    for path in modules().values():
        if path.name == "__init__.py":
            named = re.findall(r"^``(\w+)/?`` ", ast.get_docstring(tree(path)) or "", re.MULTILINE)
            gone = set(named) - {each.stem for each in path.parent.iterdir()}
            assert gone == set(), f"the docstring of {path} names what is not there"


def test_no_module_has_a_name_without_meaning() -> None:
    """Names such as `utils`, `helpers`, `common` and `misc` say nothing."""
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "base2", "manager"}
    assert [name for name in modules() if vague & set(name.split("."))] == []
