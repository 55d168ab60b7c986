"""The limits of the connections of a process."""

import resource

import pytest

from stream_server.web.http.responses import JSON_HEADERS
from stream_server.web.limits.connections import (
    ADMITTED,
    NO_ROOM_FOR_ADDRESS,
    NO_ROOM_FOR_CONNECTION,
    OPERATOR_PLACES,
    Admission,
    ConnectionTable,
    Refusal,
    SlotKind,
)
from tests.stream_server import tokens


def table(**settings: object) -> ConnectionTable:
    config = tokens.config(limits="on", **settings)
    return ConnectionTable(config, lambda address: address == "10.0.0.1")


FOR_OPERATOR = [Admission(SlotKind.OPERATOR, NO_ROOM_FOR_ADDRESS)] * OPERATOR_PLACES


def test_an_address_holds_at_most_its_share() -> None:
    found = table(connections_max=100, streams_per_address=3)
    assert [found.take("198.51.100.1") for _ in range(6)] == [ADMITTED] * 6
    assert [found.take("198.51.100.1") for _ in FOR_OPERATOR] == FOR_OPERATOR
    assert found.take("198.51.100.1") == Admission(SlotKind.NONE, NO_ROOM_FOR_ADDRESS)
    assert found.take("198.51.100.2") == ADMITTED
    found.release("198.51.100.1")
    assert found.take("198.51.100.1") == ADMITTED
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
        found.take(address)
    assert len(found) == 4
    assert found.take(other) == ADMITTED
    for address in addresses[:2]:
        found.release(address)
    assert [found.take(address) == ADMITTED for address in addresses] == [True] * 2 + [False] * 2


def test_an_address_never_holds_more_than_half() -> None:
    for streams in (0, 1000):
        found = table(connections_max=10, streams_per_address=streams)
        assert [found.take("198.51.100.1") == ADMITTED for _ in range(6)] == [True] * 5 + [False]


def test_a_trusted_proxy_has_no_share() -> None:
    found = table(connections_max=100, streams_per_address=2)
    assert all(found.take("10.0.0.1") == ADMITTED for _ in range(100))


def test_a_full_table_makes_room_by_closing_idle_connections() -> None:
    found = table(connections_max=10)
    asked: list[int] = []

    def close_idle(count: int, *, of_operator: bool) -> None:
        assert not of_operator
        asked.append(count)
        found.release("10.0.0.1")

    found.evict_idle = close_idle
    for _ in range(12):
        assert found.take("10.0.0.1") == ADMITTED
    assert asked == [1, 1]
    assert (len(found), found.evicted) == (10, 2)


def test_a_table_that_is_full_of_busy_connections_keeps_places_for_the_operator_and_refuses_others() -> None:
    found = table(connections_max=10)
    assert [found.take("10.0.0.1") for _ in range(10)] == [ADMITTED] * 10
    for _ in range(OPERATOR_PLACES):
        assert found.take("10.0.0.1") == Admission(SlotKind.OPERATOR, NO_ROOM_FOR_CONNECTION)
    assert found.take("10.0.0.1") == Admission(SlotKind.NONE, NO_ROOM_FOR_CONNECTION)
    found.release("10.0.0.1", SlotKind.OPERATOR)
    assert found.take("10.0.0.1") == Admission(SlotKind.OPERATOR, NO_ROOM_FOR_CONNECTION)
    found.release("10.0.0.1")
    assert found.take("10.0.0.1") == ADMITTED


def test_files_are_kept_for_the_server_itself() -> None:
    assert table().maximum < resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_a_refusal_is_a_whole_http_answer() -> None:
    head, _, body = Refusal(429, "Too Many Requests", "rate_limited", "no").encode().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"Retry-After: 1" in head
    assert f"Content-Length: {len(body)}".encode() in head
    for name in (*JSON_HEADERS, "Date"):
        assert f"\r\n{name}: ".encode() in head, "an answer says what all others say"
    assert b"etry" not in Refusal(400, "Bad Request", "malformed_body", "no").encode(), "again is no better"
