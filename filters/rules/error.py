"""The exception for a rule that cannot be read."""

from filters.error import ParameterError


class RuleError(ParameterError):
    """A rule cannot be read.

    Attributes:
        problem: What is wrong.
        column: Where it is wrong, in code points from 1.
        expected: What was expected at this column.
    """

    def __init__(self, problem: str, *, column: int, expected: str) -> None:
        super().__init__(f"{problem}; column {column}: expected {expected}", param="rule")
        self.problem = problem
        self.column = column
        self.expected = expected

    def shifted(self, columns: int, prefix: str = "") -> "RuleError":
        """Return the same error for a rule that begins ``columns`` later in the text of the client.

        ``prefix`` is put before the problem.
        """
        return RuleError(prefix + self.problem, column=self.column + columns, expected=self.expected)
