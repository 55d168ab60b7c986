"""Saved rules change on open streams at their position on the log, and messages name the matching rules."""

import asyncio
from typing import Any

import pytest

from filters.event import Event
from filters.rule import Rules, SavedRules
from filters.rules.rule import Rule
from stream_server.events.position import LOG_START
from stream_server.hub.catchup.reader import MAX_RULES_PER_SLICE, SavedRulesCache
from stream_server.store.social.saved_rules import StoredRule
from tests.stream_server.hub.world import Graph, Socket, World, read_rule
from tests.tiers import quick
from tests.waiting import eventually

TEA = {"1": "tea"}


def _matched(socket: Socket) -> list[tuple[str, list[str]]]:
    """Return the text of each post with the ids of the rules that matched."""
    return [
        (message["status"]["message"], [mark["id"] for mark in message["matched"]])  # type: ignore[index, attr-defined]  # JSON
        for message in socket.messages()
        if message["kind"] == "post"
    ]


async def test_a_message_names_all_matching_rules(world: World) -> None:
    _, socket = world.open(rules="saved", saved={"1": "tea", "2": "from:7", "3": "coffee"})
    world.post("tea")
    world.post("water", uid="8")
    world.post("coffee", uid="8")
    await socket.expect_texts("tea", "coffee")
    assert _matched(socket) == [("tea", ["1", "2"]), ("coffee", ["3"])]
    assert socket.messages()[1]["matched"] == [{"id": "1", "tag": "tag 1"}, {"id": "2", "tag": "tag 2"}]
    assert list(socket.messages()[1])[-1] == "matched"


async def test_streams_of_one_user_share_a_group_again_after_a_change(world: World) -> None:
    sockets = [world.open(rules="saved", saved=TEA)[1] for _ in range(3)]
    world.change_rules("1", {"5": "milk"})
    world.post("milk")
    for socket in sockets:
        await socket.expect_kinds("hello", "effective", "post")
    await eventually(lambda: len(world.hub.live.index) == 1, what="one group")


async def test_an_invalid_rules_entry_changes_nothing_and_is_counted(world: World) -> None:
    world.post("water")
    _, live = world.open(rules="saved", saved=TEA)
    _, late = world.open(LOG_START, rules="saved", saved=TEA)
    world.publish_invalid_rules()
    world.post("tea")
    for socket in (live, late):
        await socket.expect_kinds("hello", "post")
    assert world.hub.counters.malformed == 1


async def test_rules_change_at_the_same_position_while_catching_up(world: World) -> None:
    _, slow = world.open(rules="saved", saved=TEA)
    _, quick = world.open(rules="saved", saved=TEA)
    slow.block()
    for n in range(30):
        world.post(f"tea {n}" + " leaf" * 40)
    world.change_rules("1", {"5": "milk"}, removed=("1",))
    world.post("tea late")
    world.post("milk late")
    await quick.expect_last_text("milk late")
    slow.unblock()
    await slow.expect_last_text("milk late")
    assert [kind for kind in slow.kinds() if kind != "warning"] == quick.kinds()
    assert slow.texts() == quick.texts()
    assert _matched(slow) == _matched(quick)


async def test_a_replay_applies_each_change_at_its_position(world: World) -> None:
    """This holds for changes before the stream opened and after that."""
    world.post("tea")
    world.post("milk early")
    world.change_rules("1", {"5": "milk"})
    world.post("milk")
    _, socket = world.open(LOG_START, rules="saved", saved=TEA)
    world.change_rules("1", removed=("1",))
    world.post("tea late")
    world.post("milk late")
    await socket.expect_kinds("hello", "post", "effective", "post", "effective", "post")
    assert socket.texts() == ["tea", "milk", "milk late"]


async def test_a_change_whose_rules_are_partly_known_is_applied_once(world: World) -> None:
    """A stream may begin between the ids that one change gives its rules."""
    change = world.change_rules("1", {"5": "milk", "6": "water"})
    world.post("milk")
    _, socket = world.open(change.position.previous(), rules="saved", saved={**TEA, "5": "milk"})
    await socket.expect_texts("milk")
    assert _matched(socket) == [("milk", ["5"])]
    assert socket.messages()[1]["rules"] == 3


async def test_a_changed_rule_is_the_old_one_before_its_position_and_the_new_one_after(world: World) -> None:
    """Another stream has changed, and one goes back to the first text: both have the same ids."""
    saved = {**TEA, "2": "milk"}
    _, live = world.open(rules="saved", saved=saved)
    _, slow = world.open(rules="saved", saved=saved)
    slow.block()
    world.post("tea" + " leaf" * 40)
    for word in ("rum", "tea", "ice"):
        world.change_rules("1", {"1": word}, removed=("1",))
        for text in ("tea", "rum milk", "ice"):
            world.post(f"{text} {word}")
        _, late = world.open(rules="saved", saved={"1": word, "2": "milk"})
        world.post(f"{word} milk")
        await late.expect_last_text(f"{word} milk")
        assert _matched(late) == [(f"{word} milk", ["1", "2"])]
    await live.expect_last_text("ice milk")
    slow.unblock()
    await slow.expect_last_text("ice milk")
    assert _matched(slow) == _matched(live)
    assert _matched(live)[1:] == [
        ("tea rum", ["1"]), ("rum milk rum", ["1", "2"]), ("ice rum", ["1"]), ("rum milk", ["1", "2"]),
        ("tea tea", ["1"]), ("rum milk tea", ["1", "2"]), ("ice tea", ["1"]), ("tea milk", ["1", "2"]),
        ("tea ice", ["1"]), ("rum milk ice", ["1", "2"]), ("ice ice", ["1"]), ("ice milk", ["1", "2"]),
    ]  # fmt: skip
    changes = [message for message in live.messages() if message["kind"] == "effective"]
    assert [(one["added"], one["removed"], one["rules"]) for one in changes] == [(["1"], ["1"], 2)] * 3


async def test_a_stream_without_rules_waits_until_rules_are_saved(world: World) -> None:
    _, socket = world.open(rules="saved", saved={})
    world.post("tea")
    world.change_rules("1", TEA)
    world.post("tea two")
    await socket.expect_kinds("hello", "effective", "post")
    assert socket.texts() == ["tea two"]


async def test_a_poll_returns_a_change_of_the_rules(world: World) -> None:
    poll = world.poll(world.request(rules="saved", saved=TEA))
    world.change_rules("1", {"5": "milk"})
    world.post("milk")
    polled = await poll.run(5)
    kinds = [getattr(item, "kind", "post") for item in polled.items]
    assert kinds == ["effective", "post"]
    assert polled.position == world.hub.head


async def test_a_saved_rule_that_cannot_be_parsed_is_skipped(world: World) -> None:
    _, socket = world.open(rules="saved", saved=TEA)
    world.change_rules("1", {"5": "nothing:like-this"})
    world.post("tea")
    await socket.expect_kinds("hello", "effective", "post")
    assert socket.messages()[1]["rules"] == 1


async def test_a_rule_does_not_match_hidden_quoted_text(world: World) -> None:
    original = world.post("tea", uid="8")
    _, seeing = world.open(user="2", rules="saved", saved=TEA)
    _, live = world.open(user="1", rules="saved", saved=TEA)
    world.publish("block", "users:1,8", source={"id": "1"}, target={"id": "8"})
    quote = world.post("look at this", uid="7", original=original)
    world.post("tea, by the way", uid="7", original=original)
    await seeing.expect_texts("look at this", "tea, by the way")
    await live.expect_texts("tea, by the way")
    assert quote.event.analyzed_quote.text == "tea"
    _, late = world.open(LOG_START, user="1", rules="saved", saved=TEA)
    await late.expect_texts("tea, by the way")


async def _texts_until_now(world: World, socket: Socket) -> list[str]:
    """Return the texts that a stream received up to now. The stream must match `end`."""
    end = f"end {world.hub.head.n}"
    world.post(end, uid="9")
    await socket.expect_last_text(end)
    return [text for text in socket.texts() if not text.startswith("end")]


@pytest.mark.parametrize("way", ["apart", "shared", "me"])
@pytest.mark.parametrize(("rule", "asked"), [("look -tea", True), ("look -milk", True), ("look tea", False)])
async def test_a_quote_matches_by_the_text_its_viewer_sees(world: World, way: str, rule: str, *, asked: bool) -> None:
    """A minus term does not exclude a quote by its hidden text. The delete goes to the clients that got the quote."""
    original = world.post("tea", uid="8")
    filters: dict[str, Any] = {"follow": "@me", "following": {"9"}} if way == "me" else {}
    if way == "shared":
        world.publish("protect", user={"id": "8"})
    else:
        world.graphs["1"] = Graph(blocks={"8": 1})
    _, live = world.open(user="1", rule=f"({rule}) OR end", **filters)
    await world.until_live()
    quote = world.post("look at this", uid="7", original=original)
    expected = ["look at this"] if asked else []
    assert await _texts_until_now(world, live) == expected
    _, late = world.open(LOG_START, user="1", rule=f"({rule}) OR end", **filters)
    assert await _texts_until_now(world, late) == expected
    world.delete(quote)
    expected += [f"-{quote.position.status_number}"] if asked else []
    if way != "shared":  # what nobody sees any more all could see once: its end goes by that
        assert [await _texts_until_now(world, socket) for socket in (live, late)] == [expected] * 2


async def test_a_replayed_quote_matches_without_its_deleted_original(world: World) -> None:
    original = world.post("tea", uid="8")
    _, live = world.open(user="1", rule="look -tea OR end")
    world.post("look at this", uid="7", original=original)
    assert await _texts_until_now(world, live) == []
    world.delete(original)
    _, late = world.open(LOG_START, user="1", rule="look -tea")
    await late.expect_texts("look at this")


async def test_is_quote_matches_a_quote_with_a_hidden_or_deleted_original(world: World) -> None:
    original = world.post("tea", uid="8")
    _, live = world.open(user="1", rules="saved", saved={"1": "is:quote from:7"})
    world.publish("block", "users:1,8", source={"id": "1"}, target={"id": "8"})
    world.post("look at this", uid="7", original=original)
    world.post("nothing", uid="7")
    await live.expect_texts("look at this")
    world.delete(original)
    _, late = world.open(LOG_START, user="2", rules="saved", saved={"1": "is:quote from:7"})
    await late.expect_texts("look at this")


async def test_a_stream_with_explain_names_filter_term_and_place(world: World) -> None:
    _, socket = world.open(track="tea", follow="7", explain=True)
    world.post("green tea", uid="8")
    world.post("water", uid="7")
    await socket.expect_texts("green tea", "water")
    reasons = [message["matched"] for message in socket.messages()[1:]]
    assert reasons == [
        [{"filter": "track", "term": "tea", "indices": [[6, 9]]}],
        [{"filter": "follow", "user": "7", "as": "author"}],
    ]


async def test_a_replay_ends_at_its_end_position(world: World) -> None:
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


async def test_a_narrowing_filter_that_raises_matches_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the filter the stream would show posts that the client did not request."""
    _, socket = world.open(track="tea", language="en")
    _, other = world.open(user="2", track="tea")

    def broken(self: object, event: Event) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr("filters.narrowing.Language.matches", broken)
    world.post("tea")
    world.post("tea again")
    await socket.expect_kinds("hello", "warning")
    await other.expect_texts("tea", "tea again")
    assert socket.messages()[1]["filter"] == "language"


async def test_a_rule_that_raises_is_disabled_without_the_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, socket = world.open(rules="saved", saved={"1": "tea", "2": "milk"})
    saved = stream.subscription.find_base("rules")
    assert isinstance(saved, SavedRules)

    def boom(event: Event) -> bool:
        raise ZeroDivisionError

    (rule,) = [named.rule for named in saved.matching_rules(Event("post", text="tea"))]
    monkeypatch.setattr(rule, "matches", boom)
    world.post("tea")
    world.post("milk")
    await socket.expect_kinds("hello", "warning", "post")
    warning = socket.messages()[1]
    assert (warning["code"], warning["filter"], warning["rule"]) == ("filter_disabled", "rules", "1")
    assert _matched(socket) == [("milk", ["2"])]


async def test_the_rules_of_a_user_are_parsed_once_for_all_streams() -> None:
    read: list[str] = []

    async def reading(text: str) -> Rule:
        read.append(text)
        return read_rule(text)

    book = SavedRulesCache(reading)
    saved = [StoredRule(str(n), f"word{n}", "", "") for n in range(MAX_RULES_PER_SLICE + 1)]
    one, other = await asyncio.gather(book.build("1", saved), book.build("1", saved))
    assert one is other
    assert [each.id for each in one.named_rules] == [rule.id for rule in saved]
    assert len(read) == len(saved)
    stranger = await book.build("2", saved)
    assert stranger != one
    del one, other
    await book.build("1", saved)
    assert len(read) == 3 * len(saved)


@pytest.mark.parametrize("reasons", [[{"filter": object()}], [{"filter": "\ud800"}], None, 5])
async def test_a_filter_whose_reasons_are_not_json_is_disabled(
    world: World, monkeypatch: pytest.MonkeyPatch, reasons: object
) -> None:
    _, socket = world.open(explain=True, track="tea", follow="7")
    _, other = world.open(user="2", track="tea")
    monkeypatch.setattr("filters.track.Track.explain", lambda *_: reasons)
    world.post("tea", uid="7")
    world.post("tea of others", uid="8")
    world.post("after", uid="7")
    await socket.expect_kinds("hello", "warning", "post", "post")
    await other.expect_texts("tea", "tea of others")
    assert socket.texts() == ["tea", "after"]
    assert (socket.messages()[1]["code"], socket.messages()[1]["filter"]) == ("filter_disabled", "track")


COSTLY_TEXT = "tea b " + "a " * 120
COSTLY_RULE = "tea " + " ".join(f'-"{"a " * nth}b"' for nth in range(4, 20))
"""No operator finds its words in COSTLY_TEXT, but each search takes long."""


async def test_rules_that_take_too_long_are_disabled_and_others_are_unhurt(world: World) -> None:
    streams = [
        world.open(user=str(user), rules="saved", saved={str(nth): f"{COSTLY_RULE} -x{nth}" for nth in range(500)})
        for user in range(2, 5 if quick() else 14)
    ]
    _, other = world.open(rules="saved", saved={"1": "tea"})
    world.post(COSTLY_TEXT, uid="8")
    world.post("tea again", uid="8")
    await other.expect_texts(COSTLY_TEXT, "tea again")
    for _, socket in streams:
        await socket.expect_kinds("hello", "warning")
        warning = socket.messages()[1]
        assert (warning["code"], warning["filter"]) == ("filter_too_costly", "rules")
        assert "rule" not in warning
    assert world.hub.live.index.verification.unverified == []


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("blocks", [{}, {"8": 1}], ids=["shared view", "private view"])
async def test_a_filter_that_raises_for_one_form_of_a_quote_costs_no_second_copy(
    world: World, monkeypatch: pytest.MonkeyPatch, blocks: dict[str, int], *, is_last: bool
) -> None:
    """A quote is matched with its original and without it, because some users may not see that."""
    matching, failing = Rules.matches, True

    def fails_for_the_other_form(self: Rules, event: Event) -> bool:
        if failing and (event.analyzed_quote.text == "tea") == bool(blocks):
            raise ZeroDivisionError
        return matching(self, event)

    original = world.post("tea", uid="8")
    monkeypatch.setattr(Rules, "matches", fails_for_the_other_form)
    world.graphs["1"], world.graphs["2"] = Graph(blocks=blocks), Graph(blocks={"9": 1})
    world.open(user="2", track="nothing")  # somebody has a private view
    _, live = world.open(user="1", rule="(look -milk) OR end")
    await world.until_live(2)
    world.is_last = is_last
    world.post("look at this", uid="7", original=original)
    failing = False
    world.post("end")
    await live.expect_texts("look at this", "end")
