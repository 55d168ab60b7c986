"""The exception for a stream parameter that is refused."""


class ParameterError(ValueError):
    """A stream parameter has an invalid value.

    Attributes:
        param: Name of the parameter.
        code: Error code of the HTTP answer. ``invalid_parameter``, ``missing_parameter``, ``conflicting_parameters``
            and ``unknown_parameter`` give status 400, ``too_many`` gives 413.
    """

    def __init__(self, message: str, *, param: str, code: str = "invalid_parameter") -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
