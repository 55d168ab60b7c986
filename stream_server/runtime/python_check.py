"""The check that the running Python finds matches of regular expressions as it should.

The server reads requests, rules and texts by Python's `re`. In Python 3.11.0 to 3.11.4 possessive quantifiers match too
much or too little, if they repeat a group (CPython gh-100061 and gh-106052, mended in 3.11.5). The server found no link
without a scheme there, and nothing told so. The patterns of this project have no such quantifier any more, and the test
suite keeps it so. Another version of Python may have another fault. So a server reads a few known texts first, and does
not start if an answer is wrong.
"""

import platform
import re
from collections.abc import Callable
from typing import NamedTuple

from filters.entities import extract_entities
from filters.rules.parser import tokenize
from filters.tokens import fold, words
from stream_server.web.http.usual_request import FIELDS, read_fields


class _Trial(NamedTuple):
    """A text whose answer is known.

    Attributes:
        text: The text.
        what: What is found in it, for the message.
        find: Finds it by the patterns that the server uses.
        answer: What must be found.
    """

    text: str
    what: str
    find: Callable[[str], object]
    answer: object


_TRIALS = (
    _Trial(
        "see a.co/x, B.org/c_(d(e)). www.é.com no... dot 3.14", "links",
        lambda text: [link.url for link in extract_entities(text).urls], ["a.co/x", "B.org/c_(d(e))", "www.é.com"],
    ),
    _Trial(
        "#tag½ #½ #日本語2, #a_b \uff03é", "hashtags",
        lambda text: [tag.text for tag in extract_entities(text).hashtags], ["tag", "日本語2", "a_b", "é"],
    ),
    _Trial(
        "Rock'n'roll, ÉTÉ 🏴\U000e0067\U000e0062\U000e007f!", "words",
        lambda text: words(fold(text)), {"rock", "n", "roll", "été", "🏴\U000e0067\U000e0062\U000e007f"},
    ),
    _Trial(
        r'"a \"b\" c\\" -d', "tokens",
        lambda text: [token.text for token in tokenize(text)], ['a "b" c\\', "", "d", ""],
    ),
    _Trial(
        "Host: a\r\nX-B:\t c\td \r\n\r\n", "header fields",
        lambda text: [read_fields(fields, frozenset()) for fields in re.findall(FIELDS, text)],
        [{"host": "a", "x-b": "c\td"}],
    ),
)  # fmt: skip


def find_fault() -> str:
    """Return a sentence for the operator that names a wrong answer of this Python; empty if all answers are right."""
    for trial in _TRIALS:
        try:
            found = trial.find(trial.text)
        except Exception as error:  # noqa: BLE001 - a faulty `re` may raise anything, and may make the caller refuse the text
            found = error
        if found != trial.answer:
            return (
                f"Python {platform.python_version()} cannot be used, because its regular expressions are wrong: the "
                f"{trial.what} of {trial.text!r} are {trial.answer!r}, and it finds {found!r}"
            )
    return ""
