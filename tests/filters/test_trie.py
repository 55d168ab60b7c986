"""The trie finds every clause that lies within a set of keys, and no other."""

from filters.compact_set import MAX_TUPLE_ITEMS
from filters.trie import Trie


def clause(text: str) -> frozenset[str]:
    """The clause of these words."""
    return frozenset(text.split())


def found(trie: Trie[int], text: str) -> set[int]:
    """What lies within these words."""
    proven, asked = set[int](), set[int]()
    trie.find(clause(text), proven, asked)
    assert not asked
    return proven


def filled() -> Trie[int]:
    """Clauses that share beginnings, ends, and whole."""
    trie: Trie[int] = Trie()
    for item, text in enumerate(["tea", "tea milk", "tea milk sugar", "milk", "tea", "milk sugar"]):
        trie.add(clause(text), item, exact=True)
    return trie


def test_all_clauses_within_are_found() -> None:
    """Shorter and longer ones, those that share a path and those that share everything."""
    trie = filled()
    assert found(trie, "tea milk and sugar") == {0, 1, 2, 3, 4, 5}
    assert found(trie, "sugar") == set()
    assert found(trie, "sugar tea") == {0, 4}
    assert found(trie, "milk sugar") == {3, 5}


def test_what_is_removed_is_gone_and_leaves_nothing() -> None:
    """One of two items of a clause may go, a short clause out of a long one's path, and in the end all."""
    trie = filled()
    trie.remove(clause("tea"), 0, exact=True)
    trie.remove(clause("tea milk"), 1, exact=True)
    assert found(trie, "tea milk sugar") == {2, 3, 4, 5}
    for item, text in ((2, "tea milk sugar"), (3, "milk"), (4, "tea"), (5, "milk sugar")):
        assert trie
        trie.remove(clause(text), item, exact=True)
    assert not trie
    assert not trie.children


def test_removing_what_is_not_there_does_nothing() -> None:
    """Neither an unknown clause, nor the beginning of a known one, nor a stranger's item."""
    trie = filled()
    for item, text in ((9, "coffee"), (9, "milk"), (9, "sugar"), (9, "tea milk"), (9, "tea milk sugar honey")):
        trie.remove(clause(text), item, exact=True)
    trie.remove(clause("tea a"), 0, exact=True)  # an item of the beginning, not of the whole
    assert found(trie, "tea milk sugar") == {0, 1, 2, 3, 4, 5}


def test_a_clause_may_become_the_beginning_of_another() -> None:
    """What ended there goes on ending there."""
    trie: Trie[int] = Trie()
    trie.add(clause("tea"), 0, exact=True)
    trie.add(clause("tea a"), 1, exact=True)
    assert found(trie, "tea") == {0}
    assert found(trie, "a tea") == {0, 1}


def test_the_empty_clause_is_always_within() -> None:
    """Nothing is asked of the keys, so every set of keys will do."""
    trie: Trie[int] = Trie()
    trie.add(frozenset(), 1, exact=True)
    assert found(trie, "") == found(trie, "anything") == {1}
    trie.remove(frozenset(), 1, exact=True)
    assert not trie


def test_a_hint_is_kept_apart_from_proof() -> None:
    """Under one clause some need not be asked and some must; each goes by itself, and the last leaves nothing."""
    trie: Trie[int] = Trie()
    for text in ("tea", "tea milk", ""):
        trie.add(clause(text), 1, exact=True)
        trie.add(clause(text), 2, exact=False)
        trie.add(clause(text), 3, exact=False)
    proven, asked = set[int](), set[int]()
    trie.find(clause("milk tea"), proven, asked)
    assert (proven, asked) == ({1}, {2, 3})
    for text in ("", "tea milk", "tea"):
        for item in (2, 3):
            trie.remove(clause(text), item, exact=True)  # is not there
            trie.remove(clause(text), item, exact=False)
    assert found(trie, "milk tea") == {1}
    for text in ("tea", "tea milk", ""):
        trie.remove(clause(text), 1, exact=False)  # is not there either
        assert found(trie, "milk tea") == {1}
    for text in ("tea", "tea milk", ""):
        assert trie
        trie.remove(clause(text), 1, exact=True)
    assert not trie


def test_a_hint_outlives_the_proof_beside_it() -> None:
    """Where both end in one place, the one goes and the other stays."""
    trie: Trie[int] = Trie()
    trie.add(clause("tea"), 1, exact=True)
    trie.add(clause("tea"), 2, exact=False)
    trie.remove(clause("tea"), 1, exact=True)
    proven, asked = set[int](), set[int]()
    trie.find(clause("tea"), proven, asked)
    assert (proven, asked) == (set(), {2})


def test_many_items_of_a_clause_are_like_few() -> None:
    """Whether they are kept as a tuple or as a set, each comes once and goes once."""
    trie: Trie[int] = Trie()
    many = MAX_TUPLE_ITEMS * 3
    for item in (*range(many), *range(many)):
        trie.add(clause("tea"), item, exact=True)
    assert found(trie, "tea") == set(range(many))
    for item in range(many):
        trie.remove(clause("tea"), item, exact=True)
        assert found(trie, "tea") == set(range(item + 1, many))
    assert not trie
