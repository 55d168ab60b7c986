"""The tests of the Python client, against a scripted server."""
