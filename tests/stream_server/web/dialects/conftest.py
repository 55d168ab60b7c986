"""The same server and session as end to end, since dialects are tried on the real thing."""

from tests.end_to_end.conftest import api, own_folder, server

__all__ = ["api", "own_folder", "server"]
