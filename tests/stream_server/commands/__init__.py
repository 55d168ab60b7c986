"""The tests of the commands and of what they are made of."""
