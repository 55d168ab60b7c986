"""The fixtures of the store's tests, for the services that work on a store."""

from tests.stream_server.store.conftest import people, raw, store

__all__ = ["people", "raw", "store"]
