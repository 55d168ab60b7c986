"""Why a rule was refused, and where."""

from filters.error import ParameterError


class RuleError(ParameterError):
    """A rule cannot be read: ``what`` is wrong at ``column`` (from 1, in code points), where ``expected`` was due."""

    def __init__(self, what: str, *, column: int, expected: str) -> None:
        super().__init__(f"{what}; column {column}: expected {expected}", param="rule")
        self.what = what
        self.column = column
        self.expected = expected

    def moved(self, columns: int, before: str = "") -> "RuleError":
        """The same for a rule that begins so many columns later in what was written; ``before`` is said first."""
        return RuleError(before + self.what, column=self.column + columns, expected=self.expected)
