"""Finds the clients of this process that are furthest behind."""

import asyncio
from collections.abc import Iterator
from heapq import nlargest

from stream_server.events.position import format_iso_time
from stream_server.hub.client import Client
from stream_server.hub.hub import Hub
from stream_server.monitoring.host_state import SlowClient

MAX_CLIENTS = 20

SLICE_CLIENTS = 2000
"""Clients that are looked at in one iteration of the event loop, about 1 ms."""


async def find_slow_clients(hub: Hub, worker: int) -> list[SlowClient]:
    """Return at most :data:`MAX_CLIENTS` streams, the furthest behind first. Streams that keep up are left out."""
    clients = hub.registry.list_clients()
    slowest: list[tuple[int, int, str, Client]] = []
    for start in range(0, len(clients), SLICE_CLIENTS):
        slowest = nlargest(MAX_CLIENTS, [*slowest, *_behind(hub, clients[start : start + SLICE_CLIENTS])], key=_rank)
        await asyncio.sleep(0)
    return [_describe(hub, worker, behind, unsent, client) for behind, unsent, _, client in slowest]


def _behind(hub: Hub, clients: list[Client]) -> Iterator[tuple[int, int, str, Client]]:
    for client in clients:
        if client.is_poll:
            continue  # no bytes are written to it
        behind = 0 if client in hub.live else max(0, hub.head.n - client.position.n)
        unsent = _unsent_bytes(client)
        if behind or unsent:
            yield behind, unsent, client.request.connection_id, client


def _rank(row: tuple[int, int, str, Client]) -> tuple[int, int, str]:
    return row[:3]


def _unsent_bytes(client: Client) -> int:
    try:
        return int(client.buffered_bytes())
    except RuntimeError:
        return 0  # its transport is closed


def _describe(hub: Hub, worker: int, behind: int, unsent: int, client: Client) -> SlowClient:
    request = client.request
    percent = min(100, unsent * 100 // max(1, hub.limits.buffer_bytes))
    return SlowClient(
        request.connection_id, worker, request.user_id, request.path, request.parameters,
        format_iso_time(request.opened_ms), behind, unsent, percent,
    )  # fmt: skip
