"""Tests of ``stream_server.store`` against a real Redis, in the folders of the store itself."""
