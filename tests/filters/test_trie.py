"""The trie finds every clause that lies within a set of keys, and no other."""

from filters.trie import Trie


def clause(text: str) -> frozenset[str]:
    """The clause of these words."""
    return frozenset(text.split())


def found(trie: Trie[int], text: str) -> set[int]:
    """What lies within these words."""
    items: set[int] = set()
    trie.find(clause(text), items)
    return items


def filled() -> Trie[int]:
    """Clauses that share beginnings, ends, and whole."""
    trie: Trie[int] = Trie()
    for item, text in enumerate(["tea", "tea milk", "tea milk sugar", "milk", "tea", "milk sugar"]):
        trie.add(clause(text), item)
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
    trie.remove(clause("tea"), 0)
    trie.remove(clause("tea milk"), 1)
    assert found(trie, "tea milk sugar") == {2, 3, 4, 5}
    for item, text in ((2, "tea milk sugar"), (3, "milk"), (4, "tea"), (5, "milk sugar")):
        assert trie
        trie.remove(clause(text), item)
    assert not trie
    assert not trie.branches


def test_removing_what_is_not_there_does_nothing() -> None:
    """Neither an unknown clause, nor the beginning of a known one, nor a stranger's item."""
    trie = filled()
    for item, text in ((9, "coffee"), (9, "milk"), (9, "sugar"), (9, "tea milk"), (9, "tea milk sugar honey")):
        trie.remove(clause(text), item)
    assert found(trie, "tea milk sugar") == {0, 1, 2, 3, 4, 5}


def test_the_empty_clause_is_always_within() -> None:
    """Nothing is asked of the keys, so every set of keys will do."""
    trie: Trie[int] = Trie()
    trie.add(frozenset(), 1)
    assert found(trie, "") == found(trie, "anything") == {1}
    trie.remove(frozenset(), 1)
    assert not trie
