"""Reader tokens: public streams without an account, within the rule of the token, and nothing else."""

import json
import random
import re
from typing import Any
from urllib.parse import urlencode

import pytest

from stream_server.client import Client, Post, RequestRefused
from stream_server.web.routes import ROUTE_TABLE
from tests.command_line import run
from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import CONTROL, Consumer, Message
from tests.end_to_end.people import Person, create_people, word
from tests.end_to_end.server import Server, environment
from tests.end_to_end.socket_consumer import open_socket
from tests.tiers import quick, seeds
from tests.waiting import eventually

ALLOWED = {("GET", "/v1/stream"), ("POST", "/v1/stream"), ("GET", "/v1/events"), ("POST", "/v1/events")}
ALLOWED |= {("POST", "/v1/streams/ticket")}


def reader(within: str | None = None, **claims: Any) -> str:
    """Return a reader token."""
    return mint(None, "stream", within=within, **claims)  # type: ignore[arg-type]  # a reader has no id


async def test_each_other_route_refuses_a_reader(api: Api, subtests: pytest.Subtests) -> None:
    token, tried = reader(), 0
    for row in ROUTE_TABLE:
        if row.scope == "" or row.dialect is not None or (row.method, row.path) in ALLOWED:
            continue
        with subtests.test(route=f"{row.method} {row.path}"):
            refused = await api.call(row.method, re.sub(r"\{\w+\}", "1", row.path), token=token)
            assert refused.error == (403, "insufficient_scope", None)
            tried += 1
    assert tried > 90
    for row in ROUTE_TABLE:
        if row.dialect is not None:
            with subtests.test(route=f"{row.method} {row.path}"):
                path = re.sub(r"\{\w+\}", "1", row.path)
                assert (await api.call(row.method, path, token=token)).status == 403


@pytest.mark.parametrize(
    "claims",
    [
        {"scope": "stream read"}, {"scope": "stream firehose"}, {"scope": "read"}, {"scope": ""}, {"within": 5},
        {"within": ""}, {"max_streams": 0}, {"max_streams": -1}, {"max_streams": "2"}, {"srv_session": "x"},
        {"sub": "1", "within": "tea"},
        {"sub": "1", "max_streams": 1}, {"sub": ""},
    ],
)  # fmt: skip
async def test_a_token_that_is_neither_of_a_user_nor_of_a_reader_is_refused(api: Api, claims: dict[str, Any]) -> None:
    given = {"scope": "stream", "sub": None} | claims
    token = mint(given.pop("sub"), given.pop("scope"), **given)
    refused = await api.call("GET", "/v1/events?track=tea&wait=0", token=token)
    assert refused.error == (401, "invalid_token", None)


async def test_a_rule_by_author_shows_what_the_author_likes_unless_it_says_no(api: Api) -> None:
    """An event that matches shows the public statuses in it, as the page says."""
    ours, other = await create_people(api, 2)
    rule = f"from:{ours.uid}"
    asked = {"follow": f"{ours.uid},{other.uid}", "kinds": "post,delete,like,comment"}
    outside = await other.post("outside")
    async with await api.stream(asked, token=reader(rule)) as all_events, await api.stream(
        asked, token=reader(f'{rule} kinds:"post,delete" -is:repost -is:quote')
    ) as own:
        await other.post("not shown")
        await ours.request("PUT", f"users/me/likes/{outside}")
        await ours.request("POST", f"statuses/{outside}/comments", message="look")
        await ours.post("", origin=outside)
        await ours.post("look", origin=outside)
        mine = await ours.post("mine")
        await api.delete(ours.uid, mine)
        for stream in (all_events, own):
            await stream.until(lambda s: s.of("delete"))
        assert own.received == [("post", mine), ("delete", mine)]
        assert [event["kind"] for event in all_events.events] == ["like", "comment", *["post"] * 3, "delete"]
        assert not any(event["status"]["message"] == "not shown" for event in all_events.events[:5])


async def test_the_python_client_reads_with_a_reader_token(api: Api, server: Server) -> None:
    person, mine = Person(api, await api.user()), word()
    start = await api.head()
    await person.post(mine)
    inside = await person.post(mine, meta={"site": "a"})
    async with Client(server.address, reader("meta.site:a")) as client:
        async for event in client.stream(track=mine, since=start):
            assert isinstance(event, Post)
            assert event.status.id == inside
            break
        with pytest.raises(RequestRefused) as refused:
            await client.me()
        assert refused.value.status == 403


async def test_what_needs_a_user_or_another_scope_is_refused(api: Api) -> None:
    for query in ("rules=saved", "follow=@me", "firehose=true", "subscription=mine"):
        for path in ("/v1/stream", "/v1/events"):
            assert (await api.call("GET", f"{path}?{query}", token=reader())).error[:2] == (403, "insufficient_scope")
    for query in ("/v1/stream?subscription=work", "/v1/events?subscription=work&cursor=1714067200000-0.1"):
        assert (await api.call("GET", query, token=reader())).error == (403, "insufficient_scope", None)
    for within in ("tea OR", "has:media", "nothing:x"):
        refused = await api.call("GET", "/v1/stream?track=tea", token=reader(within))
        assert refused.error == (403, "insufficient_scope", None)
        assert "`within` is not a rule" in refused.json["error"]["message"]
    assert (await api.call("GET", "/v1/stream?track=tea&within=milk", token=reader())).error[1] == "unknown_parameter"


class Blog:
    """Random posts of a few people, of which some are in a blog, by its name in ``meta``."""

    def __init__(self, seed: int, people: list[Person], group: str) -> None:
        self.source, self.people, self.group = random.Random(seed), people, group
        self.site, self.word = f"blog{people[0].uid}", word()
        self.public: set[str] = set()
        self.inside: set[str] = set()
        self.left = 0
        """Number of posts that were edited, and left the blog while a stream looked on."""
        self.posts: list[tuple[Person, str]] = []
        self.original: dict[str, str] = {}
        """The id of the status that each repost without words repeats. A delete of that status hides the repost."""

    async def post(self) -> None:
        """Post, repost, quote, edit or delete. One person is protected, and some posts are in a private group."""
        person, chance = self.source.choice(self.people), self.source.random()
        if chance < 0.15 and self.posts:
            author, status_id = self.posts.pop(self.source.randrange(len(self.posts)))
            await author.request("DELETE", f"statuses/{status_id}")
            self.posts = [each for each in self.posts if self.original.get(each[1]) != status_id]
            return
        site = self.source.choice((self.site, self.site.upper(), [self.site, "x"], "other", None))
        more: dict[str, Any] = {"meta": None if site is None else {"site": site}}
        with_words = [each for each in self.posts if each[1] not in self.original]
        if chance > 0.75 and with_words:
            author, status_id = self.source.choice(with_words)
            await author.request("PATCH", f"statuses/{status_id}", **more)
            if site not in ("other", None):
                self.inside.add(status_id)
            return
        reposted = [each for each in self.posts if each[1] in self.public]
        if chance < 0.35 and reposted:
            more["origin"] = self.source.choice(reposted)[1]
        elif chance < 0.5 and person is self.people[2]:
            more["group"] = self.group
        text = "" if "origin" in more and chance < 0.25 else f"{self.word} #tag"
        status_id = await person.post(text, **more)
        self.posts.append((person, status_id))
        if not text:
            self.original[status_id] = self.original.get(more["origin"], more["origin"])
        is_inside = self.original[status_id] in self.inside if not text else site not in ("other", None)
        if is_inside:
            self.inside.add(status_id)
        if person is not self.people[1] and "group" not in more:
            self.public.add(status_id)

    async def mark(self) -> str:
        """Post into the blog, in English, so that each filter finds it. Returns the id."""
        mark = await self.people[0].post(f"{self.word} mark", lang="en", meta={"site": self.site})
        self.public.add(mark)
        self.inside.add(mark)
        return mark

    def filters(self) -> list[dict[str, str]]:
        """Filters that ask for as much as they can. Each finds the marks."""
        ids = ",".join(person.uid for person in self.people)
        return [
            {"track": self.word}, {"track": self.word, "kinds": "post,edit,delete"},
            {"follow": ids, "kinds": "post,edit,delete,like,follow,unfollow,protect,unprotect"},
            {"rule": f"{self.word} OR from:{self.people[1].uid}"},
            {"rule": f"from:{self.people[0].uid} OR -is:reply #tag"},
            {"rule": f"meta.site:other OR meta.site:{self.site}", "explain": "true"}, {"sample": "100"},
            {"track": self.word, "locations": "-180,-90,180,90", "language": "en,und", "kinds": "post,edit,delete"},
        ]  # fmt: skip

    def check(self, messages: list[Message]) -> int:
        """Check that each event shows a public post that is in the blog, or the ids of one that was."""
        for message in messages:
            assert message["kind"] in {"post", "edit", "delete"}, message
            status = message["left"] if "left" in message else message["status"]
            assert status["id"] in self.public & self.inside, message
            if message["kind"] == "delete" or "left" in message:
                assert "message" not in status
                self.left += "left" in message
                continue
            shown = status if status["message"] else status["original"]
            site = (shown["meta"] or {}).get("site") if shown else self.site
            assert self.site in [str(each).lower() for each in (site if isinstance(site, list) else [site])], message
        return len(messages)


@pytest.mark.parametrize("seed", seeds(20, first_tier=1, second_tier=4))
async def test_nothing_outside_within_and_nothing_private_arrives(api: Api, seed: int) -> None:
    """Live, replayed and polled, by server-sent events, JSON lines and WebSockets, whatever the filters are."""
    people = await create_people(api, 4)
    await people[1].protect()
    group = (await people[2].request("POST", "groups", name="g", kind="private"))["id"]
    blog = Blog(seed, people, group)
    token, start = reader(f"meta.site:{blog.site}"), await api.head()
    live: list[Consumer] = []
    for nth, filters in enumerate(blog.filters()):
        live.append(await api.stream(filters, token=token, framing=("ndjson", "sse")[nth % 2]))
        live.append(await open_socket(api, urlencode(filters), token=token))
    updated = await open_socket(api, "track=zebra", token=token)
    assert (await updated.ask("update", parameters={"track": blog.word}))["kind"] == "effective"
    live.append(updated)
    for _ in range(40 if quick() else 120):
        await blog.post()
    mark, received = await blog.mark(), 0
    for consumer in live:
        await consumer.until(lambda c: any(m.get("status", {}).get("id") == mark for m in c.messages))
        received += blog.check([m for m in consumer.messages if m["kind"] not in CONTROL])
        await consumer.close()
    for filters in blog.filters():
        async with await api.stream({**filters, "since": start}, token=token) as replayed:
            await replayed.until(lambda c: any(m.get("status", {}).get("id") == mark for m in c.messages))
            received += blog.check(replayed.events)
        page = await api.done("GET", "/v1/events", token=token, params={**filters, "since": start, "limit": "1000"})
        received += blog.check([m for m in page["events"] if m["kind"] not in CONTROL])
    assert received > 100
    assert blog.left > 0


async def test_a_reader_looks_back_within_the_rule_at_what_is_public(api: Api) -> None:
    """The pages before a place have what a stream of the reader would have had, and nothing protected."""
    author, mine = Person(api, await api.user()), word()
    await author.post(f"outside {mine}", meta={"site": "b"})
    inside = await author.post(f"inside {mine}", meta={"site": "a"})
    path = f"/v1/events?track={mine}&kinds=post&before=9999-12-31T00:00:00Z"
    found = await api.done("GET", path, token=reader("meta.site:a"))
    assert [event["status"]["id"] for event in found["events"]] == [inside]
    await author.protect()
    assert (await api.done("GET", path, token=reader()))["events"] == []


async def test_a_socket_keeps_within_when_its_token_and_filters_change(api: Api) -> None:
    person = Person(api, await api.user())
    mine = word()
    socket = await open_socket(api, f"track={mine}", token=reader("meta.site:a"))
    other = await socket.ask("token", token=reader("meta.site:b"))
    assert (other["kind"], other["error"]["code"]) == ("error", "not_yours")
    for wrong in (reader(), mint(person.uid)):
        assert (await socket.ask("token", token=wrong))["error"]["code"] == "not_yours"
    assert (await socket.ask("token", token=reader("meta.site:a")))["kind"] == "token"
    assert (await socket.ask("update", parameters={"rules": "saved"}))["error"]["code"] == "insufficient_scope"
    await socket.ask("update", parameters={"follow": person.uid})
    await person.post("outside", meta={"site": "b"})
    inside = await person.post("inside", meta={"site": "A"})
    await socket.until(lambda c: c.events)
    assert [event["status"]["id"] for event in socket.events] == [inside]
    await socket.close()


async def test_a_socket_counts_for_its_next_token(api: Api) -> None:
    first, full, last = (reader(max_streams=most) for most in (1, 1, 2))
    socket = await open_socket(api, "track=tea", token=first)
    other = await open_socket(api, "track=tea", token=full)
    refused = await socket.ask("token", token=full)
    assert (refused["kind"], refused["error"]["code"]) == ("error", "rate_limited")
    for token in (first, last, last):
        assert (await socket.ask("token", token=token))["kind"] == "token"
    async with await api.stream({"track": "tea"}, token=first), await api.stream({"track": "tea"}, token=last):
        for token in (first, last, full):
            assert (await api.call("GET", "/v1/stream?track=tea", token=token)).error[1] == "rate_limited"
    await socket.close()
    await other.close()


async def test_the_first_message_of_a_socket_may_bring_the_token_of_a_reader(api: Api) -> None:
    for path, is_open in (("/v1/stream", True), ("/v1/stream/user", False)):
        socket = await open_socket(api, "track=tea" if is_open else "", token=None, path=path)
        await socket.socket.send(json.dumps({"op": "token", "token": reader()}))
        await socket.until(lambda c: c.messages)
        assert socket.messages[0]["kind"] == ("hello" if is_open else "error")
        await socket.close()


async def test_a_ticket_of_a_reader_keeps_within(api: Api) -> None:
    person, mine = Person(api, await api.user()), word()
    given = (await api.done("POST", "/v1/streams/ticket", token=reader("meta.site:a")))["ticket"]
    answer = await api.session.get(f"/v1/stream?track={mine}&ticket={given}", headers={"Accept": "text/event-stream"})
    async with Consumer(answer, "sse") as stream:
        await stream.until(lambda s: s.messages)
        await person.post(mine)
        inside = await person.post(mine, meta={"site": "a"})
        await stream.until(lambda s: s.events)
        assert stream.received == [("post", inside)]


async def test_a_revoked_reader_token_ends_its_streams_and_no_others(api: Api, server: Server) -> None:
    token = reader()
    async with await api.stream({"track": "tea"}, token=token) as gone, await api.stream(
        {"track": "tea"}, token=reader()
    ) as stays:
        outcome = run("token", "--data-dir", server.data, "--revoke", token, env=environment())
        assert outcome.code == 0, outcome
        await gone.until(lambda s: s.of("goodbye"))
        assert gone.of("goodbye")[0]["code"] == "token_revoked"
        assert (await api.call("GET", "/v1/stream?track=tea", token=token)).error[:2] == (401, "token_revoked")
        assert not stays.of("goodbye")
        await stays.reached(await api.head())


async def test_an_expired_reader_token_ends_its_stream(api: Api) -> None:
    async with await api.stream({"track": "tea"}, token=reader(ttl=4)) as stream:
        await stream.until(lambda s: s.of("goodbye"))
        assert stream.of("goodbye")[0]["code"] == "token_expired"


async def test_visitors_are_not_streams_of_one_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Server(tmp_path_factory.mktemp("server"), "--limits", "on", "--streams-per-user", "2") as running:
        async with Api(running) as api:
            token = reader()
            streams = [await api.stream({"track": f"tea{nth}"}, token=token) for nth in range(4)]
            ours = [await api.stream({"track": "tea"}, uid=api.admin) for _ in range(3)]
            await ours[0].until(lambda s: s.of("goodbye"))
            await api.post(await api.user(), " ".join(f"tea{nth}" for nth in range(4)))
            for stream in streams:
                await stream.until(lambda s: s.events)
                await stream.close()
            for stream in ours:
                await stream.close()


async def test_a_token_limits_its_streams(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Server(tmp_path_factory.mktemp("server"), "--limits", "on") as running:
        async with Api(running) as api:
            token = reader(max_streams=2)
            streams = [await api.stream({"track": f"tea{nth}"}, token=token) for nth in range(2)]
            refused = await api.call("GET", "/v1/stream?track=tea", token=token)
            assert refused.error[:2] == (429, "rate_limited")
            async with await api.stream({"track": "tea"}, token=reader(max_streams=1)):
                pass
            await streams.pop().close()

            async def opens() -> bool:
                answer = await api.session.get("/v1/stream?track=tea", headers={"Authorization": f"Bearer {token}"})
                answer.close()
                return answer.status == 200

            await eventually(opens, what="a free slot")
            await streams.pop().close()


async def test_the_command_makes_reader_tokens(api: Api, server: Server) -> None:
    person, mine = Person(api, await api.user()), word()
    options = ("token", "--data-dir", server.data, "--reader", "--within", "META.site:Blog", "--max-streams", "3")
    outcome = run(*options, "--ttl", "1d", "--json", env=environment())
    made = json.loads(outcome.out)
    assert made.items() >= {"within": "meta.site:blog", "max_streams": 3, "expires_in": 86_400}.items()
    async with await api.stream({"track": mine}, token=made["token"]) as stream:
        await person.post(mine)
        inside = await person.post(mine, meta={"site": "blog"})
        await stream.until(lambda s: s.events)
        assert stream.received == [("post", inside)]
    for wrong in (
        ("--reader", "--within", "tea OR"), ("--reader", "--user", "ada"), ("--user", "ada", "--within", "tea"), (),
        ("--user", "ada", "--max-streams", "1"), ("--revoke", "x", "--reader"), ("--reader", "--within", ""),
        ("--reader", "--scope", "stream read"), ("--reader", "--create"), ("--revoke", "x", "--create"),
    ):  # fmt: skip
        refused = run("token", "--data-dir", server.data, *wrong, env=environment())
        assert (refused.code, refused.out) == (2, "")
