"""Laws that hold for all values that Hypothesis draws."""

from typing import Any, Protocol

from hypothesis.strategies import SearchStrategy


class Holds(Protocol):
    """Tries a law on many values of the strategies. Raises with the smallest case that breaks the law."""

    def __call__(self, law: Any, *strategies: SearchStrategy[Any], cases: int = 150) -> None: ...
