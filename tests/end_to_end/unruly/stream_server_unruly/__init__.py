"""Plug-in filters that misbehave, for tests."""
