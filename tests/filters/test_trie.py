"""The trie finds every clause within a set of keys, and no other."""

from filters.inverted_lists import MAX_TUPLE_ITEMS, Trie


def clause(text: str) -> frozenset[str]:
    return frozenset(text.split())


def found(trie: Trie[int], text: str) -> set[int]:
    proven, asked = set[int](), set[int]()
    trie.find(clause(text), proven, asked)
    assert not asked
    return proven


def filled() -> Trie[int]:
    """Clauses that share beginnings, ends, and all of their words."""
    trie: Trie[int] = Trie()
    for item, text in enumerate(["tea", "tea milk", "tea milk sugar", "milk", "tea", "milk sugar"]):
        trie.add(clause(text), item, exact=True)
    return trie


def test_all_clauses_within_are_found() -> None:
    trie = filled()
    assert found(trie, "tea milk and sugar") == {0, 1, 2, 3, 4, 5}
    assert found(trie, "sugar") == set()
    assert found(trie, "sugar tea") == {0, 4}
    assert found(trie, "milk sugar") == {3, 5}


def test_removed_clauses_leave_nothing() -> None:
    trie = filled()
    trie.remove(clause("tea"), 0, exact=True)
    trie.remove(clause("tea milk"), 1, exact=True)
    assert found(trie, "tea milk sugar") == {2, 3, 4, 5}
    for item, text in ((2, "tea milk sugar"), (3, "milk"), (4, "tea"), (5, "milk sugar")):
        assert trie
        trie.remove(clause(text), item, exact=True)
    assert not trie
    assert not trie.children


def test_removing_an_unknown_clause_does_nothing() -> None:
    trie = filled()
    for item, text in ((9, "coffee"), (9, "milk"), (9, "sugar"), (9, "tea milk"), (9, "tea milk sugar honey")):
        trie.remove(clause(text), item, exact=True)
    trie.remove(clause("tea a"), 0, exact=True)  # an item of the beginning, not of the whole
    assert found(trie, "tea milk sugar") == {0, 1, 2, 3, 4, 5}


def test_a_clause_may_become_the_beginning_of_another() -> None:
    trie: Trie[int] = Trie()
    trie.add(clause("tea"), 0, exact=True)
    trie.add(clause("tea a"), 1, exact=True)
    assert found(trie, "tea") == {0}
    assert found(trie, "a tea") == {0, 1}


def test_the_empty_clause_is_always_within() -> None:
    trie: Trie[int] = Trie()
    trie.add(frozenset(), 1, exact=True)
    assert found(trie, "") == found(trie, "anything") == {1}
    trie.remove(frozenset(), 1, exact=True)
    assert not trie


def test_candidates_are_separate_from_exact_items() -> None:
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


def test_a_candidate_outlives_an_exact_item_of_its_clause() -> None:
    trie: Trie[int] = Trie()
    trie.add(clause("tea"), 1, exact=True)
    trie.add(clause("tea"), 2, exact=False)
    trie.remove(clause("tea"), 1, exact=True)
    proven, asked = set[int](), set[int]()
    trie.find(clause("tea"), proven, asked)
    assert (proven, asked) == (set(), {2})


def test_many_items_of_a_clause_are_like_few() -> None:
    trie: Trie[int] = Trie()
    many = MAX_TUPLE_ITEMS * 3
    for item in (*range(many), *range(many)):
        trie.add(clause("tea"), item, exact=True)
    assert found(trie, "tea") == set(range(many))
    for item in range(many):
        trie.remove(clause("tea"), item, exact=True)
        assert found(trie, "tea") == set(range(item + 1, many))
    assert not trie
