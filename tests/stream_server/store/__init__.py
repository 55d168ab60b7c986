"""Tests of ``stream_server.store`` against a real Redis, of each version there is."""
