"""Floods of one attacker succeed without the limits, achieve little with them, and do not hurt an honest client."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from tests.attacks import floods
from tests.attacks.arena import HONEST_ADDRESS, Arena, arena
from tests.end_to_end.api import Api
from tests.end_to_end.faults.clients import RawClient
from tests.end_to_end.process_metrics import ProcessMetrics
from tests.end_to_end.server import Server
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

Attack = Callable[[Api], Awaitable[int]]

FLOODS: list[tuple[Attack, int, int]] = [
    (floods.guess_passwords, 10, 20),
    (floods.sign_up, 60, 61),
    (floods.ask_for_names, 60, 100),
    (floods.open_streams, 32, 100),
    (floods.poll, 50, 100),
    (floods.preview, 5, 20),
    (floods.write_to_a_stranger, 0, 20),
]
"""Each attack, what it may achieve at most with the defence, and at least without it."""


async def test_floods_succeed_without_the_limits(tmp_path: Path, subtests: pytest.Subtests) -> None:
    async with arena(tmp_path, "--consent", "off", defended=False) as site:
        for attack, _, at_least in FLOODS:
            with subtests.test(attack=attack.__name__):
                achieved = await attack(site.api)
                if attack is not floods.sign_up:  # how many accounts a second depends on the machine
                    assert achieved >= at_least, "the attack does not work any more"


async def test_floods_achieve_little_and_hurt_nobody(tmp_path: Path, subtests: pytest.Subtests) -> None:
    async with arena(tmp_path, defended=True) as site:
        for attack, at_most, _ in FLOODS:
            with subtests.test(attack=attack.__name__):
                achieved: list[int] = []

                async def attack_and_count(api: Api, attack: Attack = attack, into: list[int] = achieved) -> None:
                    into.append(await attack(api))

                await site.suffer(attack_and_count)
                assert achieved[0] <= at_most
        assert await _honest_log_in(site) == 201


async def _honest_log_in(site: Arena) -> int:
    login = "h" + site.honest.uid[-12:]
    await site.api.sign_up(login)
    body = {"login": login, "password": "correct horse"}
    answer = await site.api.call("POST", "/v1/sessions", json=body, headers={"X-Forwarded-For": HONEST_ADDRESS})
    return answer.status


@pytest.mark.parametrize("defended", [False, True])
async def test_one_user_cannot_push_the_events_of_others_out_of_the_log(tmp_path: Path, *, defended: bool) -> None:
    flags = ("--log-max-bytes", str(2**20), "--ring-bytes", "0")
    async with arena(tmp_path, *flags, defended=defended, limits=f"log_bytes={2**18}") as site:
        cursor = await site.api.head()
        victim = await site.api.user()
        posted = await site.api.post(victim, "unread")
        await floods.fill_the_log(site.api)
        with site.server.redis_client() as client:
            entries = client.xlen("{core}:log")
        if defended:  # the trimmer has looked at the whole log
            await site.api.until_metric("log_entries", lambda count: count >= entries)
        else:
            await site.api.until_metric("log_trimmed_total", lambda count: count > 0)
        stream = await site.api.stream({"follow": victim, "since": cursor})
        await stream.until(lambda s: s.events or s.of("gap"))
        assert bool(stream.of("gap")) is not defended
        assert stream.received == ([("post", posted["id"])] if defended else [])
        await stream.close()


@pytest.mark.parametrize("defended", [False, True])
async def test_eight_users_cannot_fill_a_small_redis(tmp_path: Path, *, defended: bool) -> None:
    """The limits of a minute are those of five, so that the attack takes no five minutes."""
    small, minutes = ("--redis-memory-bytes", str(32 * 2**20)), "writes=6000 statuses=1500"
    async with arena(tmp_path, *small, defended=defended, limits=minutes) as site:
        await site.api.until_metric("redis_memory_limit_bytes", lambda size: size > 0)
        refused = await floods.fill_redis(site.api)
        assert bool(refused) is not defended
        if defended:
            await site.honest.round()


async def test_five_hundred_slow_sockets_hurt_nobody(tmp_path: Path) -> None:
    async with arena(tmp_path, "--streams-per-address", "500", defended=True) as site:
        began = asyncio.get_running_loop().time()
        seen = await site.suffer(floods.slow_sockets)
        lasted = asyncio.get_running_loop().time() - began
        quiet = await site.suffer(lambda _: asyncio.sleep(lasted))
        assert seen.rounds > quiet.rounds / 10


@pytest.mark.parametrize("defended", [False, True])
async def test_idle_connections_do_not_take_the_last_file(tmp_path: Path, *, defended: bool) -> None:
    """With 200 open files allowed, 260 connections without a request end the service only without the defence."""
    module = "tests.attacks.few_files" if defended else "tests.attacks.few_files_undefended"
    with Server(tmp_path, "--limits", "on", "--trusted-proxies", "127.0.0.1", module=module) as server:
        host, _, port = server.address.removeprefix("http://").rpartition(":")
        held = [await asyncio.open_connection(host, int(port)) for _ in range(260)]

        async def is_served() -> bool:
            """Ask once. Where the queue of the kernel was full, the answer may be an end, and a client tries again."""
            try:
                async with asyncio.timeout(PATIENCE if defended else 1):
                    reader, writer = await asyncio.open_connection(host, int(port))
                    writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    answer = await reader.read()
                    writer.close()
                    return answer.startswith(b"HTTP/1.1 200")
            except (TimeoutError, OSError):
                return False

        served = any([await is_served() for _ in range(3)])
        for _, writer in held:
            writer.close()
        assert served is defended


LONG_HEAD = b"POST /v1/sessions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
LONG_HEAD += (b"X: ".ljust(998, b"x") + b"\r\n") * 105
UNFINISHED = {
    "heads": ("held_bytes", LONG_HEAD, 480, 24 * 2**20),
    "bodies": ("held_bytes", LONG_HEAD + b"Content-Length: 60001\r\n\r\n" + bytes(60_000), 480, 64 * 2**20),
    "unread answers": ("unsent_bytes", b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n", 480, 72 * 2**20),
}
"""The limit, what each of so many clients of one address sends, and most bytes that all of them take. None goes on, and
none reads. Without the limits, they take 50, 220 and 140 MB for as long as they like. With them, those take most that
come in one moment, and for that moment. Of answers, 16 MiB may wait, which take 40 MB in pieces between others."""


@pytest.mark.parametrize("kind", UNFINISHED)
async def test_clients_of_one_address_that_do_not_go_on_take_a_bounded_memory(tmp_path: Path, kind: str) -> None:
    """Those with the most bytes are closed first, and others are served."""
    limit, sent, count, most = UNFINISHED[kind]
    with Server(tmp_path, "--limits", "on", "--operations", "open") as server:
        async with AsyncExitStack() as stack, Api(server) as api:
            assert (await api.call("GET", "/openapi.json")).status == 200  # what is made once is there before
            before = await ProcessMetrics.of(server, 1)
            for _ in range(count):
                client = await RawClient.connect(server.address, receive_bytes=4096)
                await stack.enter_async_context(client)
                with suppress(ConnectionError):
                    await client.send(sent)

            async def is_met() -> bool:
                return f'limit="{limit}"' in (await api.call("GET", "/metrics")).body.decode()

            await eventually(is_met, what="a connection that is closed for its bytes")
            assert (await api.call("GET", "/healthz")).status == 200

            async def is_bounded() -> bool:
                return (await ProcessMetrics.of(server, 1)).memory - before.memory < most

            await eventually(is_bounded, what="what came in one moment has gone")


async def test_a_copied_refresh_token_is_worth_nothing(tmp_path: Path) -> None:
    async with arena(tmp_path, defended=True) as site:
        api = site.api
        login = "s" + site.honest.uid[-12:]
        await api.sign_up(login)
        session = await api.done("POST", "/v1/sessions", json={"login": login, "password": "correct horse"})
        stream = await api.stream({"track": "tea"}, token=session["token"])
        body = {"refresh_token": session["refresh_token"]}
        thief = await api.done("POST", "/v1/sessions", json=body)
        assert (await api.call("POST", "/v1/sessions", json=body)).error == (401, "token_revoked", None)
        assert (await api.call("GET", "/v1/users/me", token=thief["token"])).error == (401, "token_revoked", None)
        body = {"refresh_token": thief["refresh_token"]}
        assert (await api.call("POST", "/v1/sessions", json=body)).status == 401
        await stream.until_end()
        assert stream.of("goodbye")[0]["code"] == "token_revoked"
        await stream.close()


def test_no_command_line_of_the_server_has_a_secret(tmp_path: Path) -> None:
    secret = "a secret of a test which must not be seen anywhere"
    variables = {"STREAM_SERVER_JWT_SECRET": secret}
    with Server(tmp_path, "--workers", "2", variables=variables, preloaded=False) as server:
        assert server.process is not None
        for pid in (server.process.pid, *_descendants(server.process.pid)):
            assert secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        modes = {path.name: path.stat().st_mode & 0o077 for path in server.data.rglob("*")}
        assert set(modes.values()) == {0}, modes
        assert server.data.stat().st_mode & 0o077 == 0


def _descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *_descendants(child)]
    return found
