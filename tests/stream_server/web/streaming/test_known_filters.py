"""The filters of equal queries are parsed once, and take a limited memory whatever their text is."""

import gc
import tracemalloc
from itertools import product
from string import ascii_lowercase

import pytest

from filters.registry import installed_registry
from stream_server.web.http.query import parse_pairs
from stream_server.web.streaming import subscription_parser
from stream_server.web.streaming.parameters import join_parameters
from stream_server.web.streaming.subscription_parser import (
    SUBSCRIPTION_PARSER,
    KnownFilters,
    ParsedFilters,
    SubscriptionParser,
)
from tests.stream_server.web.running_server import running_server

TEXTS = {
    "one word": "track={0}",
    "many words": "track=" + ",".join(letter + "{0}" for letter in ascii_lowercase * 4),
    "words of other scripts": "track=" + ",".join(chr(0x4E00 + number) + "{0}" for number in range(100)),
    "a phrase": "track={0}a%20{0}b",
    "phrases": "track=" + ",".join(f"{letter}{{0}}%20{letter}%20{{0}}" for letter in ascii_lowercase),
    "entities and links": "track=%23{0},%40{0},AT%26T.{0}",
    "users": "follow=" + ",".join(f"1{number}" for number in range(100)) + "&track={0}",
    "boxes": "locations=" + ",".join(f"{west},1,{west + 1},2" for west in range(20)) + "&track={0}",
    "kinds and languages": "track={0}&kinds=post,like&language=en",
    "one rule": "rule={0}",
    "a rule on a field": "rule=meta.room:{0}",
    "a rule on a tag": "rule=%23{0}",
    "many rules": "&".join(f"rule={letter}+{letter}{letter}+{{0}}" for letter in ascii_lowercase * 2),
    "a rule of many words": "rule=" + "+OR+".join(letter + "{0}" for letter in ascii_lowercase * 4),
}


FORGOTTEN = 3
"""Texts after the first one that is forgotten: to parse large ones takes long."""


@pytest.mark.parametrize("form", TEXTS.values(), ids=TEXTS)
def test_what_is_remembered_takes_about_as_much_as_is_counted(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(subscription_parser, "MAX_FILTER_BYTES", 2**20)
    parser, known = SubscriptionParser(installed_registry()), KnownFilters()
    read = list[str]()
    texts = [form.format("".join(letters)) for letters in product(ascii_lowercase, repeat=2)]
    tracemalloc.start()
    try:
        for text in texts:
            filters = parser.read(join_parameters(parse_pairs(text), parser.separators))
            assert isinstance(filters, ParsedFilters)
            known.remember(text, filters)
            read.append(text)
            if len(read) > len(known) + FORGOTTEN:
                break
        kept, counted, with_them = list(known), known.counted_bytes, traced_bytes()
        known.clear()
        assert 0.5 < counted / (with_them - traced_bytes()) < 2  # caches keep a part of what it counts
    finally:
        tracemalloc.stop()
        parser.thread.close()
    assert counted <= 2**20
    assert len(kept) >= 3
    assert kept == read[-len(kept) :]


def traced_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def test_only_queries_that_come_again_and_have_no_secret_are_remembered(redis_url: str) -> None:
    async with running_server(redis_url, {"shutdown_seconds": 1.0}) as server:
        async with server.session.post("/v1/streams/ticket", headers=server.authorization) as answer:
            ticket = (await answer.json())["ticket"]
        for more in ("", "&lastEventId=", f"&ticket={ticket}", "&since=-1m"):
            headers = {} if "ticket" in more else server.authorization
            async with server.session.get(f"/v1/stream?track=a{more}", headers=headers) as stream:
                assert stream.status == 200
        assert list(server.app[SUBSCRIPTION_PARSER].known) == ["track=a"]
