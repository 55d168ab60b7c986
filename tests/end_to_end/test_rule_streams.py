"""Streams by rules over HTTP: rules given in the request or saved, changed during the stream, and explained."""

import asyncio

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer


def matched(consumer: Consumer) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        (post["status"]["message"], [(mark["id"], mark["tag"]) for mark in post["matched"]])
        for post in consumer.of("post")
    ]


async def save(api: Api, uid: str, *rules: str) -> list[str]:
    body = {"rules": [{"rule": rule, "tag": f"about {rule}"} for rule in rules]}
    made = await api.done("POST", "/v1/rules", token=mint(uid), json=body)
    return [rule["id"] for rule in made["rules"]]


async def test_rules_are_written_with_the_stream(api: Api) -> None:
    """A stream has several rules, with and without tags. The last member of each message names all matching rules."""
    uid = await api.user()
    rules = [f"hot:tea from:{uid}", f"from:{uid} -coffee", f'"green leaf" from:{uid}']
    async with await api.stream([("rule", rule) for rule in rules]) as consumer:
        await api.post(uid, "tea")
        await api.post(uid, "coffee")
        await api.post(uid, "a green leaf, with coffee")
        await consumer.until(lambda c: len(c.of("post")) == 2)
        assert matched(consumer) == [
            ("tea", [("r1", "hot"), ("r2", "")]),
            ("a green leaf, with coffee", [("r3", "")]),
        ]
        assert list(consumer.of("post")[0])[-1] == "matched"


async def test_saved_rules_change_an_open_stream_at_their_log_position(api: Api) -> None:
    """A change of saved rules takes effect at its position in the log. Another user's stream does not change."""
    uid, other = await api.user(), await api.user()
    (tea,) = await save(api, uid, f"tea from:{uid}")
    async with (
        await api.stream({"rules": "saved"}, uid=uid) as consumer,
        await api.stream({"follow": uid}, uid=other) as everything,
    ):
        await api.post(uid, "tea one")
        (milk,) = await save(api, uid, f"milk from:{uid}")
        await api.post(uid, "milk two")
        await api.done("DELETE", f"/v1/rules/{tea}", token=mint(uid))
        await api.post(uid, "tea three")
        await api.post(uid, "milk four")
        await everything.until(lambda c: len(c.of("post")) == 4)
        await consumer.until(lambda c: len(c.of("post")) == 3)
        told = [m["kind"] for m in consumer.messages if m["kind"] in ("post", "effective")]
        assert told == ["post", "effective", "post", "effective", "post"]
        assert [ids for _, [(ids, _)] in matched(consumer)] == [tea, milk, milk]
        first, second = consumer.of("effective")
        assert (first["added"], first["removed"], first["rules"]) == ([milk], [], 2)
        assert (second["added"], second["removed"], second["rules"]) == ([], [tea], 1)
        assert everything.of("effective") == []


async def test_a_poll_takes_rules(api: Api) -> None:
    """Its events have `matched`, and with `explain=true` the reasons."""
    uid = await api.user()
    token, params = mint(uid), {"rule": f"tea from:{uid}", "explain": "true"}
    start = (await api.done("GET", "/v1/events", token=token, params={**params, "wait": "0"}))["cursor"]
    await api.post(uid, "no")
    await api.post(uid, "green tea")
    answer = await api.done("GET", "/v1/events", token=token, params={**params, "since": start})
    (event,) = [event for event in answer["events"] if event["kind"] == "post"]
    (mark,) = event["matched"]
    assert (mark["id"], mark["filter"]) == ("r1", "rule")
    assert {part["part"]: part["indices"] for part in mark["parts"]} == {"tea": [[6, 9]], f"from:{uid}": []}


async def test_a_bad_rule_is_refused_with_its_column(api: Api) -> None:
    """The refusal comes before the first byte of the stream and names the parameter."""
    for rule, column in (("tea OR", 7), ("\ufe0f", 2), ("(tea", 5), ("has:media", 1), ("tea frm:5", 5)):
        answer = await api.call("GET", "/v1/stream", token=mint(api.admin), params={"rule": rule})
        assert answer.error == (400, "invalid_parameter", "rule"), (rule, answer)
        assert answer.json["error"]["column"] == column, answer
    answer = await api.call("GET", "/v1/stream", token=mint(api.admin), params={"rules": "others"})
    assert answer.error == (400, "invalid_parameter", "rules")
    answer = await api.call("GET", "/v1/stream", token=mint(api.admin), params={"track": "a", "explain": "yes"})
    assert answer.error == (400, "invalid_parameter", "explain")


async def test_a_stream_does_not_miss_rules_saved_while_it_opens(api: Api) -> None:
    """Many long rules take a moment to load. A change in this moment has a position after the stream's beginning."""
    uid = await api.user()
    for batch in range(4):
        rules = [" OR ".join(f"w{batch}x{n}y{m}" for m in range(80)) for n in range(50)]
        body = {"rules": [{"rule": rule} for rule in rules]}
        await api.done("POST", "/v1/rules", token=mint(uid), json=body)
    opening = asyncio.create_task(api.stream({"rules": "saved"}, uid=uid))
    meanwhile = 0
    while not opening.done():
        await save(api, uid, f"zebra{meanwhile}")
        meanwhile += 1
    assert meanwhile > 1, "no rule was saved while the stream opened"
    async with await opening as consumer:
        posted = [f"a zebra{n}" for n in range(meanwhile)]
        for text in posted:
            await api.post(uid, text)
        await consumer.until(lambda c: c.of("post") and c.of("post")[-1]["status"]["message"] == posted[-1])
        assert [text for text, _ in matched(consumer)] == posted


async def test_from_matches_every_kind_of_event_of_a_user(api: Api) -> None:
    """The operator `from:` works by id and by login, also for other kinds of events."""
    author, uid = await api.user(), await api.user()
    token = mint(uid)
    login = (await api.done("GET", "/v1/users/me", token=token))["login"]
    post = await api.post(author, "tea")
    kinds = "post,follow,like,comment,user_update"
    async with (
        await api.stream({"rule": f"from:{uid}", "kinds": kinds}) as by_id,
        await api.stream({"rule": f"from:{login}", "kinds": kinds}) as by_login,
    ):
        await api.follow(uid, author)
        await api.done("PUT", f"/v1/users/me/likes/{post['id']}", token=token)
        await api.done("POST", f"/v1/statuses/{post['id']}/comments", token=token, json={"message": "fine"})
        await api.done("PATCH", "/v1/users/me", token=token, json={"bio": "drinks tea"})
        await api.post(uid, "more tea")
        for consumer in (by_id, by_login):
            await consumer.until(lambda c: c.of("post"))
            assert [event["kind"] for event in consumer.events] == ["follow", "like", "comment", "user_update", "post"]


async def test_a_stream_is_told_of_terms_that_never_match_and_hears_the_others(api: Api) -> None:
    """The warning comes with `hello`, and the words of the other phrases still match."""
    uid = await api.user()
    async with await api.stream({"track": "C# 1\ufe0f\u20e3 covid-19,#tag's,:)"}) as consumer:
        post = await api.post(uid, "A COVID-19-related 1\ufe0f\u20e3 in C#, #tag's :)")
        await consumer.until(lambda c: c.of("post"))
        (told,) = consumer.of("warning")
        assert (told["code"], told["filter"], told["terms"]) == ("never_matches", "track", ["#tag's", ":)"])
        assert consumer.of("post")[0]["status"]["id"] == post["id"]


async def test_a_stream_of_saved_rules_is_told_of_those_that_contradict_themselves(api: Api) -> None:
    uid = await api.user()
    saved = [{"rule": "milk -milk"}, {"rule": "milk"}]
    await api.done("POST", "/v1/rules", token=mint(uid), json={"rules": saved})
    async with await api.stream({"rules": "saved"}, token=mint(uid)) as consumer:
        await consumer.until(lambda c: c.of("warning"))
        (told,) = consumer.of("warning")
        assert (told["code"], told["filter"], told["terms"]) == ("never_matches", "rules", ["milk -milk"])
