"""No bytes that anybody can send hold the event loop, and each gets its answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.inputs import INPUTS, Input, exchange
from tests.end_to_end.server import Server

MAX_HOLD_SECONDS = 0.05


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


@pytest.mark.parametrize("attack", INPUTS, ids=lambda attack: attack.name)
async def test_no_input_holds_the_loop(server: Server, attack: Input) -> None:
    """The whole work of the loop for the input is less than one hold may be. Time is that of the CPU."""
    before = loop_seconds(server)
    answer = await exchange(server.address, attack.request)
    seconds = loop_seconds(server) - before
    assert int(answer.split(b" ", 2)[1]) == attack.status, answer[:300]
    assert seconds < MAX_HOLD_SECONDS
