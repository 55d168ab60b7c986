"""Maps the authors of a recording to valid logins, the same at each replay."""

import re
import unicodedata
from hashlib import blake2b

LOGIN_PATTERN = re.compile(r"[A-Za-z0-9_]{1,20}")
"""A valid login."""

MAX_NAME_CHARS = 50
"""Longest name of a user in characters."""


def login_of_author(author: str) -> str:
    """Return the login of ``author``: the name itself if it is a valid login, otherwise one made from it.

    A made login ends with six hexadecimal digits of the name's hash. It does not depend on the other authors, so a
    second replay finds the same account.
    """
    if LOGIN_PATTERN.fullmatch(author):
        return author
    digest = blake2b(author.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9_]+", "_", author).strip("_")
    return f"{readable[:13] or 'author'}_{digest}"


def name_of_author(author: str) -> str:
    """Return the display name of ``author`` without control characters; the login if nothing remains."""
    clean = "".join(c for c in author if unicodedata.category(c) not in {"Cc", "Cs"}).strip()
    return clean[:MAX_NAME_CHARS].strip() or login_of_author(author)
