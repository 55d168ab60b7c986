"""The figures of a server's processes: those in their metrics, and those of the operating system."""

import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

import aiohttp

from tests.end_to_end.server import Server

_PID = re.compile(r'^stream_server_process_info\{.*pid="(\d+)"', re.MULTILINE)
_ROW = re.compile(r"^(stream_server_[a-z_]+)\{.*\} (\S+)$", re.MULTILINE)


class ProcessMetrics(NamedTuple):
    """Streams and polls, tasks, open file descriptors and bytes of memory of all workers together."""

    streams: int
    tasks: int
    descriptors: int
    memory: int

    @classmethod
    async def of(cls, server: Server, workers: int) -> Self:
        """Read the metrics of all workers from the one that answers."""
        async with aiohttp.ClientSession() as session, session.get(server.address + "/metrics") as answer:
            text = await answer.text()
        pids = {int(pid) for pid in _PID.findall(text)}
        assert len(pids) == workers
        sums: defaultdict[str, float] = defaultdict(float)
        for name, value in _ROW.findall(text):
            sums[name] += float(value)
        streams, tasks = int(sums["stream_server_streams"]), int(sums["stream_server_tasks"])
        return cls(streams, tasks, sum(map(_descriptors, pids)), sum(map(_memory, pids)))


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
