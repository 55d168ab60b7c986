"""The common parts of all stream parameters: the exception for a refused value, and the syntax of lists."""


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


def split_list(value: str, *, param: str, max_items: int, noun: str) -> list[str]:
    """Split a comma-separated value, and strip the spaces around each item.

    Raises ParameterError ``too_many`` for more than ``max_items`` items, before it splits, so that a list which is too
    long costs almost no work. ``noun`` names the items in the message, such as ``ids``.
    """
    count = value.count(",") + 1
    if count > max_items:
        raise ParameterError(f"{param} takes at most {max_items} {noun}, not {count}", param=param, code="too_many")
    return [item.strip() for item in value.split(",")]
