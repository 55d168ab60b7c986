"""The client buffer is shared with the send buffer of the kernel."""

import pytest

from stream_server.app import _client_limits
from tests.stream_server import tokens


@pytest.mark.parametrize(
    ("client_buffer_bytes", "send_buffer_bytes", "ours"),
    [(262_144, 65_536, 196_608), (262_144, 0, 262_144), (65_536, 65_536, 4096), (4096, 1_000_000, 4096)],
)
def test_the_kernel_send_buffer_is_subtracted_from_the_client_buffer(
    client_buffer_bytes: int, send_buffer_bytes: int, ours: int
) -> None:
    config = tokens.config(client_buffer_bytes=client_buffer_bytes, send_buffer_bytes=send_buffer_bytes)
    assert _client_limits(config).buffer_bytes == ours
