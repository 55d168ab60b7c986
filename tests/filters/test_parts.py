"""The filter of one reader of a shared subscription."""

import random
from hashlib import blake2b

import pytest

from filters.error import ParameterError
from filters.event import Event
from filters.parts import Parts
from filters.registry import Registry
from filters.sample import Firehose
from filters.subscription import Subscription

AUTHORS = [str(7_000_000_000 + at) for at in range(3000)]


def part_of(author: str, count: int) -> int:
    """The rule of the page, written a second time: it must hold for ever, or events would be lost in an upgrade."""
    digest = blake2b(author.encode(), key=b"stream-server subscription part").digest()
    return int.from_bytes(digest[:8], "big") % count


@pytest.mark.parametrize("count", [1, 2, 8, 64])
def test_each_author_is_in_one_part_and_the_parts_are_about_equal(count: int) -> None:
    parts = [Parts(count, {at: (1, 0, 1)}) for at in range(count)]
    sizes = [0] * count
    for author in AUTHORS:
        event = Event("post", author=author)
        matching = [at for at, part in enumerate(parts) if part.matches(event)]
        assert matching == [part_of(author, count)]
        sizes[matching[0]] += 1
    assert max(sizes) < 2 * len(AUTHORS) / count
    assert sum(part.matches(Event("user_update")) for part in parts) == 1, "an event without an author has a part too"


def test_what_is_not_behind_the_cursor_of_its_part_is_handled() -> None:
    chance = random.Random(5)
    for _ in range(50):
        cursors = {at: (chance.randint(1, 9), 0, 1) for at in chance.sample(range(8), chance.randint(1, 8))}
        parts = Parts(8, cursors)
        for author in AUTHORS[:100]:
            event, at = Event("post", author=author), (chance.randint(1, 9), 0, 1)
            if parts.matches(event):
                assert parts.is_handled(event, at) == (at <= cursors[part_of(author, 8)])


def test_no_part_matches_nothing_and_a_client_cannot_name_it() -> None:
    assert not any(Parts(8, {}).matches(Event("post", author=author)) for author in AUTHORS[:50])
    assert "parts" not in Registry.from_entry_points().names()
    with pytest.raises(ParameterError):
        Parts.parse("1")


def test_a_narrowed_subscription_keeps_its_filters() -> None:
    whole = Subscription([Firehose()], explain=True)
    narrowed = whole.narrowed(Parts(2, {0: (1, 0, 1)}))
    assert (narrowed.bases, narrowed.explain, narrowed.viewer_independent) == (whole.bases, True, True)
    assert narrowed.find_parts() is not None
    assert whole.find_parts() is None
    others = [whole, whole.narrowed(Parts(2, {1: (1, 0, 1)})), whole.narrowed(Parts(2, {0: (2, 0, 2)}))]
    assert narrowed not in others
    assert narrowed == whole.narrowed(Parts(2, {0: (1, 0, 1)}))
