"""Previews of rules: the recent events that a rule would have delivered and that the caller may see."""

from datetime import datetime
from typing import Any

import pytest

from tests.end_to_end.api import Answer, Api, mint
from tests.end_to_end.people import create_people, word
from tests.waiting import eventually


async def asked(api: Api, uid: str, rule: str, minutes: int = 5) -> Answer:
    body = {"rule": rule, "minutes": minutes}
    return await api.call("POST", "/v1/rules/preview", token=mint(uid), json=body)


async def preview(api: Api, uid: str, rule: str, minutes: int = 5) -> Any:
    """Return a complete preview. On a busy machine, where its second may not suffice, repeat the request."""

    async def complete() -> Any:
        answer = await asked(api, uid, rule, minutes)
        assert answer.status == 200, answer
        return answer.json if answer.json["complete"] else None

    return await eventually(complete, what="a complete preview")


def examples(told: Any) -> list[str]:
    return [one["status"]["id"] for one in told["examples"]]


async def test_matches_are_counted_and_the_newest_are_shown(api: Api) -> None:
    """All matches are counted. The ten latest are shown, latest first, each with the parts of the rule that matched."""
    author, asker = await create_people(api, 2)
    term = word()
    before = (await preview(api, asker.uid, term, 60))["scanned"]
    made = [await author.post(f"a {term}") for _ in range(12)]
    await author.post("nothing")
    async with await api.stream({"track": term, "since": "-5m"}, uid=asker.uid):
        told = await preview(api, asker.uid, f"{term} a", 60)
    assert told["matched"] == 12
    assert told["scanned"] >= before + 13
    assert examples(told) == made[:1:-1]
    assert told["examples"][0]["parts"] == [
        {"part": term, "indices": [[2, 2 + len(term)]]}, {"part": "a", "indices": [[0, 1]]},
    ]  # fmt: skip
    assert told["examples"][0]["status"]["message"] == f"a {term}"
    begin, end = (datetime.fromisoformat(told[name]) for name in ("from", "to"))
    assert (end - begin).total_seconds() >= 3600  # up to the moment when the server started to read
    assert told["per_minute"] == pytest.approx(12 / 60)
    assert (await preview(api, asker.uid, word()))["examples"] == []


async def test_near_misses_fail_in_one_part(api: Api) -> None:
    """Each tells its part. Those that fail in two are none. A rest that cannot be a rule makes none."""
    author, shy, asker = await create_people(api, 3)
    one, two, other = word(), word(), word()
    texts = (f"{one} {two}", f"{one} alone", f"alone {two}", "nothing", f"{other} {one}", other)
    posts = [await author.post(text) for text in texts]
    await shy.protect()
    await shy.post(f"{one} hidden")

    async def asked_near(rule: str) -> Any:
        body = {"rule": rule, "minutes": 5, "near_misses": True}
        return await api.done("POST", "/v1/rules/preview", token=mint(asker.uid), json=body)

    async def found(rule: str) -> Any:
        async def whole() -> Any:
            answer = await asked_near(rule)
            return answer if answer["complete"] else None

        return await eventually(whole, what="a complete preview")

    near = await found(f"{one} {two} is:quote OR {other} is:reply")
    assert (near["matched"], examples(near), near["near_missed"]) == (0, [], 3)
    assert [miss["missing"] for miss in near["near_misses"]] == ["is:reply", "is:reply", "is:quote"]
    near = await found(f"{one} {two} -is:reply")
    assert (near["matched"], examples(near), near["near_missed"]) == (1, posts[:1], 3)
    missing = [(miss["status"]["id"], miss["missing"]) for miss in near["near_misses"]]
    assert missing == [(posts[4], two), (posts[2], one), (posts[1], two)]
    assert near["near_misses"][2]["parts"] == [{"part": one, "indices": [[0, len(one)]]}]
    alone = await found(one)
    assert (alone["matched"], alone["near_missed"], alone["near_misses"]) == (3, 0, [])
    assert "near_misses" not in await preview(api, asker.uid, one)
    refused = await api.call("POST", "/v1/rules/preview", token=mint(asker.uid), json={
        "rule": f"{one} {two} from:nobody_here", "minutes": 5, "near_misses": True,
    })  # fmt: skip
    assert (refused.error, refused.json["error"]["column"]) == (
        (400, "invalid_parameter", "rule"), len(one) + len(two) + 3,
    )  # fmt: skip


async def test_hidden_and_deleted_posts_are_not_counted(api: Api) -> None:
    """Deleted posts and posts for other users are not counted either."""
    author, friend, stranger = await create_people(api, 3)
    await friend.follow(author)
    term = word()
    in_public, gone = await author.post(f"public {term}"), await author.post(f"gone {term}")
    await author.request("DELETE", f"statuses/{gone}")
    await author.protect()
    for_friends = await author.post(f"protected {term}")
    for uid, seen in (
        (friend.uid, [for_friends, in_public]),
        (stranger.uid, []),
        (author.uid, [for_friends, in_public]),
    ):
        told = await preview(api, uid, term)
        assert (told["matched"], examples(told)) == (len(seen), seen)


@pytest.mark.parametrize(
    ("rule", "minutes", "param", "column"),
    [("tea (", 5, "rule", 6), ("", 5, "rule", 1), ("tea", 0, "minutes", None), ("tea", 1441, "minutes", None)],
)
async def test_an_invalid_preview_is_refused(api: Api, rule: str, minutes: int, param: str, column: int | None) -> None:
    """The error says what is wrong and where."""
    answer = await asked(api, api.admin, rule, minutes)
    assert answer.error == (400, "invalid_parameter", param)
    assert answer.json["error"].get("column") == column
