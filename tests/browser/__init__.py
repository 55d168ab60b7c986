"""Tests in a real browser: streams by EventSource, their tickets, and the pages that use them."""
