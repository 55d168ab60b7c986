"""Strategies for texts of rules about the generated statuses. Most are valid, the others nearly."""

from hypothesis import strategies as st

KEYWORDS = (
    "tea", "tea", "MILK", "milk", "cold", "café", "cafe\u0301", "strasse", "x_y", "or", "e", "nothing", "😍", "🍵",
    "東京", "京", "タワー", "東京タワーに", "สวัสดี", "iphone", "iphoneを", "1\ufe0f\u20e3", "istanbul", "t\u200bea",
    "cold\ufe0f", "milk\u00ad", "ខ្មែរភាសា", "រភា\u200bសា", "#\ufe0f\u20e3", "❤", "bob", "님이",
)  # fmt: skip

STANDALONE = (
    '"cold tea"', '"tea cold"', '"e mail"', '"e-mail"', '"tea"', '"tea milk cold"', '"x_y"', '"tea OR"', '"http www"',
    '"cold tea"~1', '"tea milk"~2', '"milk cold"~6', '"tea cold milk"~2', '"tea tea milk"~5', "#tea", "#MILK", "@Bob",
    "@anna", "$twtr", "#東京", "$tea", "from:1", "from:ANNA", "from:bob", "to:2", "to:chloe_", "retweets_of:3",
    "retweets_of_user:d_4", "reposts_of:anna", "url:tea", "url:cold", 'url:"tea.com/milk"',
    'url:"http://www.tea.com"', 'url:"a.co/cold"', "url:nothing", "conversation_id:4096", "place:berlin",
    'place:"New Tea"', "place_country:DE", "place_country:gb", "point_radius:[13.4 52.5 5km]",
    "point_radius:[13.4 52.5 10mi]", "point_radius:[179.9 -17.5 24.5mi]", "bounding_box:[13.3 52.4 13.5 52.6]",
    "bounding_box:[13.38 52.5 13.45 52.6]", "bounding_box:[-0.1 -0.1 0.1 0.1]", "bio:tea", "bio:COLD",
    '"東京"', '"京 タワー"', '"cold 東京"', '"iphoneを"', '"milk tea.com"', '"cold https://www.tea.com/milk"',
    '"bob 님이"', '"@bob님이"', '"$TEA cold"', '"tea $tea"', '"cold $twtr"', '"\uff04TWTR mi\u00adlk"', '"tea ខ្មែរ"',
    '"co\u200bld tea"', "\uff04TEA", "\uff03tea",
    "meta.room:7", "META.Room:7.0", "meta.room:late", 'meta.price:"7"', "meta.item.price:-1", "meta.price:1.10",
    'meta."odd name":"A b"', 'meta."dc:title":tea', "meta.größe:CAFÉ", "meta.room:true", 'meta.price:"1..2"',
    "meta.many:30", "meta.item.price:10000000000000000", "meta.price:0.0000001", "meta.room:007", "meta.room:null",
    '"cold http www"', '"1\ufe0f\u20e3 tea"', 'bio:"and e mail"', "bio:東京", 'bio:"cold milk"',
)  # fmt: skip

CONJUNCTION_REQUIRED = (
    "is:reply", "is:repost", "is:retweet", "is:quote", "has:hashtags", "has:cashtags", "has:links", "has:mentions",
    "has:media", "has:images", "has:video_link", "has:geo", "lang:en", "lang:en-GB", "lang:DE", "lang:und",
    "lang:no", "lang:nb", "lang:iw", "lang:zh",
    "followers_count:20..21", "followers_count:..19", "following_count:1..", "tweets_count:0..0", "posts_count:21..",
    "followers_count:20", "meta.room:7..", "meta.price:..0", "meta.item.price:1.10..7.5", "meta.many:-1.0..30",
    "has:meta.room", 'has:"meta.odd name"', "HAS:META.item.price",
)  # fmt: skip

SAMPLES = ("sample:50", "sample:100", "sample:12.5")

NO_OPERATOR = (
    "from:", "e-mail", "is:odd", "-", "--tea", "()", "has:", "sample:0.5", "AND", "NOT", "lang:english", '"',
    "nothing:x", "-(tea)", "meta.room:2..1", "meta.room:a..b", "meta:7", "mta.room:7", "has:meta.", "has:meta",
)  # fmt: skip

PIECES = (
    "(", ")", '"', "[", "]", "-", ":", "~", ".", " ", "OR", "AND", "\n", "\t", "\x00", "\ud800", "\u3000", "\ufeff",
    "\\", "'", "\u2019", "#", "@", "$", "..", "1", "9" * 40, "tea", "東京", "\u0301", "👨\u200d👩\u200d👧", "🏳️",
    "1️⃣", "é", "ß", "from:", "url:", "lang:", "sample:", "bio:", "place:", "followers_count:", "is:", "has:",
    "point_radius:[", "track:", "locations:", "follow:", "language:", "kinds:", "firehose:", "rule:", "rules:", "nan",
    "1e999", "-0", "km]", "mi]", "meta.", "meta.a:", 'meta."', '":', "has:meta.",
)  # fmt: skip
"""Texts that confuse parsers: punctuation, forms of Unicode, and the beginnings of operators."""


def standalone() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(KEYWORDS), st.sampled_from(STANDALONE))


def operators() -> st.SearchStrategy[str]:
    one = st.one_of(standalone(), st.sampled_from(CONJUNCTION_REQUIRED))
    return st.one_of(one, one, one.map("-".__add__))


def rules() -> st.SearchStrategy[str]:
    """A valid rule: each conjunction has a standalone operator, each alternative is a rule."""
    grown = st.recursive(standalone(), _grown, max_leaves=6)
    return st.one_of(grown, grown, st.tuples(st.sampled_from(SAMPLES), _grouped(grown)).map(" ".join))


def _grown(smaller: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    beside = st.lists(st.one_of(operators(), _grouped(_alternatives(operators()))), min_size=1, max_size=2)
    conjunction = st.tuples(_grouped(smaller), beside).flatmap(lambda parts: st.permutations([parts[0], *parts[1]]))
    blank = st.sampled_from([" ", " ", "  "])
    return st.one_of(st.tuples(blank, conjunction).map(lambda two: two[0].join(two[1])), _alternatives(smaller))


def _alternatives(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(parts, min_size=2, max_size=3).map(" OR ".join)


def _grouped(rule: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return rule.map(lambda text: f"({text})" if " OR " in text else text)


def near_rules() -> st.SearchStrategy[str]:
    """Parts of rules in any order."""
    signs = st.sampled_from(["OR", "(", ")", " ", *SAMPLES, *NO_OPERATOR])
    return st.lists(st.one_of(operators(), operators(), signs), max_size=8).map(" ".join)


def anything() -> st.SearchStrategy[str]:
    """Any text."""
    pieces = st.sampled_from([*PIECES, *STANDALONE, *CONJUNCTION_REQUIRED, *NO_OPERATOR])
    pieced = st.lists(pieces, max_size=30).map("".join)
    return st.one_of(pieced, near_rules(), st.text(st.characters(), max_size=80))
