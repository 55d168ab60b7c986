"""The built wheel on other platforms than that of the tests."""
