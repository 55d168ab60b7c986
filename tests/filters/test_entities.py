"""Entities are found as by twitter-text."""

from collections.abc import Callable
from typing import Any

import pytest

from filters.entities import Entities, extract_entities, find_mentions_and_lists, to_display_url
from tests.filters.data import sections
from tests.filters.entity_cases import EXTRACTED
from tests.growth import assert_linear
from tests.tiers import sample


def _logins(text: str) -> list[str]:
    return [mention.login for mention in extract_entities(text).mentions]


def _reply(text: str) -> str | None:
    """The login of a mention at the beginning of the text, after blanks."""
    mentions = extract_entities(text).mentions
    return mentions[0].login if mentions and not text[: mentions[0].indices[0]].strip() else None


def _urls(text: str) -> list[str]:
    return [url.url for url in extract_entities(text).urls]


def _hashtags(text: str) -> list[str]:
    return [tag.text for tag in extract_entities(text).hashtags]


def _cashtags(text: str) -> list[str]:
    return [tag.text for tag in extract_entities(text).cashtags]


def _lists(text: str) -> list[dict[str, Any]]:
    return [
        {"screen_name": mention.login, "list_slug": slug, "indices": list(mention.indices)}
        for mention, slug in find_mentions_and_lists(text)
    ]


def _placed_urls(text: str) -> list[dict[str, Any]]:
    return [{"url": url.url, "indices": list(url.indices)} for url in extract_entities(text).urls]


EXTRACT: dict[str, Callable[[str], Any]] = {
    "mentions": _logins,
    "mentions_with_indices": lambda text: [
        {"screen_name": mention.login, "indices": list(mention.indices)} for mention in extract_entities(text).mentions
    ],
    "mentions_or_lists_with_indices": _lists,
    "replies": _reply,
    "urls": _urls,
    "urls_with_indices": _placed_urls,
    "urls_with_directional_markers": _placed_urls,
    "tco_urls_with_params": _urls,
    "hashtags": _hashtags,
    "hashtags_from_astral": _hashtags,
    "hashtags_with_indices": lambda text: [
        {"hashtag": tag.text, "indices": list(tag.indices)} for tag in extract_entities(text).hashtags
    ],
    "cashtags": _cashtags,
    "cashtags_with_indices": lambda text: [
        {"cashtag": tag.text, "indices": list(tag.indices)} for tag in extract_entities(text).cashtags
    ],
}

TLDS = dict.fromkeys(("country", "generic"), _urls)


@pytest.mark.parametrize("section", EXTRACT)
def test_each_section_by_cases_of_our_own(section: str) -> None:
    wrong = [(text, found) for text, found in EXTRACTED[section] if EXTRACT[section](text) != found]
    assert [(text, found, EXTRACT[section](text)) for text, found in wrong] == []


@pytest.mark.parametrize("section", EXTRACT)
def test_extraction_conforms(section: str) -> None:
    cases = sections("extract.yml")[section]
    assert cases
    wrong = [case for case in cases if EXTRACT[section](case["text"]) != case["expected"]]
    assert wrong == []


def test_no_section_of_the_conformance_suite_is_left_out() -> None:
    assert set(sections("extract.yml")) == set(EXTRACT)


@pytest.mark.extended
@pytest.mark.parametrize("section", TLDS)
def test_every_top_level_domain_is_known(section: str) -> None:
    wrong = [case for case in sections("tlds.yml")[section] if TLDS[section](case["text"]) != case["expected"]]
    assert wrong == []


def test_indices_count_code_points() -> None:
    text = "😍 #tag @user $TWTR http://example.com/x"
    entities = extract_entities(text)
    found = [text[slice(*entity.indices)] for family in entities for entity in family]
    assert found == ["@user", "#tag", "$TWTR", "http://example.com/x"]
    assert entities.hashtags[0].indices == (2, 6)


def test_a_link_has_no_other_entities_inside() -> None:
    entities = extract_entities("http://example.com/#tag http://example.com/@user #other http://example.com/$TWTR @one")
    assert [len(family) for family in entities] == [1, 1, 0, 3]
    assert (entities.hashtags[0].text, entities.mentions[0].login) == ("other", "one")


def test_of_entities_that_overlap_the_first_counts() -> None:
    entities = extract_entities("#日本example.com #日本 example.com #日本http://example.com")
    assert [tag.text for tag in entities.hashtags] == ["日本example", "日本"]
    assert [url.url for url in entities.urls] == ["example.com", "http://example.com"]


def test_a_sign_inside_a_word_begins_no_entity() -> None:
    entities = extract_entities("#12 a#b x#c &#d me@one.invalid !@two RT@three (@four) #5e")
    assert [mention.login for mention in entities.mentions] == ["three", "four"]
    assert [tag.text for tag in entities.hashtags] == ["5e"]


def test_a_wide_sign_ends_a_link() -> None:
    entities = extract_entities("a.co/\uff20bob")
    assert (entities.urls[0].url, entities.mentions[0].login) == ("a.co/", "bob")


def test_a_link_has_an_expanded_and_a_displayed_form() -> None:
    bare, full = extract_entities("www.Example.com/Path/ HTTPS://www.example.com/").urls
    assert bare[:3] == ("www.Example.com/Path/", "Example.com/Path", "http://www.Example.com/Path/")
    assert full[:3] == ("HTTPS://www.example.com/", "example.com", "HTTPS://www.example.com/")


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("foo.com.", ["foo.com"]),
        ("wait...foo.com", []),
        ("sub_domain.twitter.com test_underscore.com", ["sub_domain.twitter.com"]),
        ("mail a.b@example.com or http://user@example.com", []),
        ("a.co/x(y(z)w)v) b", ["a.co/x(y(z)w)v"]),
        ("a.co:8080/x?y=1&z", ["a.co:8080/x?y=1&z"]),
        ("see a.co/x., (b.co/y): c.co/z!", ["a.co/x", "b.co/y", "c.co/z"]),
        ("a.co?", ["a.co"]),
        ("t.co/x?http://ßt.co/x", ["t.co/x?http://"]),
        ("t.co/x?http:// http://a.co", ["t.co/x?http://", "http://a.co"]),
        (f"{'x' * 63}.com {'x' * 64}.com", [f"{'x' * 63}.com"]),
        ("http://日本語.example.com中国語example.com", ["http://日本語.example.com中国語example.com"]),
        ("http://example.xn--p1ai/ http://example.xn--p1ai@", ["http://example.xn--p1ai/"]),
        ("www.xn-- www.xn--a http://a.xn---", []),
        (
            "https://t.co/?x=1 https://t.co?x=1 https://t.co/-a",
            ["https://t.co/?x=1", "https://t.co?x=1", "https://t.co/-a"],
        ),
        ("https://t.co/ab/?x=1 HTTPS://T.CO/a-b?x=1", ["https://t.co/ab", "HTTPS://T.CO/a"]),
        ("https://t.co:80/a-b", ["https://t.co:80/a-b"]),
        ("tidal.music a.kids example.アマゾン", ["tidal.music", "a.kids", "example.アマゾン"]),
    ],
)
def test_links_of_our_own_cases(text: str, urls: list[str]) -> None:
    assert _urls(text) == urls


def test_the_displayed_form_omits_any_scheme() -> None:
    assert to_display_url("ftp://www.example.com//") == "example.com"


def test_a_text_without_entities_has_none() -> None:
    assert extract_entities("just words, 10% of them. Really?") == Entities()


LONG = 1 << 16
REPEATED = [
    "a", "a.", "a-", "a_.", "a.co", "a.co ", "a.co/(", "a.co/((a)", "a.co?", "http://", "http://a", "http://t.co/a",
    " ", "a ", "ab. ", "é.com", "a.みんな", "あ.", "@", "@a", "@a/b", "RT@", "#", "#a", "#1", "$A", "$A.", "a.co/a.,!",
    "xn--.", "\u200d",
]  # fmt: skip


@pytest.mark.parametrize("piece", sample(REPEATED, lambda piece: piece in {"@a", "a.co/a.,!"}))
def test_no_text_makes_extraction_slow(piece: str) -> None:
    for end in ("", " ."):  # a text without a dot is searched for no link

        def extract(size: int, end: str = end) -> None:
            for family in extract_entities(piece * (size // len(piece)) + end):
                ends = [index for entity in family for index in entity.indices]
                assert ends == sorted(ends)

        assert_linear(extract, LONG)
