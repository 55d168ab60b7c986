"""Webhooks of an attacker reach no inner address, in whatever form it stands in a URL, a name or a redirect."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from stream_server.errors import BadRequest
from stream_server.web.webhooks.sender import Message, Sender
from tests.waiting import PATIENCE

MESSAGE = Message("work/1", b'{"type":"test"}')
REFUSED = "this host has no address that webhooks may reach"
"""The same for a name that does not exist, so nobody learns which inner names exist."""

INNER = {
    "loopback": "127.0.0.1",
    "another loopback": "127.8.9.1",
    "a name": "localhost",
    "any": "0.0.0.0",
    "IPv6 loopback": "[::1]",
    "IPv6 any": "[::]",
    "IPv4 in IPv6": "[::ffff:127.0.0.1]",
    "IPv4 in IPv6, hexadecimal": "[::ffff:7f00:1]",
}
"""Forms of the address of this machine, at which a service listens."""

NUMBERS = ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1"]
"""Hosts that `getaddrinfo` takes for the address of this machine."""

ELSEWHERE = [
    "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "198.18.0.1", "224.0.0.1",
    "255.255.255.255",
    "[fe80::1]", "[fc00::1]", "[fec0::1]", "[ff02::1]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]",
    "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[::7f00:1]", "[100::1]",
]  # fmt: skip
"""Inner addresses of other machines, and IPv6 addresses with an IPv4 address inside."""


class Service:
    """An inner service that answers any request. ``reached`` counts its connections. It may redirect."""

    def __init__(self) -> None:
        self.reached = 0
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen at all addresses of this machine, IPv4 and IPv6, on one port."""
        listening = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        self._server = await asyncio.start_server(self._serve, sock=listening)
        self.port = listening.getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.answer)
        await writer.drain()
        writer.close()


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made = Service()
    await made.start()
    yield made
    await made.stop()


class Names(AbstractResolver):
    """Resolves each name to the next of ``addresses``. The last one stays."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = [*addresses]
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked += 1
        address = self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("host", INNER.values(), ids=INNER)
async def test_no_form_of_an_inner_address_is_reached(
    service: Service, host: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the defence, the same URL reaches the service. The operator is told why, and the user is not."""
    caplog.set_level(logging.INFO)
    for networks, reached in (("", 0), ("127.0.0.0/8,0.0.0.0,::1,::", 1)):
        sender = Sender(networks, PATIENCE)
        scheme = "http" if networks else "https"
        if networks:
            sender.check_url(f"http://{host}:{service.port}/", "url")  # raises nothing: it is a URL like others
        sent = await sender.send("7", f"{scheme}://{host}:{service.port}/", MESSAGE, ())
        await sender.close()
        assert service.reached == reached, sent
        assert (sent.outcome.error == REFUSED) is not bool(networks), sent
        assert "this address is not allowed" in caplog.text


@pytest.mark.parametrize("host", NUMBERS)
async def test_a_number_in_the_place_of_a_name_is_refused_at_once_and_reaches_nothing(
    service: Service, host: str
) -> None:
    assert {one[4][0] for one in socket.getaddrinfo(host, 80)} == {"127.0.0.1"}, "it would be an inner address"
    sender = Sender("", PATIENCE)
    url = f"https://{host}:{service.port}/"
    with pytest.raises(BadRequest) as refused:
        sender.check_url(url, "deliver.url")
    assert refused.value.param == "deliver.url"
    sent = await sender.send("7", url, MESSAGE, ())
    await sender.close()
    assert (service.reached, sent.outcome.status) == (0, None)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", ELSEWHERE)
async def test_no_address_of_another_inner_machine_is_connected_to(host: str, scheme: str) -> None:
    sender = Sender("127.0.0.1", PATIENCE)
    sent = await sender.send("7", f"{scheme}://{host}/", MESSAGE, ())
    await sender.close()
    assert (sent.outcome.status, sent.outcome.error) == (None, REFUSED)


async def test_a_name_that_changes_its_address_is_looked_at_each_time(service: Service) -> None:
    """The name leads to an allowed address at first, and then to an inner one."""
    names = Names("127.0.0.2", "127.0.0.1")
    sender = Sender("127.0.0.2", PATIENCE, resolver=names)
    url = f"http://rebinding.example:{service.port}/"
    first, second = [(await sender.send("7", url, MESSAGE, ())).outcome for _ in range(2)]
    await sender.close()
    assert (first.status, second.error) == (200, REFUSED)
    assert (service.reached, names.asked) == (1, 2)


async def test_a_public_address_is_not_reached_without_tls() -> None:
    sender = Sender("127.0.0.2", PATIENCE, resolver=Names("192.0.2.1"))
    sent = await sender.send("7", "http://somewhere.example/", MESSAGE, ())
    await sender.close()
    assert sent.outcome.error == REFUSED


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_an_inner_address_is_not_followed(service: Service, status: int) -> None:
    endpoint = Service()
    endpoint.answer = (
        f"HTTP/1.1 {status} Elsewhere\r\nLocation: http://127.0.0.1:{service.port}/\r\nContent-Length: 0\r\n\r\n"
    ).encode()
    await endpoint.start()
    sender = Sender("127.0.0.0/8", PATIENCE)
    sent = await sender.send("7", f"http://127.0.0.1:{endpoint.port}/", MESSAGE, ())
    await sender.close()
    await endpoint.stop()
    assert sent.outcome.status == status
    assert not sent.outcome.is_success
    assert (endpoint.reached, service.reached) == (1, 0)
