"""Cases of each operator, matching and not, for the tests and for the page on filters."""

from typing import Any, NamedTuple

from filters.entities import extract_entities
from filters.event import Event
from tests.filters.texts import post


class Case(NamedTuple):
    """A rule, a status in words and as an event, and whether the rule matches it."""

    rule: str
    what: str
    event: Event
    matches: bool


def _text(rule: str, text: str, *, matches: bool = True) -> Case:
    return Case(rule, f"`{text}`", post(text), matches)


def _quote(rule: str, text: str, quoted: str, *, matches: bool = True) -> Case:
    event = post(text, quoted_text=quoted, quoted_entities=extract_entities(quoted), forms=frozenset({"quote"}))
    return Case(rule, f"`{text}`, quoting `{quoted}`", event, matches)


def _fact(rule: str, what: str, *, matches: bool = True, text: str = "tea", **facts: Any) -> Case:
    return Case(rule, what, post(text, user_ids=frozenset(_user_ids(facts)), **facts), matches)


def _user_ids(facts: dict[str, Any]) -> list[str]:
    return [facts[name] for name in ("author", "reply_to", "reposted_author") if facts.get(name)]


ADA: dict[str, Any] = {"author": "7", "author_login": "Ada"}
BOB: dict[str, Any] = {"author": "8", "author_login": "bob"}
PARIS, VERSAILLES, BERLIN = (2.35, 48.86), (2.13, 48.80), (13.4, 52.5)
IN_PARIS, FRANCE = (2.30, 48.84, 2.40, 48.88), (-5.0, 42.0, 8.0, 51.0)
CIRCLE, BOX = "point_radius:[2.35 48.86 10km]", "bounding_box:[2.2 48.8 2.5 48.95]"
REPOST, QUOTE, REPLY = (frozenset({form}) for form in ("repost", "quote", "reply"))

WORDS = [
    _text("tea", "Tea, please!"),
    _text("tea", "#tea"),
    _text("tea", "@tea"),
    _text("tea", "http://example.com/tea"),
    _text("tea", "teapot", matches=False),
    _text("touché", "touche", matches=False),
    _text("😍", "tea😍"),
    _text("tea ❤ \ufe0f", "I ❤ tea"),
    _text("#\ufe0f\u20e3", "press #\ufe0f\u20e3"),
    _text("#\ufe0f\u20e3", "#tea", matches=False),
    _text("-\u200bmilk \u200btea\u2060 ", "t\u00adea"),
    _text("\u200b#tea", "#tea"),
    _text("milk OR\u200b tea", "tea"),
    _text('"tea"\u200b milk', "tea, milk"),
    _text("\uff04TEA", "buy \uff04tea"),
    _text("😍", "tea 😎", matches=False),
    _text("東京", "東京タワーに行った"),
    _text("東京タワー", "東京 タワー", matches=False),
    _quote("tea", "look", "green tea"),
    _quote("tea milk", "milk!", "green tea"),
    _quote("-tea look", "look", "green tea", matches=False),
    _text("#tea", "a #Tea"),
    _text("#tea", "tea", matches=False),
    _text("#tea", "#teatime", matches=False),
    _text("@ada", "to @Ada!"),
    _text("@ada", "ada", matches=False),
    _text("$tea", "buy $TEA"),
    _text("\uff04tea", "buy $TEA"),
    _text("$tea", "#tea", matches=False),
    _text("tea", "$TEA", matches=False),
]

PHRASES = [
    _text('"green tea"', "Green, tea."),
    _text('"green tea"', "tea, green", matches=False),
    _text('"green tea"', "green black tea", matches=False),
    _text('"cup of tea"', "cup tea of", matches=False),
    _text('"green-tea"', "green tea"),
    _text('"green tea"', "green $TEA", matches=False),
    _text('"green tea"', "green $TEA, tea", matches=False),
    _text('"buy $TEA now"', "Buy $TEA now!"),
    _text('"buy \uff04TEA now"', "buy $tea now"),
    _text('"buy $TEA now"', "buy tea now", matches=False),
    _text('"buy $TEA"', "buy #tea", matches=False),
    _text('"님이 말했다"', "@bob님이 말했다"),
    _text('"bob 님이"', "@bob님이 말했다"),
    _text('"@bob님이 말했다"', "@bob님이 말했다"),
    _text('"bob님이"', "@bob님이 말했다", matches=False),
    _text('"te\u00ada cup"', "tea c\u200bup"),
    _text('"❤ tea"', "❤\ufe0f tea\ufe0f"),
    _text('"caféwww.mint"', "caféwww.mint"),
    _text('"茶 мята"', "茶www.мята"),
    _text('"love green tea"', "I love #green tea"),
    _text('"東京タワー"', "昨日、東京タワーに行った"),
    _text('"東京タワー"', "東京のタワー", matches=False),
    _text('"東京"', "南東。京都", matches=False),
    _text('"東 京"', "南東。京都"),
    _text('"東京 タワー"', "東京タワー"),
    _text('"iphoneを"', "iPhone を", matches=False),
    _text('"visit example"', "visit https://www.example.com/tea"),
    _text('"visit www.example.com/tea now"', "visit http://example.com/tea now"),
    _text('"日本http://example.com"', "日本http://www.example.com"),
    _quote('"green tea"', "look", "a green tea"),
    _quote('"green tea"', "green", "tea", matches=False),
    _text('"tea cup"~2', "tea in a cup"),
    _text('"tea cup"~2', "tea in a large cup", matches=False),
    _text('"tea cup"~2', "cup tea"),
    _text('"tea cup"~1', "cup tea", matches=False),
    _text('"tea cup"~3', "cup of tea"),
    _text('"tea cup"~2', "cup of tea", matches=False),
    _text('"tea tea"~6', "tea", matches=False),
    _text('"a b c"~1', "a x b c"),
    _text('"a b c"~1', "a x b x c", matches=False),
]

PEOPLE = [
    _fact("from:7", "by 7", **ADA),
    _fact("from:7", "by 8", matches=False, **BOB),
    _fact("from:ada", "by Ada", **ADA),
    _fact("from:ada", "by bob, to Ada", matches=False, reply_to="7", reply_to_login="Ada", **BOB),
    _fact("from:8 -from:ada", "by bob", **BOB),
    _fact("to:7", "by 8, to 7", reply_to="7", reply_to_login="Ada", **BOB),
    _fact("to:ada", "by bob, to Ada", reply_to="7", reply_to_login="Ada", **BOB),
    _fact("to:ada", "by Ada, to bob", matches=False, reply_to="8", reply_to_login="bob", **ADA),
    _fact("to:ada", "by bob", matches=False, **BOB),
    _fact("retweets_of:ada", "bob reposts Ada", reposted_author="7", reposted_author_login="Ada", forms=REPOST, **BOB),
    _fact("reposts_of:7", "bob reposts Ada", reposted_author="7", reposted_author_login="Ada", forms=REPOST, **BOB),
    _fact(
        "retweets_of_user:bob",
        "bob reposts Ada",
        matches=False,
        reposted_author="7",
        reposted_author_login="Ada",
        **BOB,
    ),
    _fact("retweets_of:ada", "bob quotes Ada", matches=False, forms=QUOTE, **BOB),
    _fact("bio:barista", "by a barista", bio="Barista. Tea, too."),
    _fact('bio:"barista tea"', "by a barista", bio="Barista. Tea, too."),
    _fact('bio:"tea barista"', "by a barista", bio="Barista. Tea, too.", matches=False),
    _fact("bio:東京", "by an author with 東。京 in the bio", bio="東。京", matches=False),
    _fact("bio:東京", "by an author with 東京タワー in the bio", bio="東京タワー"),
    _fact("bio:😍", "by an author with 😍 in the bio", bio="tea😍"),
    _fact("bio:barista", "by an author without a bio", matches=False),
]

LINKS = [
    _text("url:tea", "see example.com/tea?x=1"),
    _text('url:"example.com/tea"', "see http://www.example.com/tea/green"),
    _text('url:"https://example.com/tea"', "see example.com/tea"),
    _text('url:"example.com/green"', "see example.com/tea/green", matches=False),
    _text("url:exam", "see example.com", matches=False),
    _text("url:tea", "tea, see example.com", matches=False),
    _text('url:"日本"', "http://日本.example.com"),
    _text('url:"日本"', "http://日.本.example.com", matches=False),
    _quote('url:"example.com"', "look", "see example.com/tea"),
]

PLACES = [
    _fact('place:"New York"', "from New York", place_name="New York"),
    _fact('place:"new york"', "from New York, NY", matches=False, place_name="New York, NY"),
    _fact("place:paris", "without a place", matches=False),
    _fact("place_country:FR", "from France", place_country="fr"),
    _fact("place_country:fr", "from France", place_country="FR"),
    _fact("place_country:FR", "from Germany", matches=False, place_country="DE"),
    _fact(CIRCLE, "a point inside", point=PARIS),
    _fact(CIRCLE, "a point 17 km away", matches=False, point=VERSAILLES),
    _fact(CIRCLE, "a place inside", box=IN_PARIS),
    _fact(CIRCLE, "a place around it", matches=False, box=FRANCE),
    _fact(CIRCLE, "a point outside, of a place inside", matches=False, point=BERLIN, box=IN_PARIS),
    _fact("point_radius:[2.35 48.95 10km]", "a point 9 km north of it", point=(2.35, 49.03)),
    _fact("point_radius:[179.99 0 5mi]", "a point beyond the date line", point=(-179.99, 0.0)),
    _fact("point_radius:[0 90 20km]", "a point beyond the pole", point=(180.0, 89.9)),
    _fact(BOX, "a point inside", point=PARIS),
    _fact(BOX, "a point on the edge", point=(2.5, 48.9)),
    _fact(BOX, "a point outside", matches=False, point=VERSAILLES),
    _fact(BOX, "a place inside", box=IN_PARIS),
    _fact(BOX, "a place that overlaps", matches=False, box=(2.4, 48.9, 2.6, 49.0)),
    _fact("bounding_box:[179.9 -0.1 -179.9 0.1]", "a point beyond the date line", point=(-179.95, 0.0)),
    _fact("bounding_box:[179.9 -0.1 -179.9 0.1]", "a place across it", box=(179.95, -0.1, -179.95, 0.0)),
    _fact("bounding_box:[179.9 -0.1 -179.9 0.1]", "a place around the world", matches=False, box=(-180, -0.1, 180, 0)),
    _fact(f"-{BOX} tea", "a point outside", point=VERSAILLES),
]

FACTS = [
    _fact("conversation_id:12", "in the thread of 12", conversation="12"),
    _fact("conversation_id:12", "in the thread of 13", matches=False, conversation="13"),
    _fact("tea is:reply", "a reply", forms=REPLY),
    _fact("tea is:reply", "a quote", matches=False, forms=QUOTE),
    _fact("tea is:retweet", "a repost", forms=REPOST),
    _fact("tea is:repost", "a repost", forms=REPOST),
    _fact("tea is:quote", "a quote", forms=QUOTE),
    _fact("tea -is:retweet", "a repost", matches=False, forms=REPOST),
    _text("tea has:hashtags", "#tea"),
    _text("tea has:hashtags", "tea", matches=False),
    _text("tea has:cashtags", "tea is $TEA"),
    _text("tea has:cashtags", "#tea", matches=False),
    _text("tea has:links", "tea at example.com"),
    _text("tea -has:links", "tea at example.com", matches=False),
    _text("tea has:mentions", "tea, @ada?"),
    _text("tea has:mentions", "tea", matches=False),
    _fact("tea has:media", "with a sound", media=frozenset({"audio"})),
    _fact("tea has:media", "with text alone", matches=False),
    _fact("tea has:images", "with a picture", media=frozenset({"image"})),
    _fact("tea has:images", "with a film", matches=False, media=frozenset({"video"})),
    _fact("tea has:video_link", "with a film", media=frozenset({"video"})),
    _fact("tea has:video_link", "with a picture", matches=False, media=frozenset({"image"})),
    _fact("tea has:geo", "with a point", point=PARIS),
    _fact("tea has:geo", "with the name of a place", place_name="Paris"),
    _fact("tea has:geo", "without a location", matches=False),
    _fact("tea lang:en", "in British English", lang="en-GB"),
    _fact("tea lang:en-GB", "in English", matches=False, lang="en"),
    _fact("tea lang:no", "in Norwegian Bokmål", lang="nb"),
    _fact("tea lang:nb", "in Norwegian", lang="no"),
    _fact("tea lang:nb", "in Norwegian Nynorsk", matches=False, lang="nn"),
    _fact("tea lang:iw", "in Hebrew (`he`)", lang="he"),
    _fact("tea lang:id", "in Indonesian (`in`)", lang="in"),
    _fact("tea lang:und", "in no known language"),
    _fact("tea lang:en", "in no known language", matches=False),
    _fact("tea followers_count:100", "with 100 followers", followers=100),
    _fact("tea followers_count:100", "with 99 followers", matches=False, followers=99),
    _fact("tea followers_count:100", "with an unknown number of followers", matches=False),
    _fact("tea -followers_count:100", "with an unknown number of followers"),
    _fact("tea following_count:10..20", "following 20", following=20),
    _fact("tea following_count:10..20", "following 21", matches=False, following=21),
    _fact("tea following_count:10..", "following 21", following=21),
    _fact("tea tweets_count:..5", "with 5 posts", posts=5),
    _fact("tea posts_count:..5", "with 6 posts", matches=False, posts=6),
    _fact("tea sample:100", "any"),
    _fact("kinds:like tea", "a post", matches=False),
    _fact("follow:7", "by 7", **ADA),
]

ITEM = (
    b'{"room":7,"site":"Blog","item":{"price":12.50,"sizes":[36,"L"]},"sold":false,"note":null,"a b":"x y","nr":"007"}'
)

META = [
    _fact("meta.room:7", '`{"room": 7}`', meta=b'{"room":7}'),
    _fact("meta.room:7", '`{"room": 7.0}`', meta=b'{"room":7.0}'),
    _fact("meta.room:7", '`{"room": "7"}`', meta=b'{"room":"7"}'),
    _fact("meta.room:7", '`{"room": [6, 7]}`', meta=b'{"room":[6,7]}'),
    _fact("meta.room:7", '`{"room": 70}`', meta=b'{"room":70}', matches=False),
    _fact("meta.room:7", "without `meta`", matches=False),
    _fact('meta.site:"My Blog"', '`{"site": "my blog"}`', meta=b'{"site":"my blog"}'),
    _fact('meta.site:"My Blog"', '`{"site": "my blog!"}`', meta=b'{"site":"my blog!"}', matches=False),
    _fact("meta.version:1.10", '`{"version": "1.10"}`', meta=b'{"version":"1.10"}'),
    _fact("meta.version:1.10", '`{"version": "1.1"}`', meta=b'{"version":"1.1"}', matches=False),
    _fact("tea meta.item.price:10..12.5", '`{"item": {"price": 12.50}}`', meta=ITEM),
    _fact(
        "tea meta.item.price:10..12.5", '`{"item": {"price": "11"}}`', meta=b'{"item":{"price":"11"}}', matches=False
    ),
    _fact("tea has:meta.note", '`{"note": ""}`', meta=b'{"note":""}'),
    _fact("tea has:meta.note", '`{"note": null}`', meta=ITEM, matches=False),
    _fact("META.Site:blog", "an item", meta=ITEM),
    _fact('meta."a b":"x y"', "an item", meta=ITEM),
    _fact("meta.item.sizes:l", "an item", meta=ITEM),
    _fact("meta.sold:false", "an item", meta=ITEM),
    _fact("meta.nr:7", "an item", meta=ITEM, matches=False),
    _fact("meta.nr:007", "an item", meta=ITEM),
    _fact("tea meta.item.sizes:..36", "an item", meta=ITEM),
    _fact("tea meta.item.sizes:36.01..", "an item", meta=ITEM, matches=False),
    _fact("tea -has:meta.item", "an item", meta=ITEM),
]

GROUPS = [
    _text("apple OR iphone ipad", "apple"),
    _text("apple OR iphone ipad", "iphone", matches=False),
    _text("apple OR iphone ipad", "ipad iphone"),
    _text("ipad iphone OR android", "android"),
    _text("ipad iphone OR android", "ipad android"),
    _text("ipad iphone OR android", "ipad", matches=False),
    _text("ipad (iphone OR android)", "android", matches=False),
    _text("ipad (iphone OR android)", "android ipad"),
    _text("skiing -snow -ice", "skiing"),
    _text("skiing -snow -ice", "skiing on ice", matches=False),
    _text("(a OR b) (c OR d) -e", "b c"),
    _text("(a OR b) (c OR d) -e", "b c e", matches=False),
    _text("tea or coffee", "tea or coffee"),
    _text("tea or coffee", "tea", matches=False),
]

CASES = [*WORDS, *PHRASES, *PEOPLE, *LINKS, *PLACES, *FACTS, *META, *GROUPS]

REFUSED = [
    ("", 1, "an operator, such as a word"),
    ("   ", 4, "an operator, such as a word"),
    ("OR tea", 1, "an operator, such as a word"),
    ("tea OR", 7, "an operator, such as a word"),
    ("tea OR OR milk", 8, "an operator, such as a word"),
    ("tea AND milk", 5, 'an operator, or "and" in quotes'),
    ("tea NOT milk", 5, '- before an operator, or "not" in quotes'),
    ("()", 2, "an operator, such as a word"),
    ("(tea", 5, "a closing parenthesis"),
    ("(tea OR (milk) sugar", 21, "a closing parenthesis"),
    ("tea)", 4, "an operator, such as a word"),
    ('"tea', 1, 'a second "'),
    ('tea"', 4, "a blank before the quote"),
    ('"tea"milk', 6, "a blank"),
    ('"..."', 1, "one word or more"),
    ("\ufe0f", 2, "an operator, such as a word"),
    ('"\u200b"', 1, "one word or more"),
    ("tea from:\u200b", 10, "id or login"),
    ("tea -\u200b milk", 5, "an operator right behind the minus"),
    ("#\ufe0f", 1, "a hashtag such as #tea"),
    ('"tea cup"~7', 1, "a number from 1 to 6 behind the ~"),
    ('"tea cup"~', 1, "a number from 1 to 6 behind the ~"),
    ('"tea"~2', 1, "2 to 10 words in the quotes before the ~"),
    ("-tea", 1, "an operator beside it that can, such as a word, from: or #tag"),
    ("has:media lang:en", 1, "an operator beside it that can, such as a word, from: or #tag"),
    ("tea OR has:media", 8, "an operator beside it that can, such as a word, from: or #tag"),
    ("tea -(milk OR sugar)", 5, "-milk -sugar"),
    ("tea -(milk -sugar)", 5, "(-milk OR sugar)"),
    ("tea -(milk OR sugar) -(salt)", 5, "-milk -sugar"),
    ("-(tea milk)", 1, "an operator right behind the minus"),
    ("tea OR -(milk OR sugar)", 8, "an operator right behind the minus"),
    ("tea -(milk sample:10)", 5, "an operator right behind the minus"),
    ("tea -", 5, "an operator right behind the minus"),
    ("tea - milk", 5, "an operator right behind the minus"),
    ("tea --milk", 5, "an operator right behind the minus"),
    ("tea -OR milk", 5, "an operator right behind the minus"),
    ("tea -sample:10", 6, "sample: without a minus"),
    ("tea OR milk sample:10", 13, "it outside of OR: (… OR …) sample:10"),
    ("meta.room:", 11, "text or number"),
    ("meta.price:1..2", 1, "an operator beside it that can, such as a word, from: or #tag"),
    ("tea has:meta.room OR has:meta.room", 22, "an operator beside it that can, such as a word, from: or #tag"),
    ("tea meta.price:2..1", 16, "the smaller number first"),
    ("tea meta.price:..", 16, 'a range such as 10..50, or quotes around a text: ".."'),
    ("tea meta.price:a..b", 16, 'a range such as 10..50, or quotes around a text: "a..b"'),
    ("meta.note:" + "é" * 65, 11, "at most 128 bytes"),
    ("meta." + "é" * 65 + ":x", 72, "meta. and a name of at most 128 bytes"),
    ("tea has:meta.", 9, "meta. and a name of at most 128 bytes"),
    ('meta."":x', 9, "meta. and a name of at most 128 bytes"),
    ("meta:7", 1, "did you mean `meta.NAME:`?"),
    ("mta.room:7", 1, "did you mean `meta.room:`?"),
    ('meta."a\x01":7', 8, "text"),
    ("coca-cola", 1, 'quotes around it: "coca-cola"'),
    ("tea & milk", 5, "a word"),
    ("bio:!", 5, "a word"),
    ("\u2013", 1, "a word"),
    ("\\", 1, "a word"),
    ("\ufffe", 1, "a word"),
    ("url:😍-", 5, "a part of a link"),
    ("love😍", 1, 'quotes around it: "love😍"'),
    ("example.com", 1, 'quotes around it: "example.com"'),
    ("url:example.com", 5, 'quotes around it: "example.com"'),
    ('url:"…"', 5, "a part of a link"),
    ("#", 1, "a hashtag such as #tea"),
    ("#12", 1, "a hashtag such as #tea"),
    ("@a-b", 1, "a mention such as @tea"),
    ("tea form:ada", 5, "did you mean `from:`?"),
    ("tea hsa:media", 5, "did you mean `has:`?"),
    ("http://example.com", 1, 'a known operator, or quotes around a text that holds a ":"'),
    ("firehose:true", 1, 'a known operator, or quotes around a text that holds a ":"'),
    ("from:", 6, "id or login"),
    ("from: ada", 6, "id or login"),
    ("from:@ada", 6, "a user's id, or a login without @"),
    ("tea lang:english_", 10, "a tag such as en, pt-BR or und"),
    ("tea lang:english", 10, "a tag such as en, pt-BR or und"),
    ("tea lang:eng", 10, "en"),
    ("tea lang:jp", 10, "a tag such as en, pt-BR or und"),
    ("tea is:verified", 8, "one of reply, retweet, repost, quote"),
    ("tea has:money", 9, "one of hashtags, cashtags, links, mentions, media, images, video_link, geo, meta.NAME"),
    ("conversation_id:x", 17, "the id of a status"),
    ("tea followers_count:many", 21, "a number, or a range such as 10..500"),
    ("tea followers_count:9..1", 21, "the smaller number first"),
    ("tea sample:0", 12, "a percentage from 1 to 100, with two decimal places at most"),
    ("tea sample:0.99", 12, "a percentage from 1 to 100, with two decimal places at most"),
    ("tea sample:1.125", 12, "a percentage from 1 to 100, with two decimal places at most"),
    ("place_country:france", 15, "two letters such as GB"),
    ('place:" "', 7, "the name of a place"),
    ("point_radius:[2.35 48.86 25mi]", 14, "above 0, below 25mi"),
    ("point_radius:[2.35 48.86 0km]", 14, "above 0, below 25mi"),
    ("point_radius:[2.35 95 10km]", 14, "longitudes to ±180, latitudes to ±90"),
    ("point_radius:[2.35 48.86]", 14, "[longitude latitude radius] such as [2.35 48.86 10km]"),
    ("bounding_box:[1 2 3 4]", 14, "sides shorter than 25 miles"),
    ("bounding_box:[0 -70 1.05 -69.7]", 14, "sides shorter than 25 miles"),
    ("bounding_box:[1 2 1.1 1.9]", 14, "south below north, west apart from east"),
    ("bounding_box:[1 2 3]", 14, "[west south east north] in degrees"),
    ("bounding_box:[190 2 191 3]", 14, "longitudes to ±180, latitudes to ±90"),
    ("track:www.example.com", 7, "a term that can"),
    ("track:→", 7, "a term that can"),
    ("follow:@me", 8, "user ids"),
    ("follow:ada", 8, "a value of follow"),
    ("tea\x00", 4, "text"),
    ("tea\ud800", 4, "text"),
    ('"tea\nmilk"', 5, "text"),
]
"""Invalid rules, the column of the error, and what the parser expected there."""
