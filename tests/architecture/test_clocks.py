"""A clock has one name wherever it is a parameter."""

import ast
from collections.abc import Iterator

from tests.architecture.source import modules, tree

NAMES = {"time.monotonic": "monotonic", "time.thread_time": "thread_time", "time.time": "unix_time"}
"""The name of the parameter for each function of the module ``time``."""


def _clocks(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the name and the default of each parameter whose default is a function of the module ``time``."""
    for node in ast.walk(module):
        if isinstance(node, ast.arguments):
            positional = [*node.posonlyargs, *node.args]
            with_default = positional[len(positional) - len(node.defaults) :]
            for argument, default in zip(
                [*with_default, *node.kwonlyargs], [*node.defaults, *node.kw_defaults], strict=True
            ):
                if default is not None and ast.unparse(default).startswith("time."):
                    yield argument.arg, ast.unparse(default)


def test_a_parameter_that_is_a_clock_has_the_name_of_its_clock() -> None:
    """Seconds of two clocks cannot be compared, so a reader must see at once which one is meant."""
    found = [pair for path in modules().values() for pair in _clocks(tree(path))]
    assert found
    assert [pair for pair in found if NAMES.get(pair[1]) != pair[0]] == []
