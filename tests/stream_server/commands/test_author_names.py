"""The logins and names of a recording's authors."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_server.commands.recording import LOGIN_PATTERN, login_of_author, name_of_author


@given(st.text(min_size=1))
def test_every_author_gets_a_valid_login_and_name(author: str) -> None:
    assert LOGIN_PATTERN.fullmatch(login_of_author(author))
    assert login_of_author(author) == login_of_author(author)
    shown = name_of_author(author)
    assert 1 <= len(shown) <= 50
    assert shown.strip()
    assert not any(unicodedata.category(c) in {"Cc", "Cs"} for c in shown)


def test_a_valid_name_is_its_own_login() -> None:
    assert login_of_author("Ada_1") == "Ada_1"


@pytest.mark.parametrize(("one", "other"), [("a b", "a_b"), ("a b", "a-b"), ("é", "è"), ("x" * 21, "x" * 22)])
def test_different_authors_get_different_logins(one: str, other: str) -> None:
    assert login_of_author(one).lower() != login_of_author(other).lower()
