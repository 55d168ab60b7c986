"""The figures of a server's processes: those in their metrics, and those of the operating system."""

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

import aiohttp

from tests.end_to_end.server import Server

ASKED = 400
"""Connections that together reach every worker, with an error probability of 10^-30."""

_PID = re.compile(r'^stream_server_process_info\{.*pid="(\d+)"', re.MULTILINE)
_ROW = re.compile(r"^(stream_server_[a-z_]+) (\S+)$", re.MULTILINE)


class ProcessMetrics(NamedTuple):
    """Streams and polls, tasks, open file descriptors and bytes of memory of all workers together."""

    streams: int
    tasks: int
    descriptors: int
    memory: int

    @classmethod
    async def of(cls, server: Server, workers: int) -> Self:
        """Read the figures of each worker over a connection of its own."""
        found: dict[int, dict[str, float]] = {}
        for _ in range(ASKED):
            async with aiohttp.ClientSession() as session, session.get(server.address + "/metrics") as answer:
                text = await answer.text()
            (pid,) = _PID.findall(text)
            found[int(pid)] = {name: float(value) for name, value in _ROW.findall(text)}
            if len(found) == workers:
                break
        assert len(found) == workers
        streams = sum(int(one["stream_server_streams"]) for one in found.values())
        tasks = sum(int(one["stream_server_tasks"]) for one in found.values())
        return cls(streams, tasks, sum(map(_descriptors, found)), sum(map(_memory, found)))


def _descriptors(pid: int) -> int:
    unix = {f"socket:[{row.split()[6]}]" for row in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]}
    held = 0
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            held += str(one.readlink()) not in unix
    return held


def _memory(pid: int) -> int:
    row = next(row for row in Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("VmRSS:"))
    return int(row.split()[1]) * 1024
