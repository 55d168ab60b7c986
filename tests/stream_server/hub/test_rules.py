"""Saved rules change on living streams, at their place on the log; what matched is named."""

import asyncio
from typing import Any

import pytest

from filters.event import Event
from filters.index_keys import IndexTerms
from filters.rule import SavedRules
from filters.rules.rule import Rule
from filters.track import Track
from stream_server.events.position import LOG_START
from stream_server.hub.poll import LongPoll
from stream_server.hub.saved_rules import MAX_RULES_PER_SLICE, SavedRulesCache
from stream_server.store.social.saved_rules import StoredRule
from tests.stream_server.hub.world import Graph, Socket, World, read_rule
from tests.waiting import eventually

TEA = {"1": "tea"}


def _matched(socket: Socket) -> list[tuple[str, list[str]]]:
    """Each post's text with the ids of what matched."""
    return [
        (message["status"]["message"], [mark["id"] for mark in message["matched"]])  # type: ignore[index, attr-defined]  # JSON
        for message in socket.messages()
        if message["kind"] == "post"
    ]


async def test_a_message_names_all_rules_that_matched(world: World) -> None:
    """Once for several, by id and tag, as the last member."""
    _, socket = world.open(rules="saved", saved={"1": "tea", "2": "from:7", "3": "coffee"})
    world.post("tea")
    world.post("water", uid="8")
    world.post("coffee", uid="8")
    await socket.tells("tea", "coffee")
    assert _matched(socket) == [("tea", ["1", "2"]), ("coffee", ["3"])]
    assert socket.messages()[1]["matched"] == [{"id": "1", "tag": "tag 1"}, {"id": "2", "tag": "tag 2"}]
    assert list(socket.messages()[1])[-1] == "matched"


async def test_rules_change_at_their_place_on_the_log(world: World) -> None:
    """What was written before goes by the old ones, what comes after by the new; a marker stands between."""
    _, socket = world.open(rules="saved", saved=TEA)
    _, other = world.open(user="2", rules="saved", saved=TEA)
    world.post("tea")
    world.post("milk")
    change = world.change_rules("1", {"5": "milk"}, removed=("1",))
    world.post("tea again")
    world.post("milk again")
    await socket.hears("hello", "post", "effective", "post")
    await other.tells("tea", "tea again")
    assert _matched(socket) == [("tea", ["1"]), ("milk again", ["5"])]
    marker = socket.messages()[2]
    assert (marker["added"], marker["removed"], marker["rules"]) == (["5"], ["1"], 1)
    assert marker["cursor"] == change.position.cursor
    assert "effective" not in other.kinds()


async def test_streams_of_one_user_change_together_and_share_again(world: World) -> None:
    """Each has the marker once; afterwards they are one group."""
    sockets = [world.open(rules="saved", saved=TEA)[1] for _ in range(3)]
    world.change_rules("1", {"5": "milk"})
    world.post("milk")
    for socket in sockets:
        await socket.hears("hello", "effective", "post")
    await eventually(lambda: len(world.hub.index) == 1, what="one group")


async def test_a_change_that_cannot_be_read_changes_nothing(world: World) -> None:
    """Neither for who is live nor for who reads late; it is counted."""
    world.post("water")
    _, live = world.open(rules="saved", saved=TEA)
    _, late = world.open(LOG_START, rules="saved", saved=TEA)
    world.garble_rules()
    world.post("tea")
    for socket in (live, late):
        await socket.hears("hello", "post")
    assert world.hub.counters.malformed == 1


async def test_who_reads_late_changes_at_the_same_place(world: World) -> None:
    """A blocked socket that catches up hears the same as one that was live."""
    _, slow = world.open(rules="saved", saved=TEA)
    _, quick = world.open(rules="saved", saved=TEA)
    slow.block()
    for n in range(30):
        world.post(f"tea {n}" + " leaf" * 40)
    world.change_rules("1", {"5": "milk"}, removed=("1",))
    world.post("tea late")
    world.post("milk late")
    await quick.ends_with("milk late")
    slow.unblock()
    await slow.ends_with("milk late")
    assert [kind for kind in slow.kinds() if kind != "warning"] == quick.kinds()
    assert slow.texts() == quick.texts()
    assert _matched(slow) == _matched(quick)


async def test_rules_are_those_of_the_opening_also_for_the_past(world: World) -> None:
    """As with whom one follows: a change before the opening is in them already, and is not told of again."""
    world.post("tea")
    world.change_rules("1", {"5": "milk"})
    world.post("milk")
    _, socket = world.open(LOG_START, rules="saved", saved={**TEA, "5": "milk"})
    world.change_rules("1", removed=("1",))
    world.post("tea late")
    world.post("milk late")
    await socket.hears("hello", "post", "post", "effective", "post")
    assert socket.texts() == ["tea", "milk", "milk late"]


async def test_no_rules_match_nothing_until_there_are_some(world: World) -> None:
    """The stream is open and waits."""
    _, socket = world.open(rules="saved", saved={})
    world.post("tea")
    world.change_rules("1", TEA)
    world.post("tea two")
    await socket.hears("hello", "effective", "post")
    assert socket.texts() == ["tea two"]


async def test_a_poll_is_told_of_the_change_too(world: World) -> None:
    """The change wakes it, and stands among its events."""
    stream, _ = world.open(rules="saved", saved=TEA)
    poll = LongPoll(world.hub, stream.client.request, limit=10, initial_gap=None)
    world.change_rules("1", {"5": "milk"})
    world.post("milk")
    polled = await poll.run(5)
    kinds = [getattr(item, "kind", "post") for item in polled.items]
    assert kinds == ["effective", "post"]
    assert polled.position == world.hub.head


async def test_a_rule_that_cannot_be_read_is_passed_over(world: World) -> None:
    """What was written when another filter was installed hurts no other rule."""
    _, socket = world.open(rules="saved", saved=TEA)
    world.change_rules("1", {"5": "nothing:like-this"})
    world.post("tea")
    await socket.hears("hello", "effective", "post")
    assert socket.messages()[1]["rules"] == 1


async def test_a_quote_is_not_found_by_what_is_not_shown_of_it(world: World) -> None:
    """Rules look at the quoted words too, but not for whom these are hidden; live and late alike."""
    told = world.post("tea", uid="8")
    _, seeing = world.open(user="2", rules="saved", saved=TEA)
    _, live = world.open(user="1", rules="saved", saved=TEA)
    world.tell("block", "users:1,8", source={"id": "1"}, target={"id": "8"})
    quote = world.post("look at this", uid="7", original=told)
    world.post("tea, by the way", uid="7", original=told)
    await seeing.tells("look at this", "tea, by the way")
    await live.tells("tea, by the way")
    assert quote.event.analyzed_quote.text == "tea"
    _, late = world.open(LOG_START, user="1", rules="saved", saved=TEA)
    await late.tells("tea, by the way")


async def _heard(world: World, socket: Socket) -> list[str]:
    """What a stream that asks for an end, too, is told up to now."""
    end = f"end {world.hub.head.n}"
    world.post(end, uid="9")
    await socket.ends_with(end)
    return [text for text in socket.texts() if not text.startswith("end")]


@pytest.mark.parametrize("way", ["apart", "shared", "me"])
@pytest.mark.parametrize(("rule", "asked"), [("look -tea", True), ("look -milk", True), ("look tea", False)])
async def test_hidden_words_neither_find_a_quote_nor_keep_it_away(
    world: World, way: str, rule: str, *, asked: bool
) -> None:
    """It is asked for as it is shown, by a minus too; its end comes to whom it came, and to nobody else."""
    original = world.post("tea", uid="8")
    filters: dict[str, Any] = {"follow": "@me", "following": {"9"}} if way == "me" else {}
    if way == "shared":
        world.tell("protect", user={"id": "8"})
    else:
        world.graphs["1"] = Graph(blocks={"8": 1})
    _, live = world.open(user="1", rule=f"({rule}) OR end", **filters)
    await eventually(lambda: world.hub.count_live_clients() == 1)
    quote = world.post("look at this", uid="7", original=original)
    expected = ["look at this"] if asked else []
    assert await _heard(world, live) == expected
    _, late = world.open(LOG_START, user="1", rule=f"({rule}) OR end", **filters)
    assert await _heard(world, late) == expected
    world.delete(quote)
    expected += [f"-{quote.position.status_number}"] if asked else []
    if way != "shared":  # what nobody sees any more all could see once: its end goes by that
        assert [await _heard(world, socket) for socket in (live, late)] == [expected] * 2


async def test_a_quote_is_asked_for_without_its_original_once_that_is_gone(world: World) -> None:
    """Who is late is shown it without, and asks for it so."""
    original = world.post("tea", uid="8")
    _, live = world.open(user="1", rule="look -tea OR end")
    world.post("look at this", uid="7", original=original)
    assert await _heard(world, live) == []
    world.delete(original)
    _, late = world.open(LOG_START, user="1", rule="look -tea")
    await late.tells("look at this")


async def test_a_quote_is_one_also_without_its_original(world: World) -> None:
    """That it quotes something is told to everybody; what, is hidden from some, and gone for who is late."""
    told = world.post("tea", uid="8")
    _, live = world.open(user="1", rules="saved", saved={"1": "is:quote from:7"})
    world.tell("block", "users:1,8", source={"id": "1"}, target={"id": "8"})
    world.post("look at this", uid="7", original=told)
    world.post("nothing", uid="7")
    await live.tells("look at this")
    world.delete(told)
    _, late = world.open(LOG_START, user="2", rules="saved", saved={"1": "is:quote from:7"})
    await late.tells("look at this")


async def test_a_stream_explains_itself(world: World) -> None:
    """Which filter, which word, and where."""
    _, socket = world.open(track="tea", follow="7", explain=True)
    world.post("green tea", uid="8")
    world.post("water", uid="7")
    await socket.tells("green tea", "water")
    reasons = [message["matched"] for message in socket.messages()[1:]]
    assert reasons == [
        [{"filter": "track", "term": "tea", "indices": [[6, 9]]}],
        [{"filter": "follow", "user": "7", "as": "author"}],
    ]


async def test_a_stream_ends_where_it_was_to_end(world: World) -> None:
    """What was there when it was asked for, and nothing newer."""
    world.post("one")
    end = world.post("two").position
    world.post("three")
    _, socket = world.open(LOG_START, until=end, firehose="true")
    await eventually(lambda: socket.finished, what="the end")
    assert socket.texts() == ["one", "two"]
    assert socket.messages()[-1]["code"] == "backfill_done"
    _, empty = world.open(until=world.hub.head, firehose="true")
    await eventually(lambda: empty.finished, what="the end of nothing")
    assert empty.kinds() == ["hello", "goodbye"]


def _breaks(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """From now on ``track`` raises at texts with this word."""
    matches = Track.matches

    def broken(self: Track, event: Event) -> bool:
        if word in event.text:
            raise ZeroDivisionError
        return matches(self, event)

    def inexact(self: Track) -> IndexTerms:
        return IndexTerms((), [frozenset((key,)) for key in self.candidate_keys()])

    monkeypatch.setattr(Track, "matches", broken)
    monkeypatch.setattr(Track, "index_terms", inexact)


async def test_a_filter_that_raises_is_put_out_for_its_stream_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told by a warning; what the stream's other filters ask for goes on, in order, and nobody else notices."""
    _breaks(monkeypatch, "boom")
    _, socket = world.open(track="boom,tea", follow="7")
    _, other = world.open(user="2", follow="7,8")
    world.post("tea", uid="8")
    world.post("boom", uid="8")
    world.post("tea", uid="8")
    world.post("after", uid="7")
    await socket.hears("hello", "post", "warning", "post")
    assert socket.texts() == ["tea", "after"]
    assert (socket.messages()[2]["code"], socket.messages()[2]["filter"]) == ("filter_disabled", "track")
    await other.tells("tea", "boom", "tea", "after")
    assert world.hub.counters.filter_failures == 1
    assert world.hub.catchup_reader.failures == 1
    assert world.hub.index.failures == []


async def test_a_narrowing_that_raises_lets_nothing_pass(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """To do without it would show what nobody asked for."""
    _, socket = world.open(track="tea", language="en")
    _, other = world.open(user="2", track="tea")

    def broken(self: object, event: Event) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr("filters.language.Language.matches", broken)
    world.post("tea")
    world.post("tea again")
    await socket.hears("hello", "warning")
    await other.tells("tea", "tea again")
    assert socket.messages()[1]["filter"] == "language"


async def test_one_rule_that_raises_leaves_the_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning names it."""
    stream, socket = world.open(rules="saved", saved={"1": "tea", "2": "milk"})
    saved = stream.client.subscription.find_base("rules")
    assert isinstance(saved, SavedRules)

    def boom(event: Event) -> bool:
        raise ZeroDivisionError

    (rule,) = [named.rule for named in saved.matching_rules(Event("post", text="tea"))]
    monkeypatch.setattr(rule, "matches", boom)
    world.post("tea")
    world.post("milk")
    await socket.hears("hello", "warning", "post")
    told = socket.messages()[1]
    assert (told["code"], told["filter"], told["rule"]) == ("filter_disabled", "rules", "1")
    assert _matched(socket) == [("milk", ["2"])]


async def test_a_users_rules_are_made_once_for_all_streams() -> None:
    """Also by those who ask for them while they are made; when the last stream is gone, so are they."""
    read: list[str] = []

    def reading(text: str) -> Rule:
        read.append(text)
        return read_rule(text)

    book = SavedRulesCache(reading)
    saved = [StoredRule(str(n), f"word{n}", "", "") for n in range(MAX_RULES_PER_SLICE + 1)]
    one, other = await asyncio.gather(book.build("1", saved), book.build("1", saved))
    assert one is other
    assert one.rule_ids == [rule.id for rule in saved]
    assert len(read) == len(saved)
    stranger = await book.build("2", saved)
    assert stranger != one
    del one, other
    await book.build("1", saved)
    assert len(read) == 3 * len(saved)


@pytest.mark.parametrize("reasons", [[{"filter": object()}], [{"filter": "\ud800"}], None, 5])
async def test_reasons_that_are_no_json_end_their_filter_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, reasons: object
) -> None:
    """Nobody else notices, and the stream goes on with what its other filters find."""
    _, socket = world.open(explain=True, track="tea", follow="7")
    _, other = world.open(user="2", track="tea")
    monkeypatch.setattr("filters.track.Track.explain", lambda *_: reasons)
    world.post("tea", uid="7")
    world.post("tea of others", uid="8")
    world.post("after", uid="7")
    await socket.hears("hello", "warning", "post", "post")
    await other.tells("tea", "tea of others")
    assert socket.texts() == ["tea", "after"]
    assert (socket.messages()[1]["code"], socket.messages()[1]["filter"]) == ("filter_disabled", "track")
