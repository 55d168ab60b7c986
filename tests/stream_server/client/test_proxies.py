"""The client, the commands and the key set behind an HTTP proxy, and with an authority of their own."""

import asyncio
import ssl
import subprocess
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from stream_server.client import (
    Backoff,
    Client,
    InvalidAddress,
    LogIn,
    OutcomeUnknown,
    Post,
    RequestRefused,
    Unreachable,
)
from stream_server.client.connection import Framing
from stream_server.client.proxies import proxy_for
from stream_server.config.settings import InvalidSetting
from stream_server.security.key_set import RemoteKeySet
from stream_server.security.tokens import TokenAuthority
from tests.command_line import COMMAND, clean_environment, run
from tests.end_to_end.api import mint
from tests.end_to_end.server import Server, environment
from tests.http_proxy import HttpProxy
from tests.listening import stop_listening
from tests.stream_server.security.test_key_set import KeyServer, signed
from tests.stream_server.tokens import config
from tests.tls import Authority, TlsProxy
from tests.waiting import PATIENCE

SWIFT = Backoff(initial_seconds=0.02, max_seconds=0.2)
PASSWORD = "a secret of the proxy"
DEAD = "http://127.0.0.1:1"

Setter = Callable[..., None]


@pytest.fixture(autouse=True)
def set_proxy(monkeypatch: pytest.MonkeyPatch) -> Setter:
    """Remove all proxies from the environment, and return a function that sets variables."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)

    def set_variables(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_variables


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("proxied"), "--heartbeat-seconds", "0.2") as started:
        yield started


def address_of(server: Server) -> tuple[str, int]:
    host, _, port = server.address.removeprefix("http://").rpartition(":")
    return host, int(port)


@asynccontextmanager
async def proxied(
    server: Server, folder: Path, scheme: str, password: str = ""
) -> AsyncIterator[tuple[HttpProxy, ssl.SSLContext]]:
    """A proxy that reaches the server by ``scheme``, and the client's context for its certificate."""
    authority = Authority(folder)
    context = ssl.create_default_context(cafile=str(authority.ca))
    async with TlsProxy(address_of(server), authority) as tls:
        target = tls.address if scheme == "https" else address_of(server)
        async with HttpProxy(target, password) as proxy:
            yield proxy, context


CASES: list[tuple[dict[str, str], str, str | None]] = [
    ({}, "http://server.test", None),
    ({"HTTP_PROXY": "http://p:1"}, "http://server.test", "http://p:1"),
    ({"http_proxy": "p:1"}, "http://server.test:8000/base", "http://p:1"),
    ({"http_proxy": "http://p:1", "HTTP_PROXY": "http://q:1"}, "http://server.test", "http://p:1"),
    ({"HTTP_PROXY": "http://p:1"}, "https://server.test", None),
    ({"HTTPS_PROXY": "http://p:1"}, "https://server.test", "http://p:1"),
    ({"https_proxy": "https://ada:x@p:1"}, "https://server.test", "https://ada:x@p:1"),
    ({"https_proxy": "http://p:1", "no_proxy": "other.test, .test"}, "https://server.test", None),
    ({"https_proxy": "http://p:1", "NO_PROXY": "server.test:443"}, "https://server.test", None),
    ({"https_proxy": "http://p:1", "NO_PROXY": "server.test:8443"}, "https://server.test", "http://p:1"),
    ({"https_proxy": "http://p:1", "NO_PROXY": "*"}, "https://server.test", None),
    ({"https_proxy": "http://p:1", "NO_PROXY": "10.0.0.1"}, "https://10.0.0.1:8", None),
    ({"http_proxy": "http://p:1"}, "http://127.0.0.1:8000", None),
    ({"http_proxy": "http://p:1"}, "http://127.8.8.8:8000", None),
    ({"http_proxy": "http://p:1"}, "http://[::1]:8000", None),
    ({"http_proxy": "http://p:1"}, "http://[::ffff:127.0.0.1]:8000", None),
    ({"http_proxy": "http://p:1"}, "http://0.0.0.0:8000", None),
    ({"http_proxy": "http://p:1"}, "http://[::]:8000", None),
    ({"http_proxy": "http://p:1"}, "http://localhost", None),
    ({"http_proxy": "http://p:1"}, "http://LocalHost:8000", None),
    ({"http_proxy": "http://p:1"}, "http://a.localhost", None),
    ({"http_proxy": "http://p:1"}, "http://localhost.:8000", None),
    ({"http_proxy": "http://p:1"}, "http://127.0.0.1.:8000", None),
    ({"http_proxy": "http://p:1"}, "http://127.1:8000", None),
    ({"http_proxy": "http://p:1"}, "http://0x7f000001:8000", None),
    ({"http_proxy": "http://p:1"}, "http://0:8000", None),
    ({"http_proxy": "http://p:1"}, "http://ip6-localhost:8000", None),
    ({"http_proxy": "http://p:1"}, "http://[::2]:8000", "http://p:1"),
    ({"http_proxy": "http://p:1"}, "http://10.1", "http://p:1"),
    ({"http_proxy": "http://p:1"}, "http://10.0.0.1", "http://p:1"),
    ({"ALL_PROXY": "socks5://p:1"}, "http://server.test", None),
    ({"http_proxy": ""}, "http://server.test", None),
]  # fmt: skip


@pytest.mark.parametrize(("variables", "url", "proxy"), CASES)
def test_the_environment_names_the_proxy(
    set_proxy: Setter, variables: dict[str, str], url: str, proxy: str | None
) -> None:
    set_proxy(**variables)
    assert proxy_for(url) == proxy


@pytest.mark.parametrize("bad", ["socks5://ada:hunter22@p:1", "http://ada:hunter22@", "http://p:hunter22", "p:0"])
async def test_what_is_no_http_proxy_is_said_without_its_password(set_proxy: Setter, bad: str) -> None:
    set_proxy(HTTPS_PROXY=bad)
    with pytest.raises(InvalidAddress, match="https_proxy is not the address of an HTTP proxy") as raised:
        await Client("https://server.test").__aenter__()
    assert "hunter22" not in str(raised.value)
    with pytest.raises(InvalidSetting, match="https_proxy is not the address"):
        RemoteKeySet("https://server.test/keys", _authority())


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("framing", ["sse", "ndjson", "websocket"])
async def test_calls_and_streams_pass_the_proxy(
    server: Server, tmp_path: Path, set_proxy: Setter, scheme: str, framing: Framing
) -> None:
    """The name of the server is none that this machine could look up."""
    async with proxied(server, tmp_path, scheme, PASSWORD) as (proxy, context):
        set_proxy(**{f"{scheme}_proxy": f"http://ada:{PASSWORD.replace(' ', '%20')}@{proxy.address}"})
        login = f"{scheme}{framing}"
        url = f"{scheme}://server.test"
        async with Client(url, ssl_context=context) as anybody:
            await anybody.sign_up(login, login, f"{login}@example.org", "a good password")
        async with Client(url, LogIn(login, "a good password"), ssl_context=context, backoff=SWIFT) as client:
            asked = len(proxy.asked)
            stream = client.stream(track="tea", framing=framing, control=True)
            await anext(stream)
            assert len(proxy.asked) > asked
            posted = await client.post("a cup of tea")
            async with asyncio.timeout(PATIENCE):
                event = await anext(event async for event in stream if isinstance(event, Post))
            assert event.status.id == posted.id
            await stream.close()
        target = " http://server.test/" if scheme == "http" else "CONNECT server.test:443 "
        assert [line for line in proxy.asked if target not in line] == []


async def test_a_proxy_that_refuses_is_said_without_its_password(
    server: Server, tmp_path: Path, set_proxy: Setter
) -> None:
    """A write that no proxy let through did not happen, so its outcome is known."""
    async with proxied(server, tmp_path, "https", PASSWORD) as (proxy, context):
        set_proxy(https_proxy=f"http://ada:hunter22@{proxy.address}")
        async with Client("https://server.test", mint("1"), ssl_context=context, attempts=2, backoff=SWIFT) as client:
            with pytest.raises(Unreachable, match="407") as refused:
                await client.post("hello")
            assert len(proxy.asked) == 2
            with pytest.raises(Unreachable, match="407") as lost:
                await anext(client.stream(track="tea"))
    set_proxy(https_proxy=f"http://ada:hunter22@{DEAD.removeprefix('http://')}")
    async with Client("https://server.test", mint("1"), attempts=1) as client:
        with pytest.raises(Unreachable) as dead:
            await client.post("hello")
    for raised in (refused, lost, dead):
        assert "hunter22" not in repr(raised.value) + "".join(traceback.format_exception(raised.value))
        assert not isinstance(raised.value, OutcomeUnknown)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("framing", ["sse", "ndjson", "websocket"])
async def test_an_answer_that_is_no_http_is_said_without_the_password(
    set_proxy: Setter, scheme: str, framing: Framing
) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\0garbage\r\n\r\n")
        writer.close()

    proxy = await asyncio.start_server(answer, "127.0.0.1", 0)
    set_proxy(**{f"{scheme}_proxy": f"http://ada:hunter22@127.0.0.1:{proxy.sockets[0].getsockname()[1]}"})
    async with Client(f"{scheme}://server.test", "token", attempts=1, backoff=SWIFT) as client:
        with pytest.raises(Unreachable, match=f"{scheme}://server.test.* gave no answer: Bad status line") as call:
            await client.request("GET", "/v1/rules")
        with pytest.raises(Unreachable, match="cannot be reached") as stream:
            async with client.stream(framing=framing, firehose=True) as events:
                await anext(aiter(events))
    await stop_listening(proxy)
    assert "hunter22" not in "".join(map(text_of, (call.value, stream.value)))


def text_of(error: BaseException) -> str:
    """Return what a log would have of the error."""
    return "".join(traceback.format_exception(error))


async def test_a_password_file_of_the_user_is_no_business_of_the_client(
    server: Server, tmp_path: Path, set_proxy: Setter
) -> None:
    (tmp_path / ".netrc").write_text("machine server.test login ada password x\n")
    set_proxy(HOME=str(tmp_path), NETRC=str(tmp_path / ".netrc"))
    async with proxied(server, tmp_path, "http") as (proxy, _):
        set_proxy(http_proxy=f"http://{proxy.address}")
        async with Client("http://server.test", mint("1")) as client:
            with pytest.raises(RequestRefused, match="the token's user does not exist"):
                await client.request("GET", "/v1/rules")
        assert len(proxy.asked) == 1


async def test_the_key_set_passes_the_proxy(set_proxy: Setter) -> None:
    app, keys = web.Application(), KeyServer()
    app.router.add_get("/keys", keys.serve)
    async with TestServer(app) as origin, HttpProxy((str(origin.host), int(origin.port or 0)), PASSWORD) as proxy:
        set_proxy(HTTP_PROXY=f"http://ada:{PASSWORD.replace(' ', '%20')}@{proxy.address}")
        authority = _authority()
        key_set = RemoteKeySet("http://keys.test/keys", authority)
        await key_set.ensure_key_for(signed("a"))
        await key_set.close()
        assert authority.has_key_for(signed("a"))
        assert proxy.asked == ["GET http://keys.test/keys HTTP/1.1"]


def _authority() -> TokenAuthority:
    return TokenAuthority(config(jwt_secret="", jwt_algorithm="ES256", jwt_jwks_url="https://keys.test/"))


@pytest.mark.extended
async def test_commands_pass_the_proxy_and_trust_the_authority_of_the_environment(
    server: Server, tmp_path: Path, set_proxy: Setter
) -> None:
    async with proxied(server, tmp_path, "https") as (proxy, _):
        variables = {"HTTPS_PROXY": f"http://{proxy.address}", "SSL_CERT_FILE": str(tmp_path / "ca.pem")}
        trusting = await asyncio.to_thread(_doctor, server, **variables)
        assert "the server at https://server.test is ready" in trusting
        assert proxy.asked == ["CONNECT server.test:443 HTTP/1.1"]
        variables.pop("SSL_CERT_FILE")
        assert "no server answers at https://server.test" in await asyncio.to_thread(_doctor, server, **variables)


def _doctor(server: Server, **variables: str) -> str:
    """Run `doctor` in a new process, because Python reads the authorities when aiohttp is imported."""
    command = [*COMMAND, "doctor", "--url", "https://server.test", "--redis", server.redis_url]
    env = clean_environment(**variables)
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE).stdout


def test_a_dead_proxy_breaks_nothing_on_this_machine(tmp_path: Path) -> None:
    """A server with its own Redis, and the commands, with the variables of an office network."""
    variables = {"HTTP_PROXY": DEAD, "HTTPS_PROXY": DEAD, "ALL_PROXY": DEAD}
    with Server(tmp_path / "here", variables=variables) as server:
        env = environment() | variables
        assert run("token", "--data-dir", server.data, "--user", "ada", "--create", env=env).code == 0
        stats = run("stats", "--data-dir", server.data, "--user", "ada", "--json", env=env)
        assert stats.code == 0, stats
        lines = tmp_path / "lines.jsonl"
        lines.write_text('{"author": "ada", "message": "hi"}\n')
        assert run("replay", lines, "--data-dir", server.data, env=env).code == 0


async def test_a_server_fetches_its_key_set_by_the_proxy_and_speaks_to_its_redis_without(tmp_path: Path) -> None:
    app, keys = web.Application(), KeyServer()
    app.router.add_get("/keys", keys.serve)
    authority = Authority(tmp_path)
    async with (
        TestServer(app) as origin,
        TlsProxy((str(origin.host), int(origin.port or 0)), authority) as tls,
        HttpProxy(tls.address) as proxy,
    ):
        flags = ("--jwt-algorithm", "ES256", "--jwt-jwks-url", "https://server.test/keys")
        variables: dict[str, str | None] = {
            "HTTPS_PROXY": f"http://{proxy.address}", "HTTP_PROXY": DEAD, "SSL_CERT_FILE": str(authority.ca),
            "STREAM_SERVER_JWT_SECRET": None,
        }  # fmt: skip
        started = Server(tmp_path / "here", *flags, variables=variables, preloaded=False)
        async with started as server, Client(server.address) as client:
            with pytest.raises(RequestRefused, match="401"):  # the key is known, and the token has expired
                await client.request("GET", "/v1/rules", token=signed("a"))
        assert (proxy.asked, keys.asked) == (["CONNECT server.test:443 HTTP/1.1"], 1)
