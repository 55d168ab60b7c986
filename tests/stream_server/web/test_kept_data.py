"""What the routes make Redis keep: all of it is in the table of keys, and little of it is for repeated requests."""

import asyncio
import itertools
from typing import Any

import pytest
import requests

from stream_server.store import keys
from stream_server.web import routes
from stream_server.web.route import Route
from tests.contracts.populated import Body, Populated
from tests.end_to_end.server import SECRET
from tests.stream_server.store.scenes import dump
from tests.stream_server.store.test_writes import MAX_KEPT_BYTES
from tests.stream_server.web.test_round_trips import paths_of
from tests.stream_server.web.world import World

KEPT = "{core}:request:c:"
"""The beginning of the keys that are kept for clients."""

KEYED = [row for row in routes.ROUTE_TABLE if row.accepts_idempotency_key and row.dialect is None]
ELSEWHERE = frozenset({
    "never", "confirmed", "rollbacks", "asleep", "ticket", "sign_in", "parked", "failing", "deliverers", "leases",
    "expiry", "expired", "subjects", "foreign", "ingested", "processes", "samples", "answers", "rates", "streams",
    "visited", "revoked", "strangers", "sessions", "talk_requests", "invitations", "invited", "unswept",
})  # fmt: skip
"""Rows of keys that these requests do not make: of the operator, an issuer, jobs, streams, log-ins, consent and
`write_replicas`."""


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"jwt_secret": SECRET}


class Sender:
    """Sends the requests of one route, with keys."""

    def __init__(self, url: str, session: requests.Session, row: Route, raw: Any) -> None:
        self.url, self.session, self.row, self.raw = url, session, row, raw
        self.world = Populated(url, session, row.path)
        self.faults: list[str] = []

    def check(self) -> list[str]:
        """Return what is wrong with the first request that succeeds, and its repetitions."""
        bodies: list[Body | None] = [*self.world.bodies(self.row.method)]
        for path, body in itertools.product(paths_of(self.world, self.row), bodies or [None]):
            before = self._kept()
            first = self._send(path, body, "k" * 63 + "1")
            if first.ok:
                self._check_kept(self._kept() - before)
                again = self._send(path, body, "k" * 63 + "1")
                if self._kept() - before and (again.status_code, again.content) != (first.status_code, first.content):
                    self.faults.append(f"{first.text} {again.text}")
                self._check_unchanged(path, body)
                return self.faults
        raise AssertionError(f"{self.row.path} never succeeded: {first.text}")

    def _check_kept(self, kept: set[bytes]) -> None:
        sizes = [len(key) + self.raw.strlen(key) for key in kept]
        self.faults += [f"{size} bytes are kept" for size in sizes if size > MAX_KEPT_BYTES]

    def _check_unchanged(self, path: str, body: Any) -> None:
        before, kept = dump(self.raw), self._kept()
        self._send(path, body, "k" * 63 + "2")
        if dump(self.raw) == before and self._kept() != kept:
            self.faults.append("a write that changed nothing is kept")

    def _send(self, path: str, body: Any, key: str) -> requests.Response:
        headers = {**self.world.headers(), "Idempotency-Key": key}
        return self.session.request(self.row.method, self.url + path, json=body, headers=headers)

    def _kept(self) -> set[bytes]:
        return set(self.raw.keys(f"{KEPT}*"))


def _faults(url: str, session: requests.Session, row: Route, raw: Any) -> list[str]:
    return Sender(url, session, row, raw).check()


async def test_each_route_keeps_little_under_a_key_and_nothing_of_no_change(
    url: str, session: requests.Session, world: World
) -> None:
    raw, wrong = world.redis, {}
    for row in KEYED:
        faults = await asyncio.to_thread(_faults, url, session, row, raw)
        if faults:
            wrong[f"{row.method} {row.path}"] = faults
    assert wrong == {}
    prefixes = {key.prefix: key.name for key in keys.ALL_KEYS}
    found = [key.decode() for key in raw.keys("*")]
    named = {prefixes.get(key) or keys.parse(key)[0] for key in found}
    assert "" not in named, "a key is missing from the table"
    assert named == {key.name for key in keys.ALL_KEYS} - ELSEWHERE
