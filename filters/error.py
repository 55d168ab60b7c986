"""Why a parameter was refused."""


class ParameterError(ValueError):
    """A stream's parameter cannot be what the client wrote.

    ``param`` is the parameter's name, ``message`` is for people, and ``code`` is one of ``invalid_parameter``,
    ``missing_parameter``, ``conflicting_parameters``, ``unknown_parameter`` (400 over HTTP) and ``too_many`` (413).
    """

    def __init__(self, message: str, *, param: str, code: str = "invalid_parameter") -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
