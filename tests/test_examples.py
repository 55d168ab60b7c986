"""The programs of ``examples/``, run as a reader would run them, against the real server."""

import asyncio
import importlib
import re
import runpy
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jwt import decode

from filters.testing import check_filter
from stream_server.client import Client, RequestRefused
from tests.command_line import ROOT, Running, clean_environment, running
from tests.end_to_end.api import mint
from tests.end_to_end.server import Server
from tests.installing import install
from tests.posts import post
from tests.waiting import PATIENCE

pytestmark = pytest.mark.extended

EXAMPLES = ROOT / "examples"
PLUGIN = EXAMPLES / "custom_filter"

LONG = "a long text about coffee, with more than forty characters in it"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    site = tmp_path_factory.mktemp("site")
    install(PLUGIN, site)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(site))
        with Server(tmp_path_factory.mktemp("examples")) as started:
            yield started


@pytest.fixture
def jwt(server: Server) -> str:
    async def sign_up() -> str:
        async with Client(server.address) as api:
            try:
                user = await api.sign_up("ada", "Ada", "ada@example.org", "a good password")
            except RequestRefused:  # she is there since the test before
                user = (await api.log_in("ada", "a good password")).user
        return mint(user.id)

    return asyncio.run(sign_up())


def shows(program: Running, server: Server, jwt: str, message: str, line: str) -> None:
    """Post ``message`` until the program prints ``line``, because it may still be connecting."""

    def printed() -> bool:
        post(server, jwt, message)
        return line in program.out

    program.until(printed)


def test_the_outbox_sends_each_row_once(server: Server, jwt: str, tmp_path: Path) -> None:
    """The rows are answered in order. Rows that were sent and not marked are answered as before."""
    program, base = EXAMPLES / "ingest" / "outbox.py", str(tmp_path / "site.db")
    outbox = runpy.run_path(str(program))
    site = outbox["Site"](base)
    site.add({"op": "user", "user": {"foreign_id": "outbox"}})
    site.add({"op": "post", "status": {"foreign_id": "o1", "author": "outbox", "message": "from the outbox"}})
    site.add({"op": "delete", "status": "unknown"})
    token = mint(str(decode(jwt, options={"verify_signature": False})["sub"]), "ingest")
    first = list(outbox["send"](server.address, token, [line for _, line in site.unanswered()]))
    assert [sorted(answer) for answer in first] == [
        ["cursor", "id", "line", "outcome"], ["cursor", "id", "line"], ["error", "line"],
    ]  # fmt: skip
    with running(
        sys.executable, program, server.address, token, base, folder=tmp_path / "run", env=clean_environment()
    ) as sender:
        sender.until(lambda: "3 unknown status" in sender.out)
        assert sender.interrupt() == 0
    assert sender.out.splitlines()[:2] == [f"1 {first[0]['id']}", f"2 {first[1]['id']}"]
    assert site.unanswered() == []
    site.close()


@pytest.mark.parametrize("program", ["browser/serve.py", "analytics/serve.py"])
def test_a_port_in_use_is_one_sentence(program: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        command = [sys.executable, str(EXAMPLES / program), "http://127.0.0.1:9", str(port)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert ended.returncode == 1
    assert re.fullmatch(rf"cannot listen on port {port}: .+; give another one as the last argument\n", ended.stderr)


SECOND = b'{"line":2,"error":{"code":"%b","message":"the end"}}\n'


@pytest.mark.parametrize(
    "end",
    [
        *(b"%x\r\n%b\r\n" % (len(line), line) for line in (
            SECOND % b"token_revoked", SECOND % b"token_expired", SECOND % b"invalid_token", SECOND % b"unavailable",
            SECOND[:9],
        )),
        b"40\r\n" + SECOND[:9],
    ],
)  # fmt: skip
def test_the_outbox_keeps_the_answers_before_a_failure_and_repeats_the_rest(end: bytes) -> None:
    """A token may end between two batches; then the error is no answer to its row. A server may die in a line."""
    outbox = runpy.run_path(str(EXAMPLES / "ingest" / "outbox.py"))
    first = b'{"line":1,"id":"7","cursor":"c"}\n'
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(first), first)
    found: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as thread:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        sending = thread.submit(lambda: found.extend(outbox["send"](url, "token", ["{}", "{}"])))
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer + end)
        with pytest.raises(outbox["FAILURES"]):
            sending.result(10)
    assert found == [{"line": 1, "id": "7", "cursor": "c"}]


@pytest.mark.parametrize("example", ["sse_consumer.py", "long_polling.py"])
def test_a_consumer_prints_what_was_posted(server: Server, jwt: str, tmp_path: Path, example: str) -> None:
    """The example prints the matching posts, in order and once each, and nothing else."""
    command = (sys.executable, EXAMPLES / example, server.address, jwt, "track=coffee", "kinds=post")
    with running(*command, folder=tmp_path, env=clean_environment()) as consumer:
        shows(consumer, server, jwt, f"coffee with {example}", f"@ada: coffee with {example}\n")
        post(server, jwt, "tea", "coffee two", "coffee three")
        consumer.until(lambda: "coffee three" in consumer.out)
        assert consumer.interrupt() == 0
    lines = consumer.out.splitlines()
    assert set(lines[:-2]) == {f"@ada: coffee with {example}"}
    assert lines[-2:] == ["@ada: coffee two", "@ada: coffee three"]
    assert consumer.err == ""


def test_the_sse_consumer_comes_back_by_its_cursor(tmp_path: Path) -> None:
    """After the server is killed and restarted, the example prints missed posts once."""
    server = Server(tmp_path / "own").start()

    async def sign_up() -> str:
        async with Client(server.address) as api:
            return mint((await api.sign_up("ada", "Ada", "ada@example.org", "a good password")).id)

    try:
        jwt = asyncio.run(sign_up())
        command = (sys.executable, EXAMPLES / "sse_consumer.py", server.address, jwt, "track=coffee", "since=-5m")
        with running(*command, folder=tmp_path / "consumer", env=clean_environment()) as consumer:
            post(server, jwt, "coffee one")
            consumer.until(lambda: "coffee one" in consumer.out)
            server.kill()
            consumer.until(lambda: "connection lost" in consumer.err)
            server.flags = ("--port", server.address.rpartition(":")[2])
            server.start()
            post(server, jwt, "coffee two")
            consumer.until(lambda: "coffee two" in consumer.out)
            assert consumer.interrupt() == 0
        assert consumer.out == "@ada: coffee one\n@ada: coffee two\n"
        server.stop()
    finally:
        server.kill()


def test_a_refusal_is_printed(server: Server, jwt: str, tmp_path: Path) -> None:
    """Each example ends with the server's message if the server refuses it."""
    for example in ("sse_consumer.py", "long_polling.py"):
        command = (sys.executable, EXAMPLES / example, server.address, jwt, "sample=101")
        with running(*command, folder=tmp_path / example, env=clean_environment()) as consumer:
            assert consumer.process.wait(PATIENCE) == 1
            assert "refused: 400" in consumer.err
            assert "sample" in consumer.err


def test_the_custom_filter_filters(server: Server, jwt: str, tmp_path: Path) -> None:
    """As an installed plugin, its parameter narrows a stream on a real server."""
    command = (sys.executable, EXAMPLES / "sse_consumer.py", server.address, jwt, "track=coffee", "min_length=40")
    with running(*command, folder=tmp_path, env=clean_environment()) as consumer:
        shows(consumer, server, jwt, LONG, LONG)
        post(server, jwt, "short coffee", f"{LONG}, and this is the last")
        consumer.until(lambda: "the last" in consumer.out)
        consumer.interrupt()
    assert "short" not in consumer.out


def test_the_custom_filter_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter passes the common filter tests, and its errors name the parameter."""
    monkeypatch.syspath_prepend(str(PLUGIN))
    found = importlib.import_module("stream_server_min_length.filter").MinLength
    check_filter(found, valid_values=["1", "5", "10000"], invalid_values=["0", "-1", "10001", "1.5", "ten", "1,2"])
