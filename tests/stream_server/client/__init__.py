"""The SDK, against servers that behave as told."""
