"""The client buffer is shared with the send buffer of the kernel."""

import pytest

from stream_server.app import _client_limits
from tests.stream_server import tokens


@pytest.mark.parametrize(("buffer_bytes", "ours", "kernels"), [(262_144, 196_608, 65_536), (4096, 4096, 1024)])
def test_a_quarter_of_the_client_buffer_is_the_kernels(buffer_bytes: int, ours: int, kernels: int) -> None:
    limits = _client_limits(tokens.config(client_buffer_bytes=buffer_bytes))
    assert (limits.buffer_bytes, limits.send_buffer_bytes) == (ours, kernels)
