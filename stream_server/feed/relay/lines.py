r"""The lines that a relay sends to a process. Each line ends with ``\n``, which no entry has in it.

A batch of entries is divided by one call in C, at a tenth of the cost of reading lengths in Python. The first byte of a
line tells its kind:

- a digit: a published entry, ``<id> <n> <kind> <audience> <json>``, whose signature the relay has checked and removed
- ``a``: a question about streams, as it came (``ask {…}``)
- ``!<count>``: so many messages without a valid signature came. Their entries, if any, are on the log
- ``-<count>``: so many lines were lost, because this process did not take them in time
- ``+``: the relay is subscribed, so each entry that is written from now on comes
"""

END = b"\n"
QUESTION, UNSIGNED, LOST, BEGUN = b"a", b"!", b"-", b"+"


def count_line(kind: bytes, count: int) -> bytes:
    """Return the line of the kind `UNSIGNED` or `LOST`, with its end."""
    return b"%b%d%b" % (kind, count, END)


class LineSplitter:
    """Divides the bytes of a link into lines. It keeps the beginning of a line whose end has not come yet."""

    def __init__(self) -> None:
        self._begun = b""

    def split(self, data: bytes) -> list[bytes]:
        """Return the lines that end in ``data``, without their ends."""
        lines = (self._begun + data if self._begun else data).split(END)
        self._begun = lines.pop()
        return lines
