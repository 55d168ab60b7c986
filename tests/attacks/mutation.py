"""Bytes that an attacker sends: valid ones with random changes."""

from collections.abc import Sequence

from hypothesis import strategies as st

INTERESTING = (
    b"\x00", b"\r\n", b"\n\n", b"%0d%0a", b"\xff\xfe", b"\xed\xa0\x80", "\u2028".encode(), "\u202e".encode(), b"../",
    b"9" * 40, b"-1", b"1e999", b"NaN", b"null", b"{" * 60, b"[" * 60, b'"', b"\\u0000", b"'", b"`", b"${7*7}", b" ",
)  # fmt: skip
"""Pieces that parsers stumble over."""


@st.composite
def mutated(draw: st.DrawFn, valid: Sequence[bytes]) -> bytes:
    """Return one of the ``valid`` byte strings after one to five changes."""
    data = bytearray(draw(st.sampled_from(valid)))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 12))
        match draw(st.sampled_from(("replace", "insert", "delete", "repeat", "swap"))):
            case "replace":
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=3))
            case "insert":
                data[at:at] = draw(st.sampled_from(INTERESTING))
            case "delete":
                del data[at : at + length]
            case "repeat":
                data[at:at] = data[at : at + length] * draw(st.integers(1, 20))
            case _:
                data[at : at + length] = data[at : at + length][::-1]
    return bytes(data)
