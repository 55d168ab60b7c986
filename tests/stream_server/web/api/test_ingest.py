"""Ingest as a site uses it: its own ids, answers in order, lines that come twice, and lines that are wrong."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web

from stream_server.errors import Unavailable
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.ingest import Ingest, IngestWrite
from stream_server.web.api.ingest import IngestExchange
from stream_server.web.http import app_keys
from tests.stream_server import tokens
from tests.stream_server.web.world import World
from tests.waiting import eventually

NDJSON = {"Content-Type": "application/x-ndjson"}

ADA = {"op": "user", "user": {"foreign_id": "u1", "login": "ada", "name": "Ada", "bio": "counts"}}
BOB = {"op": "user", "user": {"foreign_id": "at://bob/2"}}
HELLO: dict[str, Any] = {"op": "post", "status": {"foreign_id": "p1", "author": "u1", "message": "hello #tea @ada"}}
REPLY = {
    "op": "post",
    "status": {
        "foreign_id": "p2", "author": "at://bob/2", "message": "hi", "in_reply_to": "p1", "meta": {"foreign_id": "no"},
        "posted": "2020-02-29T13:00:00.5+01:00",
    },
}  # fmt: skip
FOLLOW = {"op": "follow", "source": "at://bob/2", "target": "u1"}
UNFOLLOW = {**FOLLOW, "op": "unfollow"}
ALL = (ADA, BOB, HELLO, REPLY, FOLLOW)


def body_of(*lines: Any) -> bytes:
    return b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)


async def ingest(world: World, sub: str, *lines: Any) -> list[Any]:
    answer = await world.call("POST", "/v1/ingest", sub, scope="ingest", data=body_of(*lines), headers=NDJSON)
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.body.splitlines()]


def post(**members: Any) -> dict[str, Any]:
    return {"op": "post", "status": {"foreign_id": "x", "author": "u1", "message": "a", **members}}


def codes(answers: list[Any]) -> list[tuple[int, str, str | None]]:
    return [(a["line"], a["error"]["code"], a["error"].get("param")) for a in answers]


async def test_a_site_names_people_and_statuses_by_its_own_ids(world: World) -> None:
    site = await world.user("site")
    answers = await ingest(world, site, *ALL)
    users, others = [["cursor", "id", "line", "outcome"]], [["cursor", "id", "line"]]
    assert [sorted(answer) for answer in answers] == users * 2 + others * 3
    ada, bob, hello, reply, target = (answer["id"] for answer in answers)
    assert target == ada
    shown = (await world.call("GET", f"/v1/statuses/{reply}", site)).json
    assert (shown["foreign_id"], shown["uid"], shown["in_reply_to"]) == ("p2", bob, hello)
    assert shown["posted"] == "2020-02-29T12:00:00.500Z"
    profile = (await world.call("GET", f"/v1/users/{ada}", bob)).json
    assert (profile["foreign_id"], profile["name"], profile["bio"], profile["followers"]) == ("u1", "Ada", "counts", 1)
    assert (await world.call("GET", f"/v1/users/{bob}", site)).json["login"] == f"u{bob}"
    assert world.kinds() == ["post", "post", "notification", "follow", "notification"]
    home = (await world.call("GET", "/v1/timelines/home", bob)).json["statuses"]
    assert [status["foreign_id"] for status in home] == ["p2", "p1"]
    deeds = (await world.call("GET", "/v1/admin/audit", site, scope="admin")).json["deeds"]
    assert [(deed["deed"], deed["by"], deed["on"]) for deed in deeds] == [("ingest", site, site)]


async def test_a_line_that_came_before_is_answered_as_then(world: World) -> None:
    site = await world.user("site")
    first = await ingest(world, site, *ALL)
    state = world.state()[1:]
    again = await ingest(world, site, *ALL)
    assert [answer.pop("outcome") for answer in (*first[:2], *again[:2])] == ["created"] * 2 + ["unchanged"] * 2
    assert again == first
    assert world.state()[1:] == state, "no entry, no id and no job"
    deletion = {"op": "delete", "status": "p1"}
    (gone,) = await ingest(world, site, deletion)
    assert gone["id"] == first[2]["id"]
    assert [a["cursor"] for a in await ingest(world, site, HELLO, deletion)] == [first[2]["cursor"], gone["cursor"]]
    assert world.kinds().count("post") == 2
    entry = json.loads(world.redis.xrevrange("{core}:log", count=1)[0][1][b"e"])["wire"]["status"]
    assert entry == {"id": gone["id"], "foreign_id": "p1", "uid": first[0]["id"], "deleted": True}


async def test_a_change_with_an_id_counts_once_and_one_without_by_its_effect(world: World) -> None:
    site = await world.user("site")
    await ingest(world, site, ADA, BOB)
    named = [{**FOLLOW, "id": "f1"}, {**UNFOLLOW, "id": "f2"}, {**FOLLOW, "id": "f3"}]
    answers = await ingest(world, site, *named)
    assert await ingest(world, site, *named) == answers
    assert [kind for kind in world.kinds() if kind.endswith("follow")] == ["follow", "unfollow", "follow"]
    again, *others = await ingest(world, site, FOLLOW, UNFOLLOW, FOLLOW)
    assert again["cursor"] > answers[2]["cursor"], "the head: the state is as this line wants it"
    assert others[0]["cursor"] < others[1]["cursor"]
    assert [kind for kind in world.kinds() if kind.endswith("follow")][3:] == ["unfollow", "follow"]


async def test_a_profile_keeps_its_foreign_id_when_it_changes(world: World) -> None:
    (ada,) = await ingest(world, await world.user("site"), ADA)
    tricky = '","protected":true,"foreign_id":"x"'
    changed = (await world.call("PATCH", "/v1/users/me", ada["id"], json={"bio": tricky, "protected": True})).json
    assert (changed["foreign_id"], changed["bio"], changed["protected"]) == ("u1", tricky, True)


async def test_wrong_lines_are_named_and_do_not_stop_the_others(world: World) -> None:
    site = await world.user("site")
    wrong: list[tuple[Any, str, str | None]] = [
        (b"{", "malformed_body", None),
        (b"[]", "malformed_body", None),
        (b'{"op":"user","user":{"foreign_id":"\xff"}}', "malformed_body", None),
        (b"[" * 300, "malformed_body", None),
        (b'"' + b"x" * 70_000 + b'"', "too_large", None),
        ({}, "missing_parameter", "op"),
        ({"op": "like"}, "invalid_parameter", "op"),
        ({"op": "user"}, "missing_parameter", "user"),
        ({"op": "user", "user": {"foreign_id": "a,b"}}, "invalid_parameter", "user.foreign_id"),
        ({"op": "user", "user": {"foreign_id": "u3", "email": "a@b.c"}}, "unknown_parameter", "user.email"),
        (post(author="u9"), "not_found", "status.author"),
        (post(message=""), "missing_parameter", "status.message"),
        (post(message="a" * 9999), "invalid_parameter", "status.message"),
        (post(posted="2999-01-01T00:00:00Z"), "invalid_parameter", "status.posted"),
        (post(posted="2026-02-31T00:00:00Z"), "invalid_parameter", "status.posted"),
        (post(posted="yesterday"), "invalid_parameter", "status.posted"),
        (post(group="1"), "invalid_parameter", "status.group"),
        (post(message="", origin="p9"), "not_found", "status.origin"),
        ({"op": "delete", "status": "p9"}, "not_found", "status"),
        ({"op": "follow", "source": "u1", "target": "u1"}, "invalid_parameter", "target"),
        ({"op": "follow", "source": "u1", "target": "u9"}, "not_found", "target"),
        ({"op": "unfollow", "source": "u9", "target": "u1"}, "not_found", "source"),
    ]  # fmt: skip
    answers = await ingest(world, site, ADA, *(line for line, *_ in wrong), b"", HELLO)
    assert codes(answers[1:-1]) == [(n, code, param) for n, (_, code, param) in enumerate(wrong, 2)]
    assert answers[-1]["line"] == len(wrong) + 3, "the empty line is counted and not answered"
    assert "id" in answers[-1]
    assert world.kinds() == ["post"]


async def test_a_refused_line_keeps_its_id_free(world: World) -> None:
    site = await world.user("site")
    refused, *others = await ingest(world, site, HELLO, ADA, HELLO)
    assert codes([refused]) == [(1, "not_found", "status.author")]
    assert ["id" in answer for answer in others] == [True, True]


async def test_a_request_without_the_right_to_ingest_is_refused(world: World) -> None:
    site = await world.user("site")
    refusals: list[tuple[dict[str, Any], tuple[int, str, str | None]]] = [
        ({"headers": NDJSON}, (403, "insufficient_scope", None)),
        ({"headers": {"Content-Type": "application/json"}, "scope": "ingest"},
         (415, "unsupported_media_type", "Content-Type")),
        ({"headers": {**NDJSON, "Content-Encoding": "gzip"}, "scope": "ingest"},
         (415, "unsupported_media_type", "Content-Encoding")),
    ]  # fmt: skip
    for more, expected in refusals:
        assert (await world.call("POST", "/v1/ingest", site, data=b"x", **more)).error == expected


class Dialogue:
    """An ingest whose lines are sent one by one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, address: tuple[str, int], sub: str) -> "Dialogue":
        reader, writer = await asyncio.open_connection(*address)
        head = f"POST /v1/ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tokens.fresh(sub, 'ingest')}\r\n"
        writer.write(f"{head}Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        return cls(reader, writer)

    async def ask(self, part: bytes) -> Any:
        self.send(part)
        return await self.answer()

    def send(self, part: bytes) -> None:
        self._writer.write(b"%x\r\n%b\r\n" % (len(part), part))

    async def answer(self) -> Any:
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        return json.loads((await self._reader.readexactly(size + 2))[:-2] or b"null")

    def close(self) -> None:
        self._writer.close()

    def break_off(self) -> None:
        self._writer.transport.abort()


async def test_answers_come_while_the_body_arrives(world: World, address: tuple[str, int]) -> None:
    talk = await Dialogue.open(address, await world.user("site"))
    assert (await talk.ask(body_of(ADA)))["line"] == 1
    half = body_of(HELLO)
    assert (await talk.ask(b"\r\n" + half + body_of(BOB)[:9]))["line"] == 3
    assert (await talk.ask(body_of(BOB)[9:]))["line"] == 4
    talk.close()


async def test_an_ingest_ends_with_the_rights_of_its_token(
    world: World, app: web.Application, address: tuple[str, int]
) -> None:
    """A line of a suspended author is only refused, and names the author."""
    site, boss, suspensions = await world.user("site"), await world.user("boss"), app[app_keys.STORE].suspensions
    talk = await Dialogue.open(address, site)
    ada = (await talk.ask(body_of(ADA)))["id"]
    await suspensions.suspend(boss, ada, IdempotencyKey.generate())
    assert codes([await talk.ask(body_of(HELLO))]) == [(2, "suspended", "status.author")]
    assert (await talk.ask(body_of(BOB)))["line"] == 3
    await suspensions.suspend(boss, site, IdempotencyKey.generate())
    assert codes([await talk.ask(body_of(HELLO))]) == [(4, "suspended", None)]
    assert await talk.answer() is None, "the answer has ended"
    talk.close()


async def test_an_ingest_ends_with_the_account_of_its_token(
    world: World, app: web.Application, address: tuple[str, int]
) -> None:
    site, boss = await world.user("site"), await world.user("boss")
    talk = await Dialogue.open(address, site)
    assert (await talk.ask(body_of(ADA)))["line"] == 1
    await app[app_keys.STORE].accounts.delete(boss, site, IdempotencyKey.generate())
    assert codes([await talk.ask(body_of(HELLO))]) == [(2, "account_deleted", None)]
    talk.close()


async def test_a_failure_of_the_store_is_the_last_answer(
    world: World, app: web.Application, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = await world.user("site")
    talk = await Dialogue.open(address, site)
    assert (await talk.ask(body_of(ADA)))["line"] == 1

    async def refuse(_: object) -> None:
        raise Unavailable("Redis is away")

    monkeypatch.setattr(app[app_keys.STORE].ingest, "write", refuse)
    assert codes([await talk.ask(body_of(b"{", HELLO))]) == [(2, "unavailable", None)]
    assert await talk.answer() is None
    talk.close()
    assert world.kinds() == []


class HeldWrites:
    """Stands before the store of ``app``: holds back the result of each write until `release`, and notes all lines.

    With a ``failure``, that is the result, and nothing is written.
    """

    def __init__(self, app: web.Application, patch: pytest.MonkeyPatch, failure: Unavailable | None = None) -> None:
        self._store: Ingest = app[app_keys.STORE].ingest
        self._write, self._delete = self._store.write, self._store.delete
        self._failure = failure
        self._let_go = asyncio.Event()
        self.batches: list[list[str]] = []
        self.parsed: list[str] = []
        self.release = self._let_go.set
        patch.setattr(self._store, "write", self._hold)
        patch.setattr(self._store, "delete", self._parse)

    def _parse(self, foreign_id: str) -> IngestWrite:
        self.parsed.append(foreign_id)
        return self._delete(foreign_id)

    async def _hold(self, lines: Sequence[IngestWrite]) -> Any:
        self.batches.append([line.name for line in lines])
        result = None if self._failure else await self._write(lines)
        await self._let_go.wait()
        if self._failure:
            raise self._failure
        return result

    async def with_two_batches(self, talk: Dialogue) -> None:
        """Send HELLO, and while it is written its deletion and half a line. Wait until that has been parsed."""
        talk.send(body_of(HELLO))
        await eventually(lambda: self.batches == [["p1"]])
        talk.send(body_of({"op": "delete", "status": "p1"}) + body_of(BOB)[:9])
        await eventually(lambda: self.parsed == ["p1"], what="the next batch is parsed while this one is written")


async def test_nothing_behind_a_failure_is_written_though_it_was_parsed(
    world: World, app: web.Application, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = await world.user("site")
    await ingest(world, site, ADA)
    held, talk = HeldWrites(app, monkeypatch, Unavailable("away")), await Dialogue.open(address, site)
    await held.with_two_batches(talk)
    held.release()
    assert codes([await talk.answer()]) == [(1, "unavailable", None)]
    assert await talk.answer() is None
    talk.close()
    assert (held.batches, world.kinds()) == ([["p1"]], [])


async def test_the_batch_behind_is_written_after_the_answers_of_the_first(
    world: World, app: web.Application, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = await world.user("site")
    await ingest(world, site, ADA)
    held, talk = HeldWrites(app, monkeypatch), await Dialogue.open(address, site)
    await held.with_two_batches(talk)
    assert held.batches == [["p1"]], "the order of the lines is that of the writes"
    held.release()
    posted, deleted = await talk.answer(), await talk.answer()
    assert (posted["line"], deleted["line"], posted["id"]) == (1, 2, deleted["id"])
    assert (await talk.ask(body_of(BOB)[9:]))["line"] == 3
    talk.close()
    assert world.kinds() == ["post", "delete"]


class Runs:
    """Counts the ingests that have ended."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ended = 0
        run = IngestExchange.run

        async def note(exchange: IngestExchange) -> web.StreamResponse:
            try:
                return await run(exchange)
            finally:
                self.ended += 1

        patch.setattr(IngestExchange, "run", note)


async def test_a_client_that_goes_away_leaves_no_line_half_done(
    world: World, app: web.Application, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Redis had is written. What was only parsed, and half a line, are not."""
    site = await world.user("site")
    await ingest(world, site, ADA)
    runs = Runs(monkeypatch)
    held, talk = HeldWrites(app, monkeypatch), await Dialogue.open(address, site)
    await held.with_two_batches(talk)
    talk.break_off()
    await eventually(lambda: runs.ended == 1, what="the ingest has ended")
    held.release()
    assert (held.batches, world.kinds()) == ([["p1"]], ["post"])
    assert "ingest batch" not in [task.get_name() for task in asyncio.all_tasks()]


async def test_a_client_that_waits_for_each_answer_gets_it_at_once(world: World, address: tuple[str, int]) -> None:
    talk = await Dialogue.open(address, await world.user("site"))
    lines = [ADA, *(post(foreign_id=f"n{n}") for n in range(9)), b"{", BOB]
    answers = [await talk.ask(body_of(line)) for line in lines]
    assert [answer["line"] for answer in answers] == list(range(1, 13))
    assert ["error" in answer for answer in answers] == [False] * 10 + [True, False]
    assert world.kinds() == ["post"] * 9
    talk.close()


def edit(**members: Any) -> dict[str, Any]:
    return {"op": "edit", "status": {"foreign_id": "p1", **members}}


async def test_a_site_edits_its_statuses_as_often_and_as_late_as_it_wants(world: World) -> None:
    site = await world.user("site")
    *_, hello, reply, _ = await ingest(world, site, *ALL)
    changed, again, other = await ingest(
        world, site, edit(message="bye #cake"), edit(message="bye #cake"),
        {"op": "edit", "status": {"foreign_id": "p2", "meta": {"price": 5}, "lang": None, "media": "x"}},
    )  # fmt: skip
    assert (changed["id"], again) == (hello["id"], {**changed, "line": 2})
    assert [fault["param"] for fault in other["left_out"]] == ["status.lang", "status.media"]
    shown = (await world.call("GET", f"/v1/statuses/{hello['id']}", site)).json
    assert (shown["message"], shown["edits"], shown["foreign_id"]) == ("bye #cake", 1, "p1")
    told = (await world.call("GET", f"/v1/statuses/{reply['id']}", site)).json
    assert (told["meta"], told["message"], told["posted"]) == ({"price": 5}, "hi", "2020-02-29T12:00:00.500Z")
    assert world.kinds()[-2:] == ["edit", "edit"]


async def test_an_outbox_that_sends_edits_again_changes_nothing_more(world: World) -> None:
    """With the ids of the changes, an edit that was replaced since stays replaced."""
    site = await world.user("site")
    await ingest(world, site, *ALL)
    outbox = [{**edit(message="two"), "id": "c2"}, {**edit(message="three"), "id": "c3"}]
    first = await ingest(world, site, *outbox)
    state = world.state()
    assert await ingest(world, site, *outbox) == first
    assert world.state() == state
    gone = {"op": "delete", "status": "p1"}
    await ingest(world, site, gone)
    state = world.state()
    assert (await ingest(world, site, *outbox, gone))[:2] == first
    assert codes(await ingest(world, site, edit(message="x"), {**edit(message="x"), "id": "c9"})) == [
        (1, "not_found", "status.foreign_id"), (2, "not_found", "status.foreign_id"),
    ]  # fmt: skip
    assert world.state() == state


async def test_wrong_edits_name_their_member(world: World) -> None:
    site = await world.user("site")
    await ingest(world, site, *ALL, {"op": "post", "status": {"foreign_id": "r", "author": "u1", "origin": "p2"}})
    lines = [
        edit(message=""), edit(message="x" * 281), edit(in_reply_to="p2"), {"op": "edit", "status": {"message": "x"}},
        {"op": "edit", "status": {"foreign_id": "none", "message": "x"}},
        {"op": "edit", "status": {"foreign_id": "r", "meta": {}}},
    ]  # fmt: skip
    assert codes(await ingest(world, site, *lines)) == [
        (1, "invalid_parameter", "status.message"), (2, "invalid_parameter", "status.message"),
        (3, "unknown_parameter", "status.in_reply_to"), (4, "missing_parameter", "status.foreign_id"),
        (5, "not_found", "status.foreign_id"), (6, "invalid_parameter", "status.foreign_id"),
    ]  # fmt: skip
