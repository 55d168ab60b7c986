"""``python -m tests.attacks.undefended serve …``: the server without those defences that no setting switches off."""

import math
from collections.abc import Callable
from typing import TypeVar

import filters.rule
import filters.subscription_index
from stream_server.cli import main
from stream_server.events.bus_signature import MAC_PREFIX, BusSignature
from stream_server.runtime.event_loop import WorkThread
from stream_server.web.http.http_handler import TargetLimit

T = TypeVar("T")


async def _run_on_the_loop(_: WorkThread, work: Callable[[], T], caller: str = "") -> T:
    return work()


def _believe(_: BusSignature, message: bytes) -> bytes:
    body, mark, rest = message.rpartition(MAC_PREFIX)
    return body + b"}" if mark and rest.endswith(b'"}') else message


def switch_off_the_budgets() -> None:
    """Let rules and paths take any time, on the event loop, and believe every message of the bus."""
    filters.rule.MAX_EVENT_SECONDS = filters.rule.ALLOWANCE_SECONDS = math.inf
    filters.subscription_index.MAX_EVENT_SECONDS = math.inf
    BusSignature.open = _believe  # type: ignore[assignment, method-assign] # this is the defence
    TargetLimit.apply = lambda _, message: message  # type: ignore[assignment, method-assign] # this is the defence
    WorkThread.run = _run_on_the_loop  # type: ignore[assignment, method-assign] # this is the defence


if __name__ == "__main__":
    switch_off_the_budgets()
    main()
