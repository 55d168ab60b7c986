"""Filters of a third party."""
