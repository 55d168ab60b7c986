"""No bytes that anybody can send hold the event loop, and each gets its answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.inputs import HONEST, INPUTS, Input, exchange
from tests.end_to_end.server import Server

MAX_HOLD = 15
"""The work that an input may make at most, in times that of :data:`HONEST`: 70 ms or so on a quick machine."""

ATTEMPTS = 5


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this module. Its end checks that the log has no traceback."""
    flags = ("--operations", "open", "--trusted-proxies", "127.0.0.1", "--cors-origins", "https://a.example")
    with Server(tmp_path_factory.mktemp("server"), *flags) as running:
        yield running


def loop_seconds(server: Server) -> float:
    """Return the CPU time of the thread with the server's event loop. Other programs do not add to it."""
    assert server.process is not None
    pid = server.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


async def work_for(server: Server, request: bytes) -> tuple[float, bytes]:
    """Send bytes on a connection of their own. Return the seconds of the loop's work for them, and the answer."""
    before = loop_seconds(server)
    answer = await exchange(server.address, request)
    return loop_seconds(server) - before, answer


@pytest.mark.parametrize("attack", INPUTS, ids=lambda attack: attack.name)
async def test_no_input_holds_the_loop(server: Server, attack: Input) -> None:
    """The whole work of the loop for the input is less than one hold may be.

    It is compared with the work for honest requests, by the same process and just before. Time is that of the CPU.
    """
    holds = []
    for _ in range(ATTEMPTS):
        honest, answer = await work_for(server, HONEST)
        assert answer.count(b"HTTP/1.1 200") == HONEST.count(b"HTTP/1.1")
        seconds, answer = await work_for(server, attack.request)
        assert int(answer.split(b" ", 2)[1]) == attack.status, answer[:300]
        holds.append(seconds / honest)
        if holds[-1] < MAX_HOLD:
            return
    pytest.fail(f"in times the work for honest requests: {holds}")
