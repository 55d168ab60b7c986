"""The demo: its printed commands, its output and its content."""

import ast
import json
import random
import re
import shutil
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from stream_server.client import Client, ClientFailure
from stream_server.demo import walkthrough
from tests.command_line import COMMAND, ROOT, Running, running
from tests.docs_examples import blocks
from tests.end_to_end.api import Api
from tests.end_to_end.api import mint as signed
from tests.end_to_end.server import Server, environment
from tests.waiting import eventually

pytestmark = pytest.mark.extended

COMMANDS = 16
"""Number of lines: the token, the function, thirteen requests, the post."""

STREAMS = 7
"""Number of printed requests that are streams; the others have one answer."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Start a real server with the demo, and wait until it has printed its guide."""
    folder = tmp_path_factory.mktemp("demo")
    with running(*COMMAND, "serve", "--demo", "--port", "0", folder=folder, env=environment()) as server:
        server.until(lambda: len(commands(server)) == COMMANDS)
        yield server
        assert server.interrupt() == 0
        assert "Traceback" not in server.err


def commands(server: Running) -> list[str]:
    """Return the lines to paste: the token, the function, then the others."""
    return re.findall(r"^(?:export|see|curl) ?.*$", server.out, re.MULTILINE)


def first_answer(script: str, folder: Path) -> Any:
    """Run a pasted command until its first line, and return that as JSON."""
    with running("bash", "-c", script, folder=folder, env=environment()) as pasted:
        try:
            pasted.until(lambda: "\n" in pasted.out)
        except AssertionError:
            assert pasted.process.poll() == 0, pasted.err  # one answer, without a line's end
        pasted.process.kill()
        return json.loads(pasted.out.split("\n")[0])


@pytest.mark.skipif(shutil.which("curl") is None, reason="the demo prints curl commands, and there is no curl")
def test_each_printed_command_works_when_pasted(shown: Running, tmp_path: Path) -> None:
    export, function, *pasted = commands(shown)
    begin = f"{export}\n{function.replace('{ curl', '{ exec curl')}"  # so that the curl is the process that is ended
    answers = [first_answer(f"{begin}\n{line}", tmp_path / str(n)) for n, line in enumerate(pasted[:-1])]
    assert [answer["kind"] for answer in answers if "kind" in answer] == ["hello"] * STREAMS
    nouns = ("statuses", "notifications", "talks")
    lists = {noun: answer[noun] for answer in answers for noun in nouns if noun in answer}
    assert len(answers) == len(pasted) - 1 == STREAMS + 6
    assert all(lists.values())
    assert set(lists) == {"statuses", "notifications", "talks"}
    assert all(answer["statuses"] for answer in answers if "statuses" in answer)
    assert answers[-1]["events"][0]["kind"] == "post"
    assert first_answer(f"{begin}\nexec {pasted[-1]}", tmp_path / "post")["login"] == "ada"


def test_the_comments_beside_the_commands_mean_nothing_to_a_shell(shown: Running) -> None:
    """An interactive zsh has no comments, so the text must be harmless arguments."""
    said = [line.partition(" # ")[2] for line in commands(shown) if line.startswith("see ")]
    assert len(said) == STREAMS + 6
    assert all(re.fullmatch(r"[A-Za-z ,:-]+", one) for one in said)


async def test_the_printed_password_logs_in(shown: Running) -> None:
    address, login, password = re.findall(
        r'(?<=listening on )http://\S+|(?<=You are ")\w+|(?<=password ")[^"]+', shown.out
    )[:3]
    async with Client(address) as api:
        assert (await api.log_in(login, password)).user.login == login
    answer = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert f"`{login}`, password `{password}`" in answer


def test_the_output_fits_one_screen_and_begins_with_the_address(shown: Running) -> None:
    lines = shown.out.splitlines()
    assert re.fullmatch(r"stream-server listening on http://127\.0\.0\.1:\d+", lines[0])
    address = lines[0].split()[-1]
    assert lines[1].startswith("filters: ")
    assert lines[1].endswith(f"; documentation: {address}/docs")
    assert re.fullmatch(rf"Open this in a browser: {address}/#code=[\w-]{{43}}", lines[4])
    assert lines[2] == "The data are deleted when the server stops. To keep them, start it with --data-dir ./data"
    assert len(lines) <= 25
    assert "\x1b" not in shown.out


def test_the_posts_are_valid() -> None:
    made = list(islice(walkthrough.demo_posts(random.Random(7), "ada"), 500))
    assert all(0 < len(post["message"]) <= 280 and "#" in post["message"] for post in made)
    points = [post["location"] for post in made if "location" in post]
    assert points
    assert all(-180 <= point["lon"] <= 180 and -90 <= point["lat"] <= 90 for point in points)
    assert any("@ada" in post["message"] for post in made)
    assert len({post["message"].removeprefix("@ada ") for post in made}) > 400


GUIDE = ("filters", "first_listener", "resuming", "rules", "start")

PAGES = ("README.md", *(f"docs/guide/{page}.md" for page in GUIDE))

EXAMPLE = re.compile(r"""stream "([^"$]+)"|/v1/(?:stream|events)\?([^"'` $]+)["`]|--data-urlencode '([^']+)'""")

PROGRAM = re.compile(r"client\.stream\((.+?)\):")

WINDOW = 10
"""Posts among which each example finds one: twenty seconds of the demo."""

MANY = 150
"""Posts among which a sample of a tenth surely has one."""


def examples() -> set[str]:
    """Return the queries of all streams that the README and the guide show, without where they begin."""
    queries: set[str] = set()
    for page in PAGES:
        queries |= {"".join(parts) for block in blocks(ROOT / page) for parts in EXAMPLE.findall(block.text)}
        for arguments in PROGRAM.findall((ROOT / page).read_text(encoding="utf-8")):
            call = ast.parse(f"f({arguments})", mode="eval").body
            assert isinstance(call, ast.Call)
            queries.add(urlencode({str(one.arg): str(ast.literal_eval(one.value)).lower() for one in call.keywords}))
    queries = {re.sub(r"&?(since|wait|ticket)=[^&]*", "", query) for query in queries}
    # Saved rules and subscriptions are made first.
    return {query for query in queries if query not in {"", "rules=saved"} and not query.startswith("subscription=")}


async def test_each_example_of_the_guide_shows_something(server: Server) -> None:
    """Each stream finds one of a few posts of the demo. In a sample that is a matter of chance, and of many posts."""
    queries = examples()
    assert {"track=coffee,%23redis,good%20morning", "follow=@me", "rule=espresso&explain=true"} <= queries
    assert len(queries) > 10
    async with Client(server.address) as api, Api(server) as raw, AsyncExitStack() as stack:
        world = await walkthrough.find_or_create_world(api, mint)
        token = mint(world.user_ids["ada"], walkthrough.GUIDE_SCOPES)
        streams = {
            query: await stack.enter_async_context(await raw.stream(parse_qsl(query), token=token)) for query in queries
        }

        async def until_all_show(some: set[str]) -> None:
            with suppress(AssertionError):
                await eventually(lambda: all(streams[query].of("post") for query in some))
            assert {query for query in some if not streams[query].of("post")} == set()

        by_chance = {query for query in queries if "sample=" in query}
        chosen = random.Random(3)
        for n, body in enumerate(islice(walkthrough.demo_posts(chosen, world.login), MANY)):
            if n == WINDOW:
                await until_all_show(queries - by_chance)
            author = mint(world.user_ids[chosen.choice(walkthrough.POSTING_LOGINS)], frozenset({"write"}))
            await api.request("POST", "/v1/statuses", body=body, token=author)
        await until_all_show(by_chance)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "server") as started:
        yield started


def mint(uid: str, scopes: frozenset[str]) -> str:
    return signed(uid, " ".join(scopes))


class Interruption:
    """Lets a client send ``left`` requests, and breaks off all further ones."""

    def __init__(self, client: Client, patch: pytest.MonkeyPatch) -> None:
        self.left = 0
        self._send = client._transport._send
        patch.setattr(client._transport, "_send", self.send)

    async def send(self, *arguments: Any) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise ClientFailure("broken off")
        return await self._send(*arguments)


async def demo_content(api: Client, world: walkthrough.DemoWorld) -> dict[str, Any]:
    """Return what Ada sees of the demo content, and Dora's follow requests."""
    ada, dora = [mint(world.user_ids[login], frozenset({"read"})) for login in ("ada", "dora")]
    paths = (
        "users/me", "timelines/home?count=200", "notifications", "talks", "users/me/groups", "users/me/favorites",
        f"users/{world.user_ids['ada']}/lists", f"lists/{world.list_id}/members", f"groups/{world.group_id}/statuses",
    )  # fmt: skip
    answers = {path: await api.request("GET", f"/v1/{path}", token=ada) for path in paths}
    found = {path.partition("?")[0].rpartition("/")[2]: answer for path, answer in answers.items()}
    return found | {"requests": await api.request("GET", "/v1/users/me/requests", token=dora)}


async def test_the_demo_content_is_complete_and_created_once(server: Server) -> None:
    async with Client(server.address) as api:
        world = await walkthrough.find_or_create_world(api, mint)
        found = await demo_content(api, world)
        assert await walkthrough.find_or_create_world(api, mint) == world
        assert await demo_content(api, world) == found
    kinds = {one["kind"] for one in found["notifications"]["notifications"]}
    assert kinds >= {"mention", "reply", "like", "comment", "repost", "quote", "follow", "approve"}
    assert {one["login"] for one in found["home"]["statuses"]} >= {"ada", "bob", "cyd", "dora"}
    assert [one["private"] for one in found["lists"]["lists"]] == [True, False]
    assert {one["login"] for one in found["members"]["users"]} == {"bob", "cyd"}
    assert len(found["statuses"]["statuses"]) == 2
    assert found["talks"]["talks"][0]["unread"] == 1
    assert len(found["favorites"]["statuses"]) == 1
    assert [one["login"] for one in found["requests"]["users"]] == ["eli"]


async def test_a_later_start_of_the_demo_signs_nobody_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address may sign up 60 times an hour, so the tenth start would fail."""
    async with Client(server.address) as api:
        world = await walkthrough.find_or_create_world(api, mint)

        async def refused(*_: object) -> None:
            raise AssertionError("a later start signs up")

        monkeypatch.setattr(api, "sign_up", refused)
        assert await walkthrough.find_or_create_world(api, mint) == world


async def test_an_interrupted_setup_of_the_demo_content_is_completed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Client(server.address) as api:
        interruption = Interruption(api, monkeypatch)
        for steps in range(0, 1000, 7):
            interruption.left = steps
            try:
                world = await walkthrough.find_or_create_world(api, mint)
            except ClientFailure:
                continue
            break
    async with Client(server.address) as api:
        found = await demo_content(api, world)
    assert found["me"]["posts"] == 1
    assert (found["me"]["followers"], found["me"]["following"]) == (4, 3)
    assert (len(found["lists"]["lists"]), len(found["groups"]["groups"]), len(found["talks"]["talks"])) == (2, 1, 1)
    assert len(found["statuses"]["statuses"]) == 2


async def test_the_demo_does_not_act_as_an_existing_user(server: Server) -> None:
    async with Client(server.address) as api:
        emails = {login: f"{login}@example.com" for login in ("ada", "bob")}
        ada, bob = [await api.sign_up(login, "Real", email, "correct horse") for login, email in emails.items()]
        world = await walkthrough.find_or_create_world(api, mint)
        tokens = [mint(one.id, frozenset({"read"})) for one in (ada, bob)]
        found = [await api.request("GET", "/v1/users/me", token=token) for token in tokens]
        assert (await api.log_in(world.login, walkthrough.PASSWORD)).user.id == world.user_ids["ada"]
        answer = await api.request("GET", "/v1/notifications", token=tokens[0])
        assert await walkthrough.find_or_create_world(api, mint) == world, "also by its longer logins"
    assert answer["notifications"] == []
    assert not {ada.id, bob.id} & set(world.user_ids.values())
    assert [(me["posts"], me["following"]) for me in found] == [(0, 0)] * 2
    assert world.login == "ada_demo"
    assert f'"{world.login}"' in walkthrough.usage_guide(server.address, "a token", world)
