"""A recording's authors as accounts: valid logins, the same at each replay."""

import re
import unicodedata
from hashlib import blake2b

LOGIN_PATTERN = re.compile(r"[A-Za-z0-9_]{1,20}")

MAX_NAME_CHARS = 50


def login_of_author(author: str) -> str:
    """The login of ``author``: the name itself where it is one, else made from it.

    A made one ends with six digits of the name's hash: it does not depend on who else is in the recording, so a
    second replay finds the same account.
    """
    if LOGIN_PATTERN.fullmatch(author):
        return author
    digest = blake2b(author.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9_]+", "_", author).strip("_")
    return f"{readable[:13] or 'author'}_{digest}"


def name_of_author(author: str) -> str:
    """What is shown as the name of ``author``."""
    clean = "".join(c for c in author if unicodedata.category(c) not in {"Cc", "Cs"}).strip()
    return clean[:MAX_NAME_CHARS].strip() or login_of_author(author)
