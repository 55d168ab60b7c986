"""Bluesky's Jetstream server, fed by the simulator of its own repository."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from bench.lineup import Kind, Running
from bench.peers.peer import Peer
from bench.peers.programs import ONE_THREAD, Programs, said, started
from bench.process import free_port, last_core
from bench.site import Site

TENTH = "app.bsky.graph.follow"
"""The collection of about a tenth of the simulator's events."""

ACCOUNTS = 50
"""Accounts of the simulated network. Jetstream reads their data before it begins to stream."""

EVENTS_A_COMMIT = 1.42
"""Mean number of events that Jetstream makes of one commit of the simulator."""

SLOWEST_RATE = 0.01
"""Commits a second of the simulator while connections are idle. It accepts no rate of zero."""


class Jetstream(Peer):
    """Jetstream, with a simulated network as its upstream, on the core of the clients."""

    column = "Jetstream"
    clients = "WebSocket"
    chooses: ClassVar = {"firehose": "everything", "topic": f"`wantedCollections={TENTH}`"}
    settings = (
        "WebSocket `/subscribe` without compression; the events come from the simulator of its repository, have about "
        "440 bytes and a random rhythm; the latency starts when Jetstream has the event (`time_us`), so the way of "
        "the event to it is not included; it writes its archive to the disk and has no tokens; `GOMAXPROCS=1`"
    )

    def __init__(self, site: Site, programs: Programs) -> None:
        super().__init__(site)
        self.program = programs.program("jetstream")
        self.simulator = programs.program("jetstream-simulator")
        self._starts = 0

    def version(self) -> str:
        found = re.search(r"version v?(\S+)", said(self.program, "version"))
        return found[1] if found else "unknown"

    @contextmanager
    def running(self, rate: float = 0) -> Iterator[Running]:
        self._starts += 1
        folder = self.site.folder / f"jetstream{self._starts}"
        upstream, port = free_port(), free_port()
        address = f"http://127.0.0.1:{upstream}"
        simulator = [
            self.simulator, "serve", "--addr", f"127.0.0.1:{upstream}", "--public-url", address,
            "--data-dir", str(folder / "network"), "--accounts", str(ACCOUNTS), "--initial-records-per-account", "1",
            "--commits-per-sec", str(max(rate / EVENTS_A_COMMIT, SLOWEST_RATE)),
        ]  # fmt: skip
        server = [
            *ONE_THREAD, self.program, "serve", "--addr", f"127.0.0.1:{port}", "--relay-url", address,
            "--plc-url", address, "--data-dir", str(folder / "archive"),
        ]  # fmt: skip
        with (
            started(self.site, "jetstream-simulator", simulator, upstream, cores=last_core()),
            started(self.site, "jetstream", server, port, ready="steady-state consumer running") as process,
        ):
            yield Running(process, port)

    def streams(self, kind: Kind, count: int) -> list[str]:
        path = "/subscribe" if kind == "firehose" else f"/subscribe?wantedCollections={TENTH}"
        upgrade = (
            "Connection: Upgrade\tUpgrade: websocket\tSec-WebSocket-Version: 13\t"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
        )
        return [f"GET {path}\t{upgrade}"] * count

    async def feed(self, running: Running, kind: Kind, rate: float, done: asyncio.Event) -> None:  # noqa: ARG002 - the simulator does
        await done.wait()
