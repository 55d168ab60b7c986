"""One function normalizes text for comparison."""

import ast
from collections.abc import Iterator

from filters.tokens import fold
from stream_server.web.http.fields import LOGIN_PATTERN
from tests.architecture.source import modules, tree

CODES = {
    "filters.tokens": "the ASCII half of the one normalisation",
    "filters.entities": "hosts and top-level domains",
    "filters.index_keys": "tags of languages",
    "filters.tables": "tags of languages",
    "filters.event": "codes of countries",
    "filters.rule": "names of operators",
    "filters.suggestion": "names of parameters and the like",
    "filters.rules.parser": "names of operators",
    "filters.rules.attributes": "values of is: and has:",
    "filters.rules.geo": "codes of countries, units of length",
}
"""Where ``filters`` may lower the case of what is a code in ASCII and no text, and of what."""


def _called(name: str, *methods: str) -> Iterator[str]:
    for node in ast.walk(tree(modules()[name])):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            yield node.func.attr


def test_case_and_form_are_folded_in_one_place() -> None:
    """A second way of folding would find a word in one place and miss it in another."""
    texts = {name: path.read_text() for name, path in modules().items()}
    folding = [name for name, text in texts.items() if "casefold" in text and any(_called(name, "casefold"))]
    composing = [name for name, text in texts.items() if "unicodedata.normalize" in text]
    assert folding == composing == ["filters.tokens"]


def test_filters_lower_the_case_of_codes_only() -> None:
    """Text is folded, because lower case alone equals neither ``ß`` to ``SS`` nor ``ς`` to ``Σ``."""
    lowering = {name for name in modules() if name.startswith("filters") and any(_called(name, "lower", "upper"))}
    assert lowering - set(CODES) == set()


def test_lowering_a_login_is_folding_it() -> None:
    """The store keeps logins in lower case and filters fold them, so both name the same user."""
    letters = [character for character in map(chr, range(0x110000)) if LOGIN_PATTERN.fullmatch(character)]
    assert len(letters) == 63
    assert [character for character in letters if character.lower() != fold(character)] == []
