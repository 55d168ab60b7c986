"""Why a rule was refused, and where."""

from filters.error import ParameterError


class RuleError(ParameterError):
    """A rule cannot be read: ``problem`` is wrong at ``column`` (from 1, in code points), where ``expected`` was due."""

    def __init__(self, problem: str, *, column: int, expected: str) -> None:
        super().__init__(f"{problem}; column {column}: expected {expected}", param="rule")
        self.problem = problem
        self.column = column
        self.expected = expected

    def shifted(self, columns: int, prefix: str = "") -> "RuleError":
        """The same for a rule that begins so many columns later in what was written; ``prefix`` is said first."""
        return RuleError(prefix + self.problem, column=self.column + columns, expected=self.expected)
