"""Servers in place of the nodes of a Redis Cluster: they agree on a table of slots, and refuse what a test tells."""

import asyncio
from types import TracebackType
from typing import NamedTuple, Self

from hiredis import Reader

from stream_server.store.redis.cluster_topology import slot_of
from tests.listening import stop_listening

SLOTS = 16_384


class Seen(NamedTuple):
    """A command that a node has run or refused. ``packet`` numbers the reads of all nodes."""

    node: int
    packet: int
    asking: bool
    command: tuple[str, ...]


class PuppetNode:
    """A node. It answers each command by how many it has run, and those of ``refusals`` by the next of their key.

    Attributes:
        speaks: Cleared, the node answers nothing.
    """

    def __init__(self, cluster: "PuppetCluster", at: int) -> None:
        self.cluster, self.at, self.port = cluster, at, 0
        self.refusals: dict[str, list[str]] = {}
        self.speaks = asyncio.Event()
        self.speaks.set()
        self.count = 0
        self.server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    async def kill(self) -> None:
        """Close the port and all connections."""
        assert self.server is not None
        await stop_listening(self.server)
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        parser, asking = Reader(encoding="utf-8"), False
        queued: list[str] | None = None
        try:
            while data := await reader.read(1 << 16):
                parser.feed(data)
                self.cluster.packets += 1
                while (command := parser.gets()) is not False:
                    await self.speaks.wait()
                    if command[0] == "MULTI":
                        queued = []
                        writer.write(b"+OK\r\n")
                    elif command[0] == "EXEC":
                        assert queued is not None
                        writer.write(f"*{len(queued)}\r\n{''.join(queued)}".encode())
                        queued = None
                    elif command[0] == "CLUSTER" and queued is not None:
                        queued.append(self.cluster.table(command[1]))
                        writer.write(b"+QUEUED\r\n")
                    elif command[0] == "CLUSTER":
                        writer.write(self.cluster.table(command[1]).encode())
                    else:
                        writer.write(self._answer(tuple(command), asking=asking).encode())
                        asking = command[0] == "ASKING"
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _answer(self, command: tuple[str, ...], *, asking: bool) -> str:
        if command[0] in {"PING", "ASKING"}:
            return "+OK\r\n"
        self.cluster.seen.append(Seen(self.at, self.cluster.packets, asking, command))
        if refusals := self.refusals.get(command[1]):
            return f"-{refusals.pop(0)}\r\n"
        self.count += 1
        return f":{self.count}\r\n"


class PuppetCluster:
    """Nodes, each with an equal part of the slots, and what they have seen."""

    def __init__(self, count: int) -> None:
        self.nodes = [PuppetNode(self, at) for at in range(count)]
        self.owners: list[int | None] = [at * count // SLOTS for at in range(SLOTS)]
        self.seen: list[Seen] = []
        self.packets = 0
        self.epoch = 1

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def key_of(self, node: int, number: int = 0) -> str:
        """Return the key with this number, from 0 on, of those on a node."""
        found = (key for key in map("home:{{{}}}".format, range(SLOTS)) if self.owners[slot_of(key)] == node)
        return next(key for at, key in enumerate(found) if at == number)

    def give(self, key: str, node: int | None) -> None:
        """Let all nodes name another owner of the slot of a key, or none."""
        self.owners[slot_of(key)] = node
        self.epoch += 1

    def address(self, node: int) -> tuple[str, int]:
        return "127.0.0.1", self.nodes[node].port

    def refusal(self, code: str, key: str, node: int) -> str:
        """Return MOVED or ASK for a key, to a node."""
        return f"{code} {slot_of(key)} 127.0.0.1:{self.nodes[node].port}"

    def table(self, form: str) -> str:
        if form == "NODES":
            rows = "".join(
                f"{node.at:040} 127.0.0.1:{node.port}@1 master - 0 0 {self.epoch} connected {self.epoch}\n"
                for node in self.nodes
            )
            return f"${len(rows)}\r\n{rows}\r\n"
        bounds = [at for at in range(SLOTS) if at == 0 or self.owners[at] != self.owners[at - 1]]
        ends = [*(at - 1 for at in bounds[1:]), SLOTS - 1]
        claims = [
            self._row(owner, first, last)
            for first, last in zip(bounds, ends, strict=True)
            if (owner := self.owners[first]) is not None
        ]
        return f"*{len(claims)}\r\n{''.join(claims)}"

    def _row(self, owner: int, first: int, last: int) -> str:
        node = self.nodes[owner]
        return f"*3\r\n:{first}\r\n:{last}\r\n*3\r\n$9\r\n127.0.0.1\r\n:{node.port}\r\n$40\r\n{node.at:040}\r\n"

    async def __aenter__(self) -> Self:
        for node in self.nodes:
            await node.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        for node in self.nodes:
            node.speaks.set()
            await node.kill()
