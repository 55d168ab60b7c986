"""The exception for a rule that cannot be read."""

from filters.error import ParameterError


class RuleError(ParameterError):
    """A rule is invalid at ``column``, in code points from 1. ``expected`` says what should stand there."""

    def __init__(self, problem: str, *, column: int, expected: str) -> None:
        super().__init__(f"{problem}; column {column}: expected {expected}", param="rule")
        self.problem = problem
        self.column = column
        self.expected = expected

    def shifted(self, columns: int, prefix: str = "") -> "RuleError":
        """Return a copy with ``columns`` added to ``column``, for a rule that begins so far inside a text."""
        return RuleError(prefix + self.problem, column=self.column + columns, expected=self.expected)
