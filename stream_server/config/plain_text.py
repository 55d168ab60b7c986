"""Texts that people and tools write into files and variables, without what editors and shells add to them."""

from pathlib import Path


def clean(text: str) -> str:
    """Return a value without a byte order mark before it, and without white space and line ends around it.

    Some editors of Windows put the mark before a text in UTF-8.
    """
    return text.removeprefix("\ufeff").strip()


def read_clean(path: Path) -> str:
    """Return the only value in a file of UTF-8, such as a secret. Raises OSError, or ValueError for other bytes."""
    return clean(path.read_text(encoding="utf-8"))
