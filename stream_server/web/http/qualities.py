"""Reads the header fields in which a client lists what it accepts, each with a quality (RFC 9110 §12.4.2)."""

import re

MAX_LIST_CHARS = 1000
"""Longest part of a field that is read, in characters. Browsers send about 150."""

_QUALITY = re.compile(r"q\s*=\s*([0-9]+(?:\.[0-9]*)?)")


def parse_qualities(field: str) -> dict[str, float]:
    """Return the qualities (0.0 to 1.0) by the listed media ranges or codings in lower case, in the order of the list.

    A part without a quality has 1.0. One with an invalid quality has 0.0, so that it is not chosen.
    """
    qualities: dict[str, float] = {}
    for part in field[:MAX_LIST_CHARS].lower().split(","):
        name, *parameters = map(str.strip, part.split(";"))
        if name:
            given = next((one for one in parameters if one.partition("=")[0].rstrip() == "q"), "q=1")
            found = _QUALITY.fullmatch(given)
            qualities[name] = min(1.0, float(found[1])) if found else 0.0
    return qualities


def prefers_html(accept: str) -> bool:
    """Return whether an Accept header names HTML and does not prefer JSON (RFC 9110 §12.5.1).

    ``*/*`` alone means a program such as curl, which gets JSON.
    """
    qualities = parse_qualities(accept)
    html = qualities.get("text/html", 0.0)
    return html > 0 and html >= qualities.get("application/json", 0.0)
