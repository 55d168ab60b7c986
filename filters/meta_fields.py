"""The fields that an author added to a status: the scalar values of its ``meta``, each with a dotted name.

The name of 5 in ``{"item": {"price": 5}}`` is ``item.price``. A list gives its own name to each of its members, so a
name may have several values. ``null`` counts as absent.
"""

import json
from typing import NamedTuple, TypeAlias

from filters import index_keys
from filters.index_keys import Key
from filters.tokens import fold

MAX_FIELDS = 32
"""Number of fields of one status that rules can find: the first ones, in the order of the JSON."""

MAX_BYTES = 128
"""Maximum length of a name, and of a value, in bytes of UTF-8 after case folding. Longer ones are passed over."""

Number: TypeAlias = int | float

_read_json = json.JSONDecoder().raw_decode  # json.loads takes a microsecond longer, as long as the whole rest


class MetaField(NamedTuple):
    """One field. ``name`` is folded. ``value`` is a number or a folded text; true and false are texts."""

    name: str
    value: str | Number
    key: Key


def text_key(name: str, text: str) -> Key:
    """Return the index key of a field with a text. Name and text must be folded."""
    return f"{index_keys.META_TEXT}{len(name)}:{name}{text}"


def number_key(name: str, number: Number) -> Key:
    """Return the index key of a field with a number. The name must be folded. The text ``10`` has another key."""
    return f"{index_keys.META_NUMBER}{len(name)}:{name}{number_text(number)}"


def number_text(number: Number) -> str:
    """Return the decimal text of a number. Equal numbers have equal texts: 10 and 10.0 give ``10``."""
    return str(int(number)) if isinstance(number, int) or number.is_integer() else repr(number)


def is_too_long(text: str) -> bool:
    """Whether a folded name or value has more than :data:`MAX_BYTES` bytes, so that no rule can find it."""
    return len(text) > MAX_BYTES or (not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES)


def read_meta_fields(meta: bytes) -> list[MetaField]:
    """Return the fields that rules can find in ``meta``, which is a JSON object without white space before it."""
    found: list[MetaField] = []
    for member, value in _read_json(meta.decode())[0].items():
        _collect(fold(member), value, found)
    return found


def _collect(name: str, value: object, found: list[MetaField]) -> None:
    """Add the fields of ``value`` to ``found``, until it has enough of them."""
    if isinstance(value, dict):
        for member, inner in value.items():
            _collect(f"{name}.{fold(member)}", inner, found)
    elif isinstance(value, list):
        for inner in value:
            if len(found) == MAX_FIELDS:
                return  # a long list would take 0.2 ms more
            _collect(name, inner, found)
    elif value is None or len(found) == MAX_FIELDS or is_too_long(name):
        return
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not is_too_long(number_text(value)):
            found.append(MetaField(name, value, number_key(name, value)))
    else:
        text = fold(value) if isinstance(value, str) else "true" if value else "false"
        if not is_too_long(text):
            found.append(MetaField(name, text, text_key(name, text)))
