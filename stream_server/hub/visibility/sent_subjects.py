"""Which statuses and comments the streams with a private view were sent, because their removal must reach them too.

The streams of a process share one index from a status or comment to the streams that were sent it. So a `delete` asks
these streams, however many others are connected. The index only proposes them. Each stream decides by its own memory.
"""

from array import array
from collections import deque
from itertools import count

MAX_REMEMBERED_SUBJECTS = 4096
"""Number of delivered statuses and comments that a stream remembers, the latest ones."""

COMPACT_AFTER = 256
"""Number of forgotten subjects after which a memory is made anew. A dict is searched from its beginning for its oldest
key, past all deleted ones: with up to 4,000 of them a delivery took 4 µs more."""


class SentSubjects:
    """The streams of one process that were sent a status or comment, by its id (its *subject*).

    The memory of a stream that ended is taken out of the index in small parts, by later deliveries and `sweep`. All at
    once would hold the event loop for a millisecond for each stream, and thousands may end together.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._memories: dict[int, dict[str, None]] = {}
        # The number of the only stream, or an array: how many streams have forgotten the subject, and the numbers of
        # those that were sent it. An array needs 8 bytes a stream, a set of objects 50 and a visit of each by the
        # garbage collector. The numbers of those that have forgotten it go when they are more than half.
        self._receivers: dict[str, int | array[int]] = {}
        self._ended: deque[dict[str, None]] = deque()

    def __len__(self) -> int:
        """The number of subjects that a stream, or one that ended lately, was sent."""
        return len(self._receivers)

    def new_memory(self) -> "SentMemory":
        """Return the memory of a new stream. It takes room in the index from its first subject until its `end`."""
        return SentMemory(self, next(self._numbers))

    def receivers_of(self, subject: str) -> list[int]:
        """Return the numbers of the streams that remember ``subject``. A number may come twice."""
        found = self._receivers.get(subject)
        if found is None:
            return []
        numbers = [found] if isinstance(found, int) else found[1:]
        return [number for number in numbers if subject in self._memories.get(number, ())]

    def add(self, subject: str, number: int) -> None:
        """Note that a stream was sent ``subject``, which its memory did not have."""
        receivers = self._receivers
        found = receivers.get(subject)
        if found is None:
            receivers[subject] = number
        elif type(found) is int:  # not isinstance, which is slower: this runs for every delivery
            receivers[subject] = array("q", (0, found, number))
        else:
            found.append(number)  # type: ignore[union-attr]  # mypy does not narrow by `type`
        if self._ended:
            self.sweep(2)  # so the index is smaller after it

    def begin(self, memory: "SentMemory") -> None:
        """Tell the index which dict holds the subjects that a stream remembers.

        Call it before the stream's first subject, and again if ``subjects`` is another dict.
        """
        self._memories[memory.number] = memory.subjects

    def forget(self, subject: str) -> None:
        """Note that a stream no longer remembers ``subject``, because it forgot the subject or has ended."""
        found = self._receivers[subject]
        holding = 0 if isinstance(found, int) else len(found) - found[0] - 2
        if isinstance(found, int) or not holding:
            del self._receivers[subject]
            return
        found[0] += 1
        if found[0] > holding + 8:
            # A stream that ended is not among `live`. It still counts in `holding`, until `sweep` comes to it.
            live = dict.fromkeys(self.receivers_of(subject))
            self._receivers[subject] = array("q", (len(live) - holding, *live))

    def end(self, memory: "SentMemory") -> None:
        """Forget a stream. `sweep` does the work later."""
        if self._memories.pop(memory.number, None) is not None:
            self._ended.append(memory.subjects)

    def sweep(self, most: int) -> None:
        """Take up to ``most`` subjects of ended streams out of the index."""
        ended = self._ended
        for _ in range(most):
            while ended and not ended[0]:
                ended.popleft()
            if not ended:
                return
            self.forget(ended[0].popitem()[0])


class SentMemory:
    """The subjects that one stream was sent lately. ``number`` names the stream in the index."""

    __slots__ = ("_forgotten_count", "_index", "_is_ended", "number", "subjects")

    def __init__(self, index: SentSubjects, number: int) -> None:
        self._index = index
        self.number = number
        self.subjects: dict[str, None] = {}
        self._is_ended = False
        self._forgotten_count = 0

    def __contains__(self, subject: str) -> bool:
        return subject in self.subjects

    def remember(self, subject: str) -> None:
        """Remember a subject, and forget the oldest one if there are too many. An ended memory changes no more."""
        subjects, before = self.subjects, len(self.subjects)
        subjects[subject] = None
        after = len(subjects)
        if before == after:
            return
        if before == 0:
            if self._is_ended:
                subjects.clear()
                return
            self._index.begin(self)
        self._index.add(subject, self.number)
        if after <= MAX_REMEMBERED_SUBJECTS:
            return
        forgotten = next(iter(subjects))
        del subjects[forgotten]
        self._index.forget(forgotten)
        self._forgotten_count += 1
        if self._forgotten_count == COMPACT_AFTER:
            self._forgotten_count = 0
            self.subjects = dict.fromkeys(subjects)
            self._index.begin(self)

    def end(self) -> None:
        """Forget all subjects of this stream, because it has ended or goes on with another view."""
        self._is_ended = True
        self._index.end(self)
        self.subjects = {}
