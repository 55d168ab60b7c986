"""The limits of the connections of a process."""

import resource

import pytest

from stream_server.web.limits.connections import ConnectionTable, Refusal
from tests.stream_server import tokens


def table(**settings: object) -> ConnectionTable:
    config = tokens.config(limits="on", **settings)
    return ConnectionTable(config, lambda address: address == "10.0.0.1")


def test_an_address_holds_at_most_its_share() -> None:
    found = table(connections_max=100, streams_per_address=3)
    assert [found.take("198.51.100.1") for _ in range(6)] == [None] * 6
    refusal = found.take("198.51.100.1")
    assert refusal is not None
    assert refusal.status == 429
    assert found.take("198.51.100.2") is None
    found.release("198.51.100.1")
    assert found.take("198.51.100.1") is None
    assert (len(found), found.refused) == (7, 1)


@pytest.mark.parametrize(
    ("addresses", "other"),
    [
        (("2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:1:ffff::9", "2001:db8:0:1::1%eth0"), "2001:db8:0:2::1"),
        (("198.51.100.1", "::ffff:198.51.100.1", "::ffff:c633:6401", "198.51.100.1"), "::ffff:198.51.100.2"),
    ],
    ids=["a network of 64 bits", "IPv4 in IPv6"],
)
def test_the_addresses_of_one_client_count_together(addresses: tuple[str, ...], other: str) -> None:
    found = table(connections_max=100, streams_per_address=2)
    for address in (*addresses, *addresses[:3]):
        assert found.take(address) is None or found.refused
    assert (len(found), found.refused) == (4, 3)
    assert found.take(other) is None
    for address in addresses[:2]:
        found.release(address)
    assert [found.take(address) is None for address in addresses] == [True] * 2 + [False] * 2


def test_an_address_never_holds_more_than_half() -> None:
    for streams in (0, 1000):
        found = table(connections_max=10, streams_per_address=streams)
        assert [found.take("198.51.100.1") is None for _ in range(6)] == [True] * 5 + [False]


def test_a_trusted_proxy_has_no_share() -> None:
    found = table(connections_max=100, streams_per_address=2)
    assert all(found.take("10.0.0.1") is None for _ in range(100))


def test_a_full_table_makes_room_by_closing_idle_connections() -> None:
    found = table(connections_max=10)
    asked: list[int] = []

    def close_idle(count: int) -> None:
        asked.append(count)
        found.release("10.0.0.1")

    found.evict_idle = close_idle
    for _ in range(12):
        assert found.take("10.0.0.1") is None
    assert asked == [1, 1]
    assert (len(found), found.evicted) == (10, 2)


def test_a_table_that_is_full_of_busy_connections_refuses() -> None:
    found = table(connections_max=10)
    assert [found.take("10.0.0.1") is None for _ in range(12)] == [True] * 10 + [False] * 2
    refusal = found.take("10.0.0.1")
    assert refusal is not None
    assert refusal.status == 503
    found.release("10.0.0.1")
    assert found.take("10.0.0.1") is None


def test_files_are_kept_for_the_server_itself() -> None:
    assert table().maximum < resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_a_refusal_is_a_whole_http_answer() -> None:
    head, _, body = Refusal(429, "Too Many Requests", "rate_limited", "no").encode().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"Retry-After: 1" in head
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"etry" not in Refusal(400, "Bad Request", "malformed_body", "no").encode(), "again is no better"
