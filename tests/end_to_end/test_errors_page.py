"""The guide's page of errors: each request of its table gives what the table says, and each code has one."""

import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stream_server.wire.errors import STATUS_BY_CODE
from tests.end_to_end.api import Answer, Api, mint
from tests.end_to_end.server import ROOT, Server

PAGE = (ROOT / "docs" / "guide" / "errors.md").read_text(encoding="utf-8")
INTERNAL = "the server has a fault"
SILENT = ("Redis falls silent at a write", "Redis is silent")
UPGRADE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}  # fmt: skip


class Row(NamedTuple):
    """A row of the table: when the request is sent, the request, and what it gets."""

    when: str
    method: str
    path: str
    body: str
    status: int
    code: str
    message: str
    param: str | None

    @property
    def answer(self) -> tuple[int, str, str, str | None]:
        return self.status, self.code, self.message, self.param


def table() -> dict[str, Row]:
    lines = PAGE.partition("| when | request |")[2].partition("\n\n")[0].splitlines()[2:]
    found = {}
    for line in lines:
        when, request, answer, message, param = (cell.strip() for cell in line.strip("|").split(" | "))
        method, path, *body = request.strip("`").split(" ", 2)
        status, code = answer.split()
        text = message.removeprefix("`` ").removesuffix(" ``")
        answered = int(status), code.strip("`"), text, param.strip("`") or None
        found[when] = Row(when, method, path, "".join(body), *answered)
    return found


ROWS = table()


def told(answer: Answer) -> tuple[int, str, str, str | None]:
    error = answer.json["error"]
    return answer.status, error["code"], error["message"], error.get("param")


def test_each_code_has_a_request_with_its_status() -> None:
    assert {row.code for row in ROWS.values()} == STATUS_BY_CODE.keys()
    assert [row for row in ROWS.values() if STATUS_BY_CODE[row.code] != row.status] == []
    first = json.loads(re.findall(r"```json\n(.*?)\n```", PAGE)[0])["error"]
    row = ROWS["a parameter is misspelt"]
    assert (first["code"], first["message"], first["param"]) == (row.code, row.message, row.param)


def test_the_reference_has_each_message() -> None:
    """The messages there are taken from the code; those of this page are what a server says."""
    reference = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    for row in ROWS.values():
        listed = reference.partition(f"**`{row.code}`**")[2].partition("**`")[0]
        patterns = (re.escape(one).replace("…", ".+") for one in re.findall(r"^- `` (.*) ``$", listed, re.MULTILINE))
        assert any(re.fullmatch(pattern, row.message) for pattern in patterns), row
    assert [code for code in STATUS_BY_CODE if f"**`{code}`**\n\n- " not in reference] == []


class Site:
    """A server with default limits, on which the table's requests are sent as ada."""

    def __init__(self, api: Api, ada: str) -> None:
        self.api, self.ada = api, ada
        self.token = mint(ada, "read write stream")
        self.values = {"TOKEN": self.token, "TEXT_281": "x" * 281, "TEXT_100000": "x" * 100_000, "USED": "used",
                       "CODES_101": ",".join(["en"] * 101)}  # fmt: skip

    async def send(self, row: Row, **more: Any) -> Answer:
        """Send the request of a row, with further ``headers`` and another ``token``, if given."""
        path, body = row.path, row.body
        for name, value in self.values.items():
            path, body = path.replace(f"${name}", value), body.replace(f"${name}", value)
        headers = {**({"Content-Type": "application/json"} if body else {}), **more.pop("headers", {})}
        token = more.pop("token", None if path.startswith(("/v1/sessions", "/v1/users?")) else self.token)
        if "ticket=" in path or (row.method, path) == ("POST", "/v1/users"):
            token = None
        return await self.api.call(row.method, path, token=token, headers=headers, data=body or None)

    async def prepare(self, when: str) -> dict[str, Any]:
        """Bring about what a row says. Return what its request has besides the usual."""
        given = re.fullmatch("with `(.+): (.+)`", when)
        more: dict[str, Any] = {"headers": HEADERS.get(when, {}) | ({given[1]: given[2]} if given else {})}
        if "WebSocket" in when:
            more["headers"] = UPGRADE | more["headers"]
        if when in TOKENS:
            more["token"] = await TOKENS[when](self)
        if when in DEEDS:
            await DEEDS[when](self)
        return more


async def no_token(_: Site) -> None:
    return None


async def ended_token(site: Site) -> str:
    now = int(time.time())
    return mint(site.ada, iat=now - 700, exp=now - 600)


async def token_of_a_session_that_ended(site: Site) -> str:
    await site.api.sign_up("cyd")
    session = await site.api.done("POST", "/v1/sessions", json={"login": "cyd", "password": "correct horse"})
    await site.api.done("DELETE", "/v1/sessions", token=session["token"])
    return str(session["token"])


async def token_of_a_suspended_user(site: Site) -> str:
    eve = await site.api.user()
    await site.api.done("PUT", f"/v1/admin/suspensions/{eve}", token=mint(site.api.admin, "read write admin"))
    return mint(eve)


async def token_of_a_deleted_user(site: Site) -> str:
    eve = await site.api.user()
    await site.api.done("DELETE", f"/v1/users/{eve}", token=mint(site.api.admin, "read write admin"))
    return mint(eve)


async def post_of_another(site: Site) -> None:
    site.values["POST"] = (await site.api.post(await site.api.user(), "of another"))["id"]


async def post_and_let_the_time_pass(site: Site) -> None:
    site.values["OLD"] = first = (await site.api.post(site.ada, "old"))["id"]
    while int((await site.api.post(site.ada, "new"))["id"]) >> 12 <= (int(first) >> 12) + 1:
        """Ids have the time in ms."""


async def write_three_messages(site: Site) -> None:
    talk = await site.api.done("POST", "/v1/talks", token=site.token, json={"people": [await site.api.user()]})
    site.values["TALK"] = talk["id"]
    for text in ("one", "two", "three"):
        await site.api.done("POST", f"/v1/talks/{talk['id']}/messages", token=site.token, json={"message": text})


async def put_a_shared_subscription(site: Site) -> None:
    body = {"parameters": {"track": "tea"}, "parts": 2}
    await site.api.done("PUT", "/v1/subscriptions/crowd", token=site.token, json=body)


async def use_the_key(site: Site) -> None:
    await site.api.done("POST", "/v1/statuses", token=site.token, json={"message": "one"}, headers=KEY)


async def try_ten_times(site: Site) -> None:
    for _ in range(10):
        assert (await site.send(ROWS["at the eleventh try"])).status == 401


KEY = {"Idempotency-Key": "once"}
HEADERS = {
    "a key was used for another request": KEY,
    "a page of another origin opens a WebSocket": {"Origin": "https://elsewhere.example"},
}
TOKENS: dict[str, Callable[[Site], Awaitable[str | None]]] = {
    "without a token": no_token,
    "the token has ended": ended_token,
    "after the log-out": token_of_a_session_that_ended,
    "the user is suspended": token_of_a_suspended_user,
    "the account is deleted": token_of_a_deleted_user,
}
DEEDS: dict[str, Callable[[Site], Awaitable[None]]] = {
    "the post is another user's": post_of_another,
    "an hour after the post": post_and_let_the_time_pass,
    "a stranger writes a fourth message": write_three_messages,
    "the connection reads no part any more": put_a_shared_subscription,
    "a key was used for another request": use_the_key,
    "at the eleventh try": try_ten_times,
}
"""What a row needs before its request, by its first column."""


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    server = Server(tmp_path, variables={"STREAM_SERVER_LIMITS": "on", "STREAM_SERVER_EDIT_SECONDS": "0.001"})
    async with server, Api(server) as api:
        yield Site(api, (await api.sign_up("ada"))["id"])


async def test_each_request_gets_what_the_page_says(site: Site, subtests: pytest.Subtests) -> None:
    for when, row in ROWS.items():
        if when not in {INTERNAL, *SILENT}:
            with subtests.test(when=when):
                assert told(await site.send(row, **await site.prepare(when))) == row.answer


async def test_a_silent_redis_gives_what_the_page_says(tmp_path: Path, subtests: pytest.Subtests) -> None:
    server = Server(tmp_path, variables={"STREAM_SERVER_REDIS_TIMEOUT_SECONDS": "3"})
    async with server, Api(server) as api:
        site = Site(api, (await api.sign_up("ada"))["id"])
        assert (await site.send(ROWS[SILENT[0]])).status == 201  # now the server knows the token
        redis = int((server.data / "redis.lock").read_text())
        os.kill(redis, signal.SIGSTOP)
        try:
            for when in SILENT:
                with subtests.test(when=when):
                    assert told(await site.send(ROWS[when])) == ROWS[when].answer
        finally:
            os.kill(redis, signal.SIGCONT)
