"""The interface that the benchmark needs of a peer."""

import asyncio
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import ClassVar, NamedTuple

from bench.peers.works import Part, Work


class Worker(NamedTuple):
    """A process that a peer started itself."""

    pid: int


class Live(NamedTuple):
    """A running peer: the process that is measured, and the port of its clients."""

    process: "subprocess.Popen[bytes] | Worker"
    port: int


class Peer(ABC):
    """A server that streams events to clients.

    Attributes:
        name: The title of its column.
        clients: The protocol of its clients.
        chooses: How a client chooses what it receives, for each part that the peer can do.
        settings: One sentence on its configuration, for the notes below the table.
    """

    name: ClassVar[str]
    clients: ClassVar[str] = "SSE"
    chooses: ClassVar[Mapping[Part, str]]
    settings: ClassVar[str]

    @abstractmethod
    def version(self) -> str:
        """Return the version that the program tells."""

    @abstractmethod
    def running(self, rate: float) -> AbstractContextManager[Live]:
        """Start a fresh server on the first core, and end it afterwards.

        A peer whose upstream makes the events itself lets it make ``rate`` events a second.
        """

    @abstractmethod
    def requests(self, part: Part, count: int) -> list[str]:
        """Return the requests of ``count`` clients: path, then headers, separated by tabs."""

    @abstractmethod
    async def feed(self, live: Live, work: Work, done: asyncio.Event) -> None:
        """Send it events at the rate of ``work`` until ``done`` is set."""
