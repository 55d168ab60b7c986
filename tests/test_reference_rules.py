"""The reference implementation of the rules agrees with the documents."""

from typing import Any

import pytest

from tests import reference_rules
from tests.reference_rules import NoRule
from tests.test_reference import said

AUTHOR = {"login": "Anna", "bio": "Tea, and e-mail.", "followers": 20, "following": 0, "posts": 7}

BERLIN = {"lon": 13.4, "lat": 52.5}


def status(message: str = "", **more: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "login": "Anna",
        "in_reply_to_uid": None,
        "media": [],
        "conversation": "1",
        "meta": None,
        "group": None,
    }
    return said(message, **plain | more)


def repost(message: str, **more: Any) -> dict[str, Any]:
    return status("", origin="9", original=status(message, id="9", uid="8", login="Bob", **more))


def quote(message: str, original: str) -> dict[str, Any]:
    return status(message, origin="9", original=status(original, id="9", uid="8", login="Bob"))


PLACE = {"name": "Berlin", "country": "DE", "box": [13.3, 52.4, 13.5, 52.6]}

# What the documents say of each operator: the rule, a status, and whether it matches.
DOCUMENTED = [
    ("coca", status("I like coca-cola"), True),
    ("TEA", status("more tea."), True),
    ("tea", status("teapot"), False),
    ("touche", status("touché"), False),
    ("tea", status("so #Tea"), True),
    ("tea", status("see tea.com"), True),
    ("tea", quote("look", "cold tea"), True),
    ("tea", repost("cold tea"), True),
    ("😍", status("love😍😍"), True),
    ("東京", status("東京タワーに行った"), True),
    ('"cold tea"', status("a COLD, tea!"), True),
    ('"cold tea"', status("tea cold"), False),
    ('"cold tea"', status("cold green tea"), False),
    ('"coca-cola"', status("I like Coca Cola"), True),
    ('"cold tea"', quote("cold", "tea"), False),
    ('"cold tea"~1', status("cold green tea"), True),
    ('"cold tea"~1', status("cold and green tea"), False),
    ('"cold tea"~1', status("tea cold"), False),
    ('"cold tea"~2', status("tea cold"), True),
    ('"cold tea"~2', status("tea so cold"), False),
    ('"cold tea"~3', status("tea so cold"), True),
    ('"tea tea"~6', status("tea"), False),
    ('"a b c"~1', status("a x b c"), True),
    ('"a b c"~1', status("a x b x c"), False),
    ('"a b c"~2', status("a c b"), True),
    ('"a b c"~3', status("c b a"), False),
    ('"a b c"~4', status("c b a"), True),
    ("#tea", status("so #Tea"), True),
    ("#tea", status("so tea"), False),
    ("@bob", status("hello @Bob"), True),
    ("@bob", status("hello #bob"), False),
    ("$twtr", status("buy $TWTR"), True),
    ("from:7", status("x"), True),
    ("from:ANNA", status("x"), True),
    ("from:bob", repost("x"), False),
    ("to:8", status("x", in_reply_to="5", in_reply_to_uid="8"), True),
    ("to:bob", status("x", in_reply_to="5", in_reply_to_uid="8"), True),
    ("to:bob", status("@bob x"), False),
    ("retweets_of:bob", repost("x"), True),
    ("retweets_of_user:8", repost("x"), True),
    ("reposts_of:bob", quote("x", "y"), False),
    ("url:example", status("see example.com/a"), True),
    ('url:"example.com/a"', status("see www.example.com/a"), True),
    ('url:"example.com/b"', status("see example.com/a"), False),
    ("conversation_id:1", status("x"), True),
    ("conversation_id:2", status("x"), False),
    ("tea lang:en", status("tea", lang="en-GB"), True),
    ("tea lang:en-GB", status("tea", lang="en"), False),
    ("tea lang:und", status("tea", lang="und"), True),
    ("place:berlin", status("x", place=PLACE), True),
    ("place:berl", status("x", place=PLACE), False),
    ("place_country:de", status("x", place=PLACE), True),
    ("place_country:de", repost("x", place=PLACE), False),
    ("point_radius:[13.4 52.5 1km]", status("x", location=BERLIN), True),
    ("point_radius:[13.4 52.6 10mi]", status("x", location=BERLIN), True),
    ("point_radius:[13.4 52.6 10km]", status("x", location=BERLIN), False),
    ("point_radius:[13.4 52.5 1km]", status("x", place=PLACE), False),
    ("bounding_box:[13.3 52.4 13.5 52.6]", status("x", location=BERLIN), True),
    ("bounding_box:[13.3 52.4 13.5 52.6]", repost("x", location=BERLIN), False),
    ("bounding_box:[13.3 52.4 13.5 52.6]", status("x", place=PLACE), True),
    ("bounding_box:[13.4 52.4 13.5 52.6]", status("x", place=PLACE), False),
    ("tea is:reply", status("tea", in_reply_to="5", in_reply_to_uid="8"), True),
    ("tea is:retweet", repost("tea"), True),
    ("tea is:repost", quote("tea", "x"), False),
    ("tea is:quote", quote("tea", "x"), True),
    ("tea has:hashtags", status("#tea"), True),
    ("tea has:cashtags", status("tea $TWTR"), True),
    ("tea has:links", status("tea.com"), True),
    ("tea has:mentions", status("@tea"), True),
    ("tea has:media", status("tea", media=[{"url": "x", "type": "audio"}]), True),
    ("tea has:images", status("tea", media=[{"url": "x", "type": "audio"}]), False),
    ("tea has:video_link", status("tea", media=[{"url": "x", "type": "video"}]), True),
    ("tea has:geo", status("tea", location=BERLIN), True),
    ("tea has:geo", repost("tea", location=BERLIN), False),
    ("tea sample:100", status("tea"), True),
    ("tea followers_count:20..30", status("tea"), True),
    ("tea followers_count:21..", status("tea"), False),
    ("tea following_count:..0", status("tea"), True),
    ("tea posts_count:..6", status("tea"), False),
    ("tea tweets_count:7", status("tea"), True),
    ("tea tweets_count:6", status("tea"), True),
    ("tea tweets_count:8", status("tea"), False),
    ("bio:tea", status("x"), True),
    ('bio:"and e mail"', status("x"), True),
    ("bio:milk", status("x"), False),
    # What binds tighter, and what is denied.
    ("apple OR iphone ipad", status("apple"), True),
    ("apple OR iphone ipad", status("iphone"), False),
    ("ipad iphone OR android", status("android"), True),
    ("ipad iphone OR android", status("ipad"), False),
    ("(apple OR iphone) ipad", status("apple"), False),
    ("(apple OR iphone) ipad", status("apple ipad"), True),
    ("skiing -snow -day", status("skiing day"), False),
    ("skiing -snow -day", status("skiing"), True),
    ("tea -is:reply", status("tea"), True),
    ("or", status("this or that"), True),
]

REFUSED = [
    *(
        "",
        " ",
        "()",
        "tea OR",
        "OR tea",
        "tea OR OR milk",
        "(tea",
        "tea)",
        '"tea',
        '""',
        "-tea",
        "tea -(milk OR water)",
    ),
    *(
        "has:media",
        "has:links OR is:retweet",
        "tea OR has:media",
        "tea OR -milk",
        "-sample:5 tea",
        "tea OR milk sample:5",
    ),
    *("sample:0.99 tea", "sample:101 tea", "nothing:x", "from:", "is:odd tea", "coca-cola", "tea AND milk", "--tea"),
    *(
        '"cold tea"~7',
        "point_radius:[13.4 52.5 25mi]",
        "bounding_box:[13 52 14 53]",
        "bounding_box:[13.5 52 13.4 52.1]",
    ),
    *("followers_count:9..1 tea", "place_country:deu", "(" * 33 + "tea" + ")" * 33, "t" * 1025),
]

TAKEN = [
    *("tea (has:media OR is:reply)", "tea (milk OR -water)", "(tea sample:5) milk", "sample:1.25 tea", "((tea))"),
    *(
        "(" * 32 + "tea" + ")" * 32,
        "t" * 1024,
        "point_radius:[13.4 52.5 24.9mi]",
        "from:a OR to:a OR @a",
        "tea -has:links",
    ),
]


@pytest.mark.parametrize(("rule", "shown", "matches"), DOCUMENTED)
def test_operators_are_as_documented(rule: str, shown: dict[str, Any], matches: bool) -> None:  # noqa: FBT001 - a row of a table
    """Each operator, and each sentence on combining operators, holds for the reference."""
    facts = {"author": AUTHOR, "reply_to_login": "Bob" if shown["in_reply_to"] else None}
    assert reference_rules.matches(rule, shown, facts) is matches


@pytest.mark.parametrize("rule", REFUSED)
def test_an_invalid_rule_is_refused(rule: str) -> None:
    """The parser refuses wrong syntax, unknown operators, and rules that cannot stand alone."""
    with pytest.raises(NoRule):
        reference_rules.parsed(rule)


@pytest.mark.parametrize("rule", TAKEN)
def test_a_valid_rule_is_accepted(rule: str) -> None:
    """The parser accepts rules up to the limits, and operators that need another one beside them."""
    assert reference_rules.parsed(rule).standalone
