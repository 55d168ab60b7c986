"""The JavaScript client as npm installs it, in each supported Node: its unit tests, and a real server."""

import asyncio
import json
import os
import re
import signal
import subprocess
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stream_server.client import Client, Event, LogIn
from stream_server.client.sync import Client as BlockingClient
from tests.clients import npm
from tests.clients.venvs import environment
from tests.command_line import clean_environment, running
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server, restartable
from tests.made_once import once, shared_folder
from tests.program import ROOT, Program
from tests.stream_server.client.test_with_server import PASSWORD, act
from tests.tls import Authority, TlsProxy
from tests.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.extended, pytest.mark.timeout(npm.TEST_SECONDS)]

UNIT_SECONDS = 200

UNIT_TESTS = 51

SHORT_TOKENS = ("--token-ttl-seconds", "8", "--heartbeat-seconds", "0.2")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the installed package and the programs."""
    npm.own_node()
    return once(shared_folder(tmp_path_factory), "npm-installed", npm.install)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """Start a server on a port that it keeps after a restart."""
    with restartable(tmp_path / "own", "--heartbeat-seconds", "0.5") as server:
        yield server


@asynccontextmanager
async def run(node: npm.Node, installed: Path, *arguments: object, **variables: str) -> AsyncIterator[Program]:
    """Run a program by Node, with the EventSource of browsers. It must write nothing to standard error."""
    process = await asyncio.create_subprocess_exec(
        node.program, "--no-warnings", "--experimental-eventsource", *map(str, arguments),
        cwd=installed, stdout=PIPE, stderr=PIPE, env={**environment(None), "HOME": os.devnull, **variables},
        start_new_session=True,
    )  # fmt: skip
    try:
        yield Program(process)
        assert process.stderr is not None
        assert (await process.stderr.read()).decode() == ""
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def test_the_unit_tests_pass_in_each_node(installed: Path) -> None:
    command = ("--no-warnings", "--test", "--test-force-exit", "client_js_unit.mjs")
    nodes = npm.all_nodes()
    runs = [
        subprocess.Popen((node.program, *command), cwd=installed, env=environment(None), stdout=PIPE, stderr=PIPE)
        for node in nodes
    ]
    for node, each in zip(nodes, runs, strict=True):
        out, err = each.communicate(timeout=UNIT_SECONDS)
        assert each.returncode == 0, f"Node {node.version}: {out.decode()[-5000:]} {err.decode()[-2000:]}"
        assert f"pass {UNIT_TESTS}" in out.decode(), "each of them ran"


async def test_it_misses_and_repeats_nothing(installed: Path, own: Server) -> None:
    """The server is killed between two posts, and the filters change on the open streams."""
    nodes = [(node, transport) for node in npm.all_nodes() for transport in ("websocket", "events")]
    async with Api(own) as api, AsyncExitStack() as stack:
        uids = [await api.user() for _ in nodes]
        programs = [
            await stack.enter_async_context(_listener(node, transport, installed, own, uid))
            for (node, transport), uid in zip(nodes, uids, strict=True)
        ]

        async def all_hear(word: str) -> list[Any]:
            return [await program.hear(word) for program in programs]

        await all_hear("live")
        await api.post(uids[0], "tea once")
        assert await all_hear("event_tea_once") == [["tea"]] * len(nodes)
        own.kill()
        await all_hear("waiting")
        for program in programs:
            program.said.clear()
        own.start()
        await api.post(uids[0], "cake twice")
        assert await all_hear("event_cake_twice") == [["cake"]] * len(nodes)
        for uid in uids:
            await _until_filters_are(api, uid, "scone")
        await api.post(uids[0], "scone first")
        await api.post(uids[0], "tea last")
        assert await all_hear("end") == ["closed"] * len(nodes)
        for program in programs:
            events = [name for one in program.said for name in one if name.startswith("event_")]
            assert events == ["event_cake_twice", "event_scone_first", "event_tea_last"]
            assert await program.end() == 0


async def test_the_first_example_of_the_readme_runs_in_each_node(installed: Path, own: Server, tmp_path: Path) -> None:
    """As a person pastes it, without an option of Node or another package: Node 20 has neither class of browsers."""
    readme = (npm.PACKAGE / "README.md").read_text(encoding="utf-8")
    example = re.findall(r"```js\n(.*?)```", readme, re.DOTALL)[0].replace("http://127.0.0.1:8000", own.address)
    (installed / "example.mjs").write_text(example.replace("demo-demo", PASSWORD), encoding="utf-8")
    nodes = npm.all_nodes()
    assert min(node.version for node in nodes) == npm.MIN_NODE
    async with Api(own) as api, AsyncExitStack() as stack:
        ada = (await api.sign_up("ada"))["id"]
        await api.post(ada, "a coffee before")
        shown = [
            stack.enter_context(
                running(node.program, installed / "example.mjs", folder=tmp_path / node.program.replace("/", "_"),
                        env=clean_environment(), cwd=installed)
            )
            for node in nodes
        ]  # fmt: skip

        async def all_show(word: str) -> None:
            await eventually(lambda: all(f"coffee {word}" in each.out for each in shown), what=word)

        await all_show("before")
        await api.post(ada, "a coffee then")
        await all_show("then")
        own.kill()
        own.start()
        async with Api(own) as later:
            await later.post(ada, "a coffee again")
            await all_show("again")
        for each in shown:
            assert re.findall(r"coffee (\w+)", each.out) == ["before", "then", "again"]
            assert "lost:" not in each.out


async def test_the_consumer_of_the_guide_handles_each_post_in_each_node(
    installed: Path, own: Server, tmp_path: Path
) -> None:
    """It keeps nothing, and is killed again and again. What was acked does not come again."""
    guide = (ROOT / "docs" / "guide" / "subscriptions.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```text\n(.*?)```", guide, re.DOTALL)
    (installed / "consumer.mjs").write_text(example.replace("http://127.0.0.1:8000", own.address), encoding="utf-8")
    async with Api(own) as api:
        for node in npm.all_nodes():
            uid, expected = await api.user(), 0
            env = {**clean_environment(), "TOKEN": mint(uid)}
            for kill in range(3):
                folder = tmp_path / f"{node.program.replace('/', '_')}-{kill}"
                with running(node.program, installed / "consumer.mjs", folder=folder, env=env, cwd=installed) as shown:
                    await eventually(partial(_is_read, api, uid))
                    for number in range(expected, expected + 5):
                        await api.post(uid, f"coffee {number}")
                    await eventually(partial(_shows, shown, f"coffee {expected + 4}"))
                    await eventually(partial(_is_acked, api, uid))
                assert re.findall(r"coffee (\d+)", shown.out) == [str(expected + at) for at in range(5)]
                expected += 5


def _shows(shown: Any, text: str) -> bool:
    return text in shown.out


async def _is_read(api: Api, uid: str) -> bool:
    streams = (await api.done("GET", "/v1/streams", token=mint(uid)))["streams"]
    return any(stream["parameters"] == "subscription=coffee" for stream in streams)


async def _is_acked(api: Api, uid: str) -> bool:
    found = await api.done("GET", "/v1/subscriptions/coffee", token=mint(uid))
    return bool(found["behind"] == 0)


@asynccontextmanager
async def _listener(
    node: npm.Node, transport: str, installed: Path, server: Server, uid: str
) -> AsyncIterator[Program]:
    """Listen with a Node, which gets the sockets of the package `ws` if it has none, as the documentation says."""
    needs_socket = transport == "websocket" and not node.has_web_socket
    modules = (npm.modules(npm.TOOLS),) if needs_socket else ()
    async with run(node, installed, "client_js.mjs", server.address, mint(uid), transport, *modules) as program:
        yield program


async def _until_filters_are(api: Api, uid: str, word: str) -> None:
    """Wait until the server has the changed filters of the stream, or the stream that replaced it."""

    async def has_word() -> bool:
        streams = (await api.done("GET", "/v1/streams", token=mint(uid)))["streams"]
        return any(word in str(one["parameters"]) for one in streams)

    await eventually(has_word, what="the changed filters")


async def test_it_gets_what_python_gets_in_the_form_of_the_types(installed: Path, tmp_path: Path) -> None:
    """The own stream of a user outlives the user's tokens. TypeScript compiles each message, and refuses wrong uses."""
    with Server(tmp_path / "own", *SHORT_TOKENS) as server:
        with BlockingClient(server.address) as anybody:
            for login in ("ada", "bob"):
                anybody.sign_up(login, login.title(), f"{login}@example.org", PASSWORD)
        ada, bob = (Client(server.address, LogIn(login, PASSWORD)) for login in ("ada", "bob"))
        program = run(npm.all_nodes()[-1], installed, "client_js_own.mjs", server.address, "ada", PASSWORD)
        async with ada, bob, program as js:
            received: list[Event] = []
            stream = ada.user_stream()
            reading = asyncio.create_task(_collect(stream, received))
            await js.hear("connection")
            await eventually(lambda: stream.cursor, what="the stream of Python")
            await act(ada, bob)
            last = await ada.post("the last one")
            await eventually(lambda: received and received[-1].data.get("status", {}).get("id") == last.id, what="all")
            reading.cancel()
            await _until_said(js, received[-1].cursor)
            await js.hear("expires")  # the server took the next token on the open stream
            os.kill(js.pid, signal.SIGINT)
            assert await js.end() == 0
    events = [one for one in js.said if one["kind"] not in {"hello", "heartbeat", "token"}]
    assert events == [event.data for event in received]
    _compile(installed, tmp_path / "for_pages", js.said, {"lib": ["es2022", "dom"], "types": []})
    types = str(npm.modules(npm.TOOLS) / "node_modules" / "@types")
    _compile(installed, tmp_path / "for_node", [], {"lib": ["es2022"], "types": ["node"], "typeRoots": [types]})


async def _collect(stream: Any, received: list[Event]) -> None:
    async for event in stream:
        received.append(event)  # noqa: PERF401 - it is looked at meanwhile


async def _until_said(program: Program, cursor: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not any(one["cursor"] == cursor for one in program.said):
            program.said.append(json.loads(await program.process.stdout.readline()))  # type: ignore[union-attr]  # piped


def _compile(installed: Path, folder: Path, messages: list[Any], options: Mapping[str, object]) -> None:
    """Let TypeScript check the program of types, and messages as literals, in which it refuses unknown members too."""
    folder.mkdir()
    (folder / "node_modules").symlink_to(installed / "node_modules")
    literals = f"export const all: Message[] = {json.dumps(messages, indent=1)};\n"
    (folder / "messages.ts").write_text(f'import type {{ Message }} from "{npm.NAME}";\n{literals}', encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}')
    config = {
        "files": ["messages.ts", str(installed / "client_js_types.ts")],
        "compilerOptions": {"strict": True, "noEmit": True, "module": "nodenext", "target": "es2022", **options},
    }
    (folder / "tsconfig.json").write_text(json.dumps(config))
    compiler = npm.modules(npm.PACKAGE) / "node_modules" / ".bin" / "tsc"
    done = subprocess.run([compiler, "-p", folder], capture_output=True, text=True, timeout=UNIT_SECONDS, check=False)
    assert (done.returncode, done.stdout) == (0, "")


ASK = """
import { Client } from "stream-server-client";
const client = new Client(process.argv[1], { token: process.argv[2] });
const said = await client.request("GET", "/v1/rules").then(() => "an answer", () => "no answer");
console.log(JSON.stringify({ said }));
"""


async def test_node_trusts_the_authority_of_its_environment(installed: Path, own: Server, tmp_path: Path) -> None:
    host, _, port = own.address.removeprefix("http://").rpartition(":")
    authority = Authority(tmp_path)
    async with Api(own) as api, TlsProxy((host, int(port)), authority) as tls:
        arguments = ("--input-type=module", "--eval", ASK, f"https://{tls.netloc}", mint(await api.user()))
        for node in npm.all_nodes():
            async with run(node, installed, *arguments, NODE_EXTRA_CA_CERTS=str(authority.ca)) as program:
                assert await program.hear("said") == "an answer"
                assert await program.end() == 0
            async with run(node, installed, *arguments) as program:
                assert await program.hear("said") == "no answer"
                assert await program.end() == 0
