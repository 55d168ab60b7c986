"""The whole table of visibility, written by hand, against the function that decides for reads, streams and replays."""

from itertools import product

import pytest

from stream_server.events.visibility import Visibility, VisibilityFact, decide_visibility, visibility_table

SEEN = {"S": Visibility.VISIBLE, "q": Visibility.ON_REQUEST, ".": Visibility.HIDDEN}

VIEWERS = {
    "author": VisibilityFact.AUTHOR,
    "stranger": VisibilityFact.NONE,
    "follower": VisibilityFact.FOLLOWER,
    "muting": VisibilityFact.MUTED,
    "muting follower": VisibilityFact.FOLLOWER | VisibilityFact.MUTED,
    "blocking": VisibilityFact.BLOCKED,
    "blocked": VisibilityFact.BLOCKED,
    "blocked follower": VisibilityFact.BLOCKED | VisibilityFact.FOLLOWER,
    "blocked and muting": VisibilityFact.BLOCKED | VisibilityFact.MUTED,
}
"""The columns: who looks."""

PLACES = {
    "open": VisibilityFact.NONE,
    "open group, outside": VisibilityFact.NONE,
    "open group, inside": VisibilityFact.GROUP_MEMBER,
    "closed group, outside": VisibilityFact.PRIVATE_GROUP,
    "closed group, inside": VisibilityFact.PRIVATE_GROUP | VisibilityFact.GROUP_MEMBER,
    "message, outside": VisibilityFact.DIRECT_MESSAGE,
    "message, inside": VisibilityFact.DIRECT_MESSAGE | VisibilityFact.PARTICIPANT,
}
"""Where it was written, and whether the viewer is in there."""

AUTHORS = {"public": VisibilityFact.NONE, "protected": VisibilityFact.PROTECTED}

# The columns are VIEWERS, in their order: S shown, q seen when asked for, . hidden.
BY_HAND = """
public    | open                  | S S S q q . . . .
protected | open                  | S . S . q . . . .
public    | open group, outside   | S S S q q . . . .
protected | open group, outside   | S . S . q . . . .
public    | open group, inside    | S S S q q . . . .
protected | open group, inside    | S S S q q . . . .
public    | closed group, outside | S . . . . . . . .
protected | closed group, outside | S . . . . . . . .
public    | closed group, inside  | S S S q q . . . .
protected | closed group, inside  | S S S q q . . . .
public    | message, outside      | S . . . . . . . .
protected | message, outside      | S . . . . . . . .
public    | message, inside       | S S S q q . . . .
protected | message, inside       | S S S q q . . . .
"""
"""Of an author in good standing; what a suspended one wrote is hidden from all of them, the author too."""

Row = tuple[str, str, str, Visibility]


def rows() -> list[Row]:
    found = []
    for line in BY_HAND.strip().splitlines():
        author, place, marks = (part.strip() for part in line.split("|"))
        for viewer, mark in zip(VIEWERS, marks.split(" "), strict=True):
            found.append((author, place, viewer, SEEN[mark]))
    return found


def test_the_table_is_whole() -> None:
    """The table has each author in each place once, with every viewer."""
    named = [(author, place, viewer) for author, place, viewer, _ in rows()]
    assert sorted(named) == sorted(product(AUTHORS, PLACES, VIEWERS))


@pytest.mark.parametrize(("author", "place", "viewer", "seen"), rows())
def test_the_function_agrees_with_the_table(author: str, place: str, viewer: str, seen: Visibility) -> None:
    """The function also shows nothing of a suspended author."""
    facts = AUTHORS[author] | PLACES[place] | VIEWERS[viewer]
    assert decide_visibility(facts) is seen
    assert decide_visibility(facts | VisibilityFact.SUSPENDED) is Visibility.HIDDEN


def test_no_set_of_facts_is_left_out() -> None:
    """Scripts may look up any of the 1,024 combinations. An additional fact against a viewer never shows more."""
    answers = visibility_table()
    assert len(answers) == 1024
    for facts, digit in enumerate(answers):
        assert int(digit) == decide_visibility(facts)
        for against in (
            VisibilityFact.SUSPENDED,
            VisibilityFact.BLOCKED,
            VisibilityFact.MUTED,
            VisibilityFact.PROTECTED,
            VisibilityFact.PRIVATE_GROUP,
            VisibilityFact.DIRECT_MESSAGE,
        ):
            assert decide_visibility(facts | against) <= decide_visibility(facts)
        for for_ in (
            VisibilityFact.AUTHOR,
            VisibilityFact.FOLLOWER,
            VisibilityFact.GROUP_MEMBER,
            VisibilityFact.PARTICIPANT,
        ):
            assert decide_visibility(facts | for_) >= decide_visibility(facts)


def test_following_matters_for_protected_authors_only() -> None:
    """Scripts read whether the viewer follows an author only if the author is protected."""
    table = visibility_table()
    for facts in range(len(table)):
        if not facts & VisibilityFact.PROTECTED:
            assert table[facts] == table[facts | VisibilityFact.FOLLOWER]


def test_who_sees_a_text_of_its_author_wants_the_authors_notifications() -> None:
    """Scripts do not ask again whether a user who sees a text wants to be told of it."""
    of_place = VisibilityFact.PRIVATE_GROUP | VisibilityFact.GROUP_MEMBER | VisibilityFact.PROTECTED
    for facts, digit in enumerate(visibility_table()):
        if int(digit) == Visibility.VISIBLE and not facts & VisibilityFact.DIRECT_MESSAGE:
            assert decide_visibility(facts & ~of_place) is Visibility.VISIBLE
