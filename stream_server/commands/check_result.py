"""The result of one check of ``doctor``."""

from enum import Enum
from functools import partial
from typing import NamedTuple


class CheckState(Enum):
    """The outcome of one check of ``doctor``. Only ``BROKEN`` makes the command exit with 1."""

    GOOD = "good"
    ADVICE = "advice"
    BROKEN = "broken"


class CheckResult(NamedTuple):
    """The result of one check of ``doctor``, with one sentence for a person."""

    state: CheckState
    sentence: str


good, advice = partial(CheckResult, CheckState.GOOD), partial(CheckResult, CheckState.ADVICE)
broken = partial(CheckResult, CheckState.BROKEN)
