"""Tests of the dialects: what the server sends must be what clients of v1.1 and v2 parse."""
