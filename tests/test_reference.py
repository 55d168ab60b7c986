"""The reference implementation agrees with the documented checks."""

import re
from typing import Any

import pytest

from tests import reference

BY_HAND = {"id": "1", "uid": "7", "in_reply_to": None, "origin": None, "location": None, "place": None, "lang": "en"}

# Twitter's page on `track` (26 cells of its table and 3 remarks): the term, a post, and whether it matches.
DOCUMENTED = [
    ("Twitter", "TWITTER", True),
    ("Twitter", "twitter", True),
    ("Twitter", '"Twitter"', True),
    ("Twitter", "twitter.", True),
    ("Twitter", "#twitter", True),
    ("Twitter", "@twitter", True),
    ("Twitter", "http://twitter.com", True),
    ("Twitter", "TwitterTracker", False),
    ("Twitter", "#newtwitter", False),
    ("Twitter\u2019s", "I like Twitter\u2019s new design", True),
    ("Twitter\u2019s", "Someday I\u2019d like to visit @Twitter\u2019s office", False),
    ("twitter api,twitter streaming", "The Twitter API is awesome", True),
    ("twitter api,twitter streaming", "The twitter streaming service is fast", True),
    ("twitter api,twitter streaming", "Twitter has a streaming API", True),
    ("twitter api,twitter streaming", "I\u2019m new to Twitter", False),
    ("example.com", "Someday I will visit example.com", True),
    ("example.com", "There is no example.com/foobarbaz", False),
    ("example.com/foobarbaz", "example.com/foobarbaz", True),
    ("example.com/foobarbaz", "www.example.com/foobarbaz", True),
    ("example.com/foobarbaz", "example.com", False),
    ("www.example.com/foobarbaz", "www.example.com/foobarbaz", False),
    ("example com", "example.com", True),
    ("example com", "www.example.com", True),
    ("example com", "foo.example.com", True),
    ("example com", "foo.example.com/bar", True),
    ("example com", "I hope my house is merely another example of a dot com boom!", True),
    ("hello", "hello world", True),
    ("hello", "my brother says hello.", True),
    ("touché", "touche", False),
]

OWN = [
    ("hello.", "my brother says hello.", True),
    ("hello.", "hello world", False),
    ("C#", "I like C#, and F#", True),
    ("C#", "I like C", False),
    ("c++", "C++: old, but quick", True),
    (".NET", "the (.NET) runtime", True),
    (".NET", "the net", False),
    ("help!", "Help!!", True),
    ("U.S.", "the U.S. economy", True),
    ("U.S.", "the U.S.A.", False),
    ("+1", "+1 from me", True),
    ("+1", "1+1", False),
    ("+1", "+10", False),
    ("50%", "50%-off", True),
    ("50%", "150%", False),
    ("$100", "only $100!", True),
    (":room", "the :room: is free", True),
    ("covid-19", "COVID-19-related", True),
    ("covid-19", "COVID-19's end", True),
    ("covid-19", "covid 19", False),
    ("covid-1", "COVID-19", False),
    ("#twitter", "twitter", False),
    ("#twitter", "so #Twitter", True),
    ("@twitter", "so #twitter", False),
    ("$twtr", "buy $TWTR", True),
    ("helm's-alee", "cried helm's-alee!", True),
    ("alee", "cried helm's-alee!", True),
    ("helm\u2019s-alee", "cried helm's-alee!", False),
    ("s", "Someday I\u2019d like to visit @Twitter\u2019s office", True),
    ("under_score", "(under_score)", True),
    ("under", "(under_score)", False),
    ("touche\u0301", "touché", True),
    ("STRASSE", "straße", True),
    ("istanbul", "İSTANBUL", True),
    ("İstanbul", "istanbul", True),
    ("kar\u0131n", "karin", False),
    ("हिन्दी", "यह हिन्दी है", True),
    ("\uff04twtr", "buy $TWTR", True),
    ("$100", "only \uff04100!", True),
]

EMOJI = [
    ("😍", "love😍😍", True),
    ("love😍", "I love😍!", True),
    ("👍🏽", "yes 👍🏽", True),
    ("👍", "yes 👍🏽", False),
    ("👨", "the 👨\u200d👩\u200d👧", False),
    ("👨\u200d👩\u200d👧", "the 👨\u200d👩\u200d👧", True),
    ("1\ufe0f\u20e3", "step 1\ufe0f\u20e32\ufe0f\u20e3", True),
    ("1", "step 1\ufe0f\u20e3", False),
    ("🇩🇪", "🇩🇪🇫🇷", True),
    ("🇪🇫", "🇩🇪🇫🇷", False),
    ("🏴", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", False),
    ("❤", "I ❤\ufe0f tea", True),
    ("❤\ufe0f", "I ❤\ufe0e tea", True),
    ("#\ufe0f\u20e3", "press #\ufe0f\u20e3", True),
    ("°C", "20°C today", True),
    ("c", "20°C today", True),
    ("°C", "20°F today", False),
]

INVISIBLE = [
    ("tea", "t\u00adea", True),
    ("t\u00adea", "tea", True),
    ("tea", "t\u2060ea", True),
    ("tea", "\u200ftea\u200e!", True),
    ("tea", "tea\u200b", True),
    ("tea \ufe0f", "tea", True),
    ("ខ្មែរភាសា", "ខ្មែរ\u200bភាសា", True),
    ("ខ្មែរ\u200bភាសា", "ខ្មែរភាសា", True),
    ("ข่าวไทย", "ข่าว\u200bไทย", True),
    ("မြန်မာ\u200bစာ", "မြန်မာစာ", True),
    ("کتاب", "کتاب\u200c خوب", True),
    ("کتاب\u200c", "کتاب خوب", True),
    ("می\u200cشود", "می\u200cشود", True),
    ("میشود", "می\u200cشود", False),
    ("葛飾", "葛\U000e0100飾区", True),
    ("\ufe0f", "❤\ufe0f", False),
]

UNSPACED = [
    ("東京", "東京", True),
    ("東京", "東京タワーに行った", True),
    ("京", "東京タワー", True),
    ("タワー", "東京タワーに行った", True),
    ("東京タワーに行った", "昨日、東京タワーに行った。", True),
    ("京都", "東京と都", False),
    ("東京", "東 京", False),
    ("東京", "東、京", False),
    ("タワーに", "東京タワー#に", False),
    ("大阪 東京", "東京から大阪", True),
    ("iphone", "iPhoneを買った", True),
    ("iphoneを", "iPhoneを買った", True),
    ("phone", "iPhoneを買った", False),
    ("mail", "e-mailを送る", True),
    ("e-mail", "e-mailを送る", True),
    ("3", "3月", True),
    ("3月", "2023年3月", True),
    ("東京", "(東京)", True),
    ("東京!", "東京!行こう", True),
    ("東京・大阪", "東京・大阪", True),
    ("東京・大阪", "東京大阪", False),
    ("C#", "C#を学ぶ", True),
    ("e-mailを", "e-mailを送る", True),
    ("東京", "#東京タワー", True),
    ("iphone", "#iPhoneケース", True),
    ("ケース", "#iPhoneケース", True),
    ("#iphone", "#iPhoneケース", False),
    ("#東京", "#東京タワー", False),
    ("#東京タワー", "#東京タワー", True),
    ("#東京", "東京", False),
    ("สวัสดี", "สวัสดีครับ", True),
    ("ครับ", "สวัสดีครับ", True),
    ("ລາວ", "ພາສາລາວ", True),
    ("ខ្មែរ", "ភាសាខ្មែរ", True),
    ("မြန်မာ", "မြန်မာဘာသာ", True),
    ("ガ", "カ\u3099ラス", True),
    ("북", "북한", False),
    ("हिन्दी", "हिन्दीभाषा", False),
]


def said(message: str, **more: Any) -> dict[str, Any]:
    """Return a status as the API returns it, with the entities that the texts above need."""
    urls = [m.span() for m in re.finditer(r"\b(https?://)?([a-z0-9-]+\.)+com(/\w+)?", message)]
    entities = {
        "hashtags": [{"text": m[1], "indices": list(m.span())} for m in re.finditer(r"(?<!\w)#(\w+)", message)],
        "mentions": [{"login": m[1], "indices": list(m.span())} for m in re.finditer(r"@(\w+)", message)],
        "cashtags": [{"text": m[1], "indices": list(m.span())} for m in re.finditer(r"\$([A-Z]+)", message)],
        "urls": [{"expanded_url": message[a:b], "display_url": message[a:b], "indices": [a, b]} for a, b in urls],
    }
    return BY_HAND | {"message": message, "entities": entities} | more


@pytest.mark.parametrize(("track", "message", "matches"), DOCUMENTED + OWN + EMOJI + INVISIBLE + UNSPACED)
def test_track_is_as_documented(track: str, message: str, matches: bool) -> None:  # noqa: FBT001 - a row of a table
    """Every documented cell, and each refinement of the design, holds for the reference."""
    assert reference.tracked(said(message), track) is matches
