"""How much of a client's bound is whose: the kernel's buffer is taken off it."""

import pytest

from stream_server.app import _client_limits
from tests.stream_server import tokens


@pytest.mark.parametrize(
    ("client_buffer_bytes", "send_buffer_bytes", "ours"),
    [(262_144, 65_536, 196_608), (262_144, 0, 262_144), (65_536, 65_536, 4096), (4096, 1_000_000, 4096)],
)
def test_the_kernel_s_buffer_is_counted(client_buffer_bytes: int, send_buffer_bytes: int, ours: int) -> None:
    """What is left of it is the hub's, and never nothing; where the kernel's size is its own, nothing is counted."""
    config = tokens.config(client_buffer_bytes=client_buffer_bytes, send_buffer_bytes=send_buffer_bytes)
    assert _client_limits(config).buffer_bytes == ours
