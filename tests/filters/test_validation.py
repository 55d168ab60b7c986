"""Texts are valid entities as by twitter-text."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.filters.data import sections
from tests.filters.entity_cases import VALID
from tests.filters.text_validation import is_hashtag, is_list, is_login, is_url
from tests.growth import assert_linear

VALIDATE: dict[str, Callable[[str], bool]] = {
    "usernames": is_login,
    "lists": is_list,
    "hashtags": is_hashtag,
    "urls": is_url,
    "urls_without_protocol": partial(is_url, protocol=False),
}


@pytest.mark.parametrize("section", VALIDATE)
def test_each_section_by_cases_of_our_own(section: str) -> None:
    assert [text for text, valid in VALID[section] if VALIDATE[section](text) is not valid] == []


@pytest.mark.parametrize("section", VALIDATE)
def test_validation_conforms(section: str) -> None:
    cases = sections("validate.yml")[section]
    assert cases
    assert [case for case in cases if VALIDATE[section](case["text"]) is not case["expected"]] == []


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("http://example.com:80", True),
        ("http://example.com:", False),
        ("http://example.com:123456", False),
        ("http://example", False),
        ("http://example.c0m", True),
        ("http://example.com-", False),
        ("http://", False),
        ("http://.com", False),
        ("http://a..com", False),
        ("http://a_b.com", False),
        ("http://_a.b.com", False),
        ("http://[::1]/", True),
        ("http://[::g]/", False),
        ("http://127.0.0.1", True),
        ("http://user@example.com", True),
        ("http://us er@example.com", False),
        ("http://example.com/%zz", False),
        ("http://example.com/a b", False),
        ("http://example.com/?a\n", False),
        ("http://日本\u3000.com", False),
        ("example.com", False),
        ("", False),
    ],
)
def test_links_of_our_own_cases(text: str, valid: bool) -> None:  # noqa: FBT001 - a row of a table
    assert is_url(text) is valid


def test_the_protocol_is_optional_and_limited() -> None:
    assert is_url("http://example.com", protocol=False)
    assert not is_url("ftp://example.com", protocol=False)
    assert not is_url("//example.com", protocol=False)


@pytest.mark.parametrize(("check", "one"), [(is_login, "@user"), (is_list, "@user/list"), (is_hashtag, "#tag")])
def test_an_entity_with_other_text_is_invalid(check: Callable[[str], bool], one: str) -> None:
    assert check(one)
    assert not any(map(check, ["", f"{one} {one}", f"{one} ", f" {one}", f"{one}.", one[1:]]))


@pytest.mark.parametrize("piece", ["a", "a.", "a-", "%2", "_", "é", "@", ":1", "/?", "[", "1."])
def test_no_text_makes_validation_slow(piece: str) -> None:
    def validate(size: int) -> None:
        text = "http://" + piece * size
        assert [check(text) for check in (is_login, is_list, is_hashtag)] == [False] * 3
        is_url(text)
        is_url(text + " ", protocol=False)

    assert_linear(validate, 32_000)
