"""Real and made statuses in every filter and operator: the same result as the reference, and never an empty one."""

from collections.abc import Callable, Mapping
from itertools import islice

import pytest

from filters.registry import Registry
from filters.rules.rule import Rule
from filters.subscription import Subscription, parse_subscription
from filters.subscription_index import SubscriptionIndex
from tests import reference
from tests.property.real import full_statuses, made, tweets
from tests.property.statuses import Posted
from tests.reference_rules import Seen, parsed

FEW = 1000
"""By default, streams get so many statuses."""

MANY = 4000
"""By default, rules get so many statuses: some match rarely."""

ENOUGH = 25
"""By default, a rule gets the statuses up to the one that is the 25th to match it."""

REGISTRY = Registry.from_entry_points()

STREAMS_OF_FULL: tuple[dict[str, str], ...] = (
    {"track": "by,twitter"},
    {"track": "東京,妖怪,正しい"},
    {"track": "正しいという意味 どんどん,ﾊﾞﾝｼｬｸ"},
    {"track": "第一印象 ようかい,#rtした人にやる,ニコ動"},
    {"track": "神様,#キンドル", "language": "ja"},
    {"track": "一", "language": "zh"},
    {"track": "com photo,bit,@shiawaseomamori"},
    {"follow": "1186275104,1318193334,141369926"},
    {"follow": "866260188"},
    {"locations": "139.6,35.4,139.8,35.7"},
    {"locations": "177,-20,-170,-10"},
    {"locations": "-180,-19,-179,-16"},
    {"locations": "0,0,10,10,160,-40,175,-35"},
    {"sample": "30"},
    {"sample": "50", "language": "ja,en"},
    {"firehose": "true"},
    {"firehose": "true", "language": "zh"},
    {"track": "by", "locations": "177,-20,-170,-10", "follow": "866260188"},
)

STREAMS_OF_MADE: tuple[dict[str, str], ...] = (
    {"track": "flight"},
    {"track": "customer service,late flight,bag"},
    {"track": "can't,don't,I'm"},
    {"track": "#fail,@southwestair thanks"},
    {"track": "t co,\U0001f621,wi-fi"},
    {"track": "thanks", "language": "en-GB,de"},
    {"follow": "1,2,3"},
    {"locations": "-125,25,-66,49"},
    {"locations": "-74.5,40,-73,41,170,-80,-170,80"},
    {"sample": "1"},
    {"sample": "10", "language": "en"},
    {"firehose": "true", "language": "und"},
    {"track": "delayed", "follow": "7", "locations": "-74.5,40,-73,41", "kinds": "post"},
)

STREAMS_OF_TWEETS = (*STREAMS_OF_MADE, {"follow": "100,200,300,400,500,600"})

RULES_OF_FULL = (
    "正しい", "妖怪体操", "by", '"一番初めの場所"', "#キンドル", "@BelloTexto", "😋", "url:twitter",
    '"by 神様のカルテ"', "from:ayuu0123", "from:1186275104", "to:vesperia1985", "retweets_of:shiawaseomamori",
    "reposts_of:2745121514", "place:fiji", "place_country:jp", "place_country:FJ", "point_radius:[139.7 35.6 20km]",
    "の -is:repost", "point_radius:[178.5 -17.8 15mi]", "bounding_box:[139.6 35.5 139.9 35.7]", "url:http",
    "正しい is:retweet", "正しい lang:ja", "一 lang:zh", "by OR 妖怪 has:links", "の has:media", "bio:RT", "bio:です",
    "の followers_count:1000..", "の following_count:..100", "(の OR 的) -has:mentions", "の tweets_count:1000..2000",
    "の has:hashtags", "の has:geo", "の sample:40", "の -正しい", "conversation_id:505874924095815681",
    "の is:reply", "の lang:ja -lang:zh",
)  # fmt: skip

RULES_OF_MADE = (
    "flight", "CANCELLED", '"customer service"', '"can\'t"', '"flight cancelled"~3', '"service customer"~4',
    "#fail", "@united", "@SouthwestAir -thanks", "😡", "🙏 OR 😡", "from:7", "to:united", "to:2",
    "to:JetBlue -from:jetbluenews", "retweets_of_user:20 OR from:20", "conversation_id:40960",
    '"flight" lang:en', "bag lang:en-GB", "bag -lang:en", "delayed lang:und", 'place:"new york, ny"',
    "place_country:us", "place:USA followers_count:1000..", "flight followers_count:200..500",
    "flight following_count:..20", "posts_count:..100 flight", "point_radius:[-74.0 40.7 24mi]",
    "bounding_box:[-74.1 40.6 -73.8 40.9]", 'bio:"new york"', "bio:travel OR bio:flight", "thanks is:reply",
    "flight is:repost", "flight is:quote", "flight is:retweet -is:reply", "help has:hashtags",
    "united has:links", "flight has:images", "flight has:video_link", "bag has:geo", "flight sample:25",
    "flight sample:1.5", "bag (lost OR has:media)", "thanks -flight -@united -is:repost", "wifi OR wi fi",
    "jetblue (love OR thanks) followers_count:500..", "hold -hours has:hashtags",
)  # fmt: skip

RULES_OF_TWEETS = (
    *RULES_OF_MADE, '"on hold"', "#DestinationDragons", "$luv", "from:JetBlueNews", "retweets_of:JetBlueNews",
    "url:co", 'url:"t.co"', "place:Boston OR place:nyc", "flight tweets_count:3000..", "bio:chicago",
    "to has:cashtags", "the has:mentions has:media", "(bag OR luggage) (lost OR missing)",
    "from:JetBlueNews OR (delayed weather) OR #neveragain", '(flight "2 hours") OR "3 hours"',
)  # fmt: skip


def _received(params: Mapping[str, str], posts: list[Posted]) -> list[str]:
    """The ids that a stream gets by the reference. The reference knows parents and originals from before."""
    known = [status["original"] for status, _ in posts if "original" in status]
    known += [{"id": s["in_reply_to"], "uid": s["in_reply_to_uid"]} for s, _ in posts if s["in_reply_to"]]
    happened = [{"kind": "post", "status": status} for status, _ in posts]
    return [name for _, name in reference.receives(params, happened, known=known)]


def _check_streams(streams: tuple[dict[str, str], ...], posts: list[Posted]) -> None:
    """Match each stream alone, and all of them in an index."""
    index: SubscriptionIndex[int] = SubscriptionIndex()
    asked: list[Subscription] = [parse_subscription(params, REGISTRY) for params in streams]
    for item, subscription in enumerate(asked):
        index.add(item, subscription)
    found: list[list[str]] = [[] for _ in streams]
    for one in posts:
        matching = index.match(one.event)
        event = one.event  # another one, which has kept nothing of the index's reading
        assert sorted(matching) == [item for item, this in enumerate(asked) if this.matches(event)]
        for item in matching:
            found[item].append(one.status["id"])
    for params, received in zip(streams, found, strict=True):
        expected = _received(params, posts)
        assert expected, f"nothing is expected of {params}: the test is blind there"
        assert received == expected, params


def _check_rules(rules: tuple[str, ...], posts: list[Posted], enough: int) -> None:
    seen = [Seen(*one) for one in posts]
    events = [one.event for one in posts]
    for text in rules:
        rule, judge = Rule.parse(text, REGISTRY), parsed(text)
        expected = list(islice((at for at, this in enumerate(seen) if judge.holds(this)), enough))
        assert expected, f"nothing is expected of {text}: the test is blind there"
        read = expected[-1] + 1 if len(expected) == enough else len(posts)
        assert len(expected) < read, f"everything is expected of {text}"
        assert [at for at, event in enumerate(events[:read]) if rule.matches(event)] == expected, text


SOURCES = [
    pytest.param(STREAMS_OF_MADE, RULES_OF_MADE, made, id="made statuses"),
    pytest.param(STREAMS_OF_FULL, RULES_OF_FULL, full_statuses, id="full statuses"),
    pytest.param(STREAMS_OF_TWEETS, RULES_OF_TWEETS, tweets, id="tweets", marks=pytest.mark.extended),
]


@pytest.mark.parametrize(("streams", "rules", "posts"), SOURCES)
@pytest.mark.timeout(600)
def test_statuses_are_matched_as_by_the_reference(
    streams: tuple[dict[str, str], ...],
    rules: tuple[str, ...],
    posts: Callable[[], list[Posted]],
    full: bool,  # noqa: FBT001 - a fixture
) -> None:
    statuses = posts()
    _check_streams(streams, statuses if full else statuses[:FEW])
    _check_rules(rules, statuses if full else statuses[:MANY], len(statuses) if full else ENOUGH)
