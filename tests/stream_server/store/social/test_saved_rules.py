"""Saved rules: what is stored, what is a duplicate, and the log entries."""

import asyncio
from typing import Any

import pytest
import redis

from stream_server.errors import Conflict, NotFound, TooLarge
from stream_server.events.position import LOG_START, Position
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.saved_rules import (
    MAX_REMOVED_BYTES_PER_USER,
    MAX_RULE_BYTES_PER_USER,
    AddRuleOutcome,
    StoredRule,
)
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint, new_key
from tests.stream_server.store.scenes import logged

TEA, NAP = ("tea", "drinks"), ('"a nap" -work', "")


async def add(store: Store, uid: str, *rules: tuple[str, str], **how: bool) -> list[AddRuleOutcome]:
    return await store.rules.add(uid, rules, new_key(), **how)


async def kept(store: Store, uid: str) -> list[tuple[str, str]]:
    return [(one.rule, one.tag) for one in (await store.rules.get_all(uid))[0]]


def saved(outcomes: list[AddRuleOutcome]) -> list[StoredRule]:
    """The saved rules of outcomes that all have one."""
    found = [one.saved for one in outcomes if one.saved is not None]
    assert len(found) == len(outcomes)
    return found


async def test_rules_are_stored_and_logged_until_they_are_removed(store: Store, people: People) -> None:
    ann = await people.user("ann")
    assert (await store.rules.get_all(ann)) == ([], await store.log.head())
    made = saved(await add(store, ann, TEA, NAP))
    assert (await store.rules.get_all(ann)) == (made, await store.log.head())
    assert [(one.rule, one.tag) for one in made] == [TEA, NAP]
    assert int(made[0].id) < int(made[1].id) == (await store.log.head()).status_number
    later = saved(await add(store, ann, ("naps", "")))
    assert await store.rules.remove(ann, [made[1].id, "7", made[1].id, later[0].id], new_key()) == [
        made[1].id, later[0].id,
    ]  # fmt: skip
    assert await kept(store, ann) == [TEA]
    assert [(one.audience, one.wire) for one in await logged(store, "rules")] == [
        (
            "-",
            {
                "uid": ann,
                "added": [_added(one) for one in made],
                "removed": [],
                "outcomes": f"+{made[0].id} +{made[1].id}",
            },
        ),
        ("-", {"uid": ann, "added": [_added(later[0])], "removed": [], "outcomes": f"+{later[0].id}"}),
        ("-", {"uid": ann, "added": [], "removed": [made[1].id, later[0].id]}),
    ]


@pytest.mark.parametrize("is_trimmed", [False, True])
async def test_a_repeated_request_gets_the_first_outcomes(
    store: Store, people: People, raw: "redis.Redis", *, is_trimmed: bool
) -> None:
    ann = await people.user("ann")
    await add(store, ann, TEA)
    adding, removing = (IdempotencyKey.from_client(ann, name, b"p") for name in ("a", "r"))
    rules = [TEA, *((f"word{number}", "") for number in range(900)), TEA, ("word7", "")]
    added = await store.rules.add(ann, rules if not is_trimmed else rules[1:-2], adding)
    removed = await store.rules.remove(ann, [one.saved.id for one in added if one.saved], removing)
    assert {raw.strlen(f"{{core}}:request:{key.value}") < 64 for key in (adding, removing)} == {True}
    if is_trimmed:
        raw.xtrim("{core}:log", maxlen=0, approximate=False)
        with pytest.raises(NotFound):
            await store.rules.add(ann, rules[1:-2], adding)
    else:
        assert await store.rules.add(ann, rules, adding) == added
        assert [one.is_duplicate for one in added] == [True, *([False] * 900), True, True]
    assert await store.rules.remove(ann, removed, removing) == removed
    (rum,), changing = saved(await add(store, ann, ("rum", ""))), IdempotencyKey.from_client(ann, "c", b"p")
    changed = await store.rules.change(ann, rum.id, ("ice", ""), changing)
    await store.rules.change(ann, rum.id, ("milk", ""), new_key())
    assert await store.rules.change(ann, rum.id, ("ice", ""), changing) == changed
    assert ("milk", "") in await kept(store, ann)


def _added(rule: StoredRule) -> dict[str, Any]:
    return {"id": rule.id, "rule": rule.rule, "tag": rule.tag}


async def test_a_duplicate_has_the_same_text_tag_and_user(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    (first,) = saved(await add(store, ann, TEA))
    before = footprint(raw)
    assert await add(store, ann, TEA) == [AddRuleOutcome(first, is_duplicate=True)]
    assert footprint(raw)[1] == before[1]
    again, other, twin = await add(store, ann, TEA, ("tea", ""), ("tea", ""))
    assert (again, other.is_duplicate) == (AddRuleOutcome(first, is_duplicate=True), False)
    assert twin == AddRuleOutcome(other.saved, is_duplicate=True)
    assert not (await add(store, bob, TEA))[0].is_duplicate
    assert await kept(store, ann) == [TEA, ("tea", "")]


async def test_rules_with_any_characters_are_stored_unchanged(store: Store, people: People) -> None:
    ann = await people.user("ann")
    odd = [('","created":"x"}', ""), ('\\"\n', "a"), ("茶 🍵", "b"), ("%d+ (.*)", "")]
    made = saved(await add(store, ann, *odd))
    assert await kept(store, ann) == odd
    assert await add(store, ann, *odd) == [AddRuleOutcome(one, is_duplicate=True) for one in made]


async def test_the_bytes_of_all_rules_are_limited(store: Store, people: People) -> None:
    """A thousand rules of full length would take 40 MB of memory in each server process."""
    ann = await people.user("ann")
    long = [(f"{'x' * 1000} {nth}", "") for nth in range(MAX_RULE_BYTES_PER_USER // 1100)]
    made = saved(await add(store, ann, *long))
    with pytest.raises(TooLarge) as failure:
        await add(store, ann, *((f"{'y' * 1000} {nth}", "") for nth in range(30)))
    assert (failure.value.error_code, failure.value.param) == ("too_many", "rules")
    await store.rules.remove(ann, [one.id for one in made[:40]], new_key())
    saved(await add(store, ann, *((f"{'y' * 1000} {nth}", "") for nth in range(30))))


async def test_twenty_concurrent_adds_save_one_rule(store: Store, people: People) -> None:
    ann = await people.user("ann")
    outcomes = [one for (one,) in await asyncio.gather(*(add(store, ann, TEA) for _ in range(20)))]
    assert [one.is_duplicate for one in outcomes].count(False) == 1
    assert len({one.saved for one in outcomes}) == 1


async def had(store: Store, uid: str, position: Position) -> tuple[list[str], Position]:
    rules, known = await store.rules.get_all_at(uid, position)
    return [rule.rule for rule in rules], known


async def test_the_rules_at_each_position_are_known(store: Store, people: People) -> None:
    """A rule is in force from the entry that adds it to the entry that removes it, and has its id and tag."""
    ann, bob = await people.users(2)
    history = [(await store.log.head(), list[str]())]
    (tea, nap) = saved(await add(store, ann, TEA, NAP))
    history.append((await store.log.head(), [TEA[0], NAP[0]]))
    await add(store, bob, ("other", ""))
    await store.rules.remove(ann, [tea.id], new_key())
    history.append((await store.log.head(), [NAP[0]]))
    (again,) = saved(await add(store, ann, TEA))
    history.append((await store.log.head(), [NAP[0], TEA[0]]))
    await store.rules.remove(ann, [nap.id, again.id], new_key())
    history.append((await store.log.head(), []))
    for position, rules in history:
        assert await had(store, ann, position) == (rules, position)
    assert await had(store, ann, LOG_START) == ([], LOG_START)
    first, _ = await store.rules.get_all_at(ann, history[1][0])
    assert [(one.id, one.tag) for one in first] == [(one.id, one.tag) for one in (tea, nap)]


async def test_a_changed_rule_has_one_version_at_each_position(store: Store, people: People) -> None:
    """One entry of the log ends the old version and begins the new one. A change that changes nothing has no entry."""
    ann = await people.user("ann")
    tea, nap = saved(await add(store, ann, TEA, NAP))
    history = [(await store.log.head(), [TEA[0], NAP[0]])]
    odd = ('","created":"x"}', '"removed":"%1')
    for changed in (("rum", ""), TEA, odd):
        assert await store.rules.change(ann, tea.id, changed, new_key()) == StoredRule(tea.id, *changed, tea.created)
        assert (await logged(store, "rules"))[-1].wire == {
            "uid": ann, "added": [{"id": tea.id, "rule": changed[0], "tag": changed[1]}], "removed": [tea.id],
        }  # fmt: skip
        history.append((await store.log.head(), [changed[0], NAP[0]]))
        for dry_run in (False, True):
            await store.rules.change(ann, tea.id, changed, new_key(), dry_run=dry_run)
        await store.rules.change(ann, tea.id, ("tried", ""), new_key(), dry_run=True)
        assert await store.log.head() == history[-1][0]
        assert await kept(store, ann) == [changed, NAP]
    await store.rules.remove(ann, [tea.id, nap.id], new_key())
    history.append((await store.log.head(), []))
    for position, rules in history:
        assert await had(store, ann, position) == (rules, position)


async def test_a_change_is_refused_as_a_new_rule_is(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    tea, _ = saved(await add(store, ann, TEA, NAP))
    (long,) = saved(await add(store, ann, ("x", "")))
    await add(store, ann, *((f"{'x' * 1000} {nth}", "") for nth in range(MAX_RULE_BYTES_PER_USER // 1100)))
    await add(store, bob, ("rum", ""))
    before = await store.log.head(), await kept(store, ann)
    for uid, rule_id, text, refusal in (
        (ann, "7", TEA, (NotFound, "not_found", "id")), (bob, tea.id, ("rum", ""), (NotFound, "not_found", "id")),
        (ann, tea.id, NAP, (Conflict, "duplicate", "rule")),
        (ann, long.id, ("y" * 30_000, ""), (TooLarge, "too_many", "rule")),
    ):  # fmt: skip
        with pytest.raises(refusal[0]) as failure:
            await store.rules.change(uid, rule_id, text, new_key())
        assert (failure.value.error_code, failure.value.param) == refusal[1:]
    assert (await store.log.head(), await kept(store, ann)) == before


async def test_rules_with_any_characters_are_known_after_their_removal(store: Store, people: People) -> None:
    ann = await people.user("ann")
    odd = [('","created":"x"}', ""), ('\\"\n', "a"), ("茶 🍵", '"removed":"'), ("%d+ (.*)", "%1")]
    made = saved(await add(store, ann, *odd))
    before = await store.log.head()
    await store.rules.remove(ann, [one.id for one in made], new_key())
    rules, known = await store.rules.get_all_at(ann, before)
    assert ([(one.rule, one.tag) for one in rules], known) == (odd, before)


async def test_the_oldest_removals_are_forgotten_by_bytes(store: Store, people: People, raw: "redis.Redis") -> None:
    """The rules at an older position are not guessed: the answer is the first position at which all are known."""
    ann = await people.user("ann")
    (tea,) = saved(await add(store, ann, TEA))
    places = []
    for turn in range(4):
        made = saved(await add(store, ann, *((f"{'x' * 1000} {turn} {nth}", "") for nth in range(200))))
        places.append(await store.log.head())
        await store.rules.remove(ann, [one.id for one in made], new_key())
        assert (raw.memory_usage(f"{{core}}:removed_rules:{ann}") or 0) < 2 * MAX_REMOVED_BYTES_PER_USER
    for position in places[2:]:
        rules, known = await store.rules.get_all_at(ann, position)
        assert (len(rules), known) == (201, position)
    first_known = (await had(store, ann, places[0]))[1]
    assert places[1] < first_known < places[2]
    for position in (LOG_START, *places[:2], first_known):
        assert await had(store, ann, position) == ([TEA[0]], first_known)
    await store.rules.remove(ann, [tea.id], new_key())
    assert await had(store, ann, places[0]) == ([TEA[0]], first_known)


async def test_the_bytes_of_removed_rules_are_counted(store: Store, people: People, raw: "redis.Redis") -> None:
    """A change reads no others then: to add up thousands at each change would hold up Redis for ten milliseconds.

    Those of a version that did not count are added up once.
    """
    ann = await people.user("ann")
    (tea,) = saved(await add(store, ann, TEA))
    user, removed = f"{{core}}:user:{ann}", f"{{core}}:removed_rules:{ann}"
    for turn in range(4):
        made = saved(await add(store, ann, *((f"{'x' * 1000} {turn} {nth}", "") for nth in range(200))))
        await store.rules.remove(ann, [one.id for one in made], new_key())
        for tag in ("a", "b"):
            await store.rules.change(ann, tea.id, (TEA[0], f"{tag}{turn}"), new_key())
            assert int(raw.hget(user, "removed_bytes") or 0) == sum(map(len, raw.zrange(removed, 0, -1)))
            if turn == 1:
                raw.hdel(user, "removed_bytes")
    assert raw.zcard(removed) < 2 * 200 + 2 * 4 + 2
    raw.hset(user, "removed_bytes", 7)  # so it is what counts
    await store.rules.change(ann, tea.id, TEA, new_key())
    assert int(raw.hget(user, "removed_bytes") or 200) < 200


async def test_removals_are_forgotten_that_left_the_log(store: Store, people: People, raw: "redis.Redis") -> None:
    ann = await people.user("ann")
    tea, nap, naps = saved(await add(store, ann, TEA, NAP, ("naps", "")))
    before = await store.log.head()
    await store.rules.remove(ann, [tea.id], new_key())
    first_removal = await store.log.head()
    await store.rules.remove(ann, [nap.id], new_key())
    assert raw.zcard(f"{{core}}:removed_rules:{ann}") == 2
    raw.xtrim("{core}:log", minid=(await store.log.head()).entry_id, approximate=False)
    floor = await store.log.floor()
    assert floor is not None
    await store.rules.remove(ann, [naps.id], new_key())
    assert await had(store, ann, floor.previous()) == ([NAP[0], "naps"], floor.previous())
    assert await had(store, ann, before) == ([NAP[0], "naps"], first_removal)
    raw.xtrim("{core}:log", maxlen=1, approximate=False)
    (last,) = saved(await add(store, ann, ("last", "")))
    raw.xtrim("{core}:log", maxlen=1, approximate=False)
    await store.rules.remove(ann, [last.id], new_key())
    assert raw.zcard(f"{{core}}:removed_rules:{ann}") == 2  # `last`, and where the known part begins
