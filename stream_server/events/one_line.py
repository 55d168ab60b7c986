"""JSON that is one line for every reader.

JSON allows U+2028, U+2029 and U+0085 in texts as they are (RFC 8259 §7). Readers that split lines as Python's
``str.splitlines`` take them for line ends, so the post of a stranger would end such a program. The server sends them
escaped, as it sends all other characters that end a line.
"""

import msgspec

_LINE, _PARAGRAPH, _NEXT = (mark.encode() for mark in "\u2028\u2029\u0085")


def keep_on_one_line(json: bytes) -> bytes:
    """Return UTF-8 JSON in which U+2028, U+2029 and U+0085 are escaped. Return the same object if there are none.

    These characters end a line for some readers. In JSON they can stand only in texts, where an escape is allowed. The
    searches are ordered so that most JSON takes 0.05 to 0.6 µs.
    """
    if json.isascii():
        return json
    if b"\xe2" in json and (json.rfind(_LINE) >= 0 or json.rfind(_PARAGRAPH) >= 0):
        json = json.replace(_LINE, rb"\u2028").replace(_PARAGRAPH, rb"\u2029")
    if b"\xc2" in json and json.rfind(_NEXT) >= 0:
        json = json.replace(_NEXT, rb"\u0085")
    return json


def encode_json(value: object) -> bytes:
    """Return ``value`` as JSON without any character that ends a line. Raises TypeError for what is not JSON."""
    return keep_on_one_line(msgspec.json.encode(value))
