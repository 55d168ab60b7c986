"""The state of a measured server with all its workers: from its metrics, and from `/proc`."""

import asyncio
import re
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.process import descendants, memory_kib

_ROW = re.compile(r"^(stream_server_\w+)\{.*\} ([0-9.eE+-]+)$", re.MULTILINE)


class Seen(NamedTuple):
    """One sample: gauges of the server, and the open files and the anonymous memory in KiB of its processes.

    ``files`` leaves out Unix sockets, because the pool of Redis connections keeps those that a storm has opened.
    """

    workers: float
    streams: float
    live: float
    tasks: float
    ring_bytes: float
    blocks: float
    files: int
    memory_kib: int


def look(port: int, pid: int) -> Seen:
    """Take one sample. Raises OSError if the server does not answer."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        rows: defaultdict[str, float] = defaultdict(float)
        for name, value in _ROW.findall(answer.read().decode()):
            rows[name] += float(value)
    pids = (pid, *descendants(pid))
    return Seen(
        workers=rows["stream_server_worker_up"], streams=rows["stream_server_streams"],
        live=rows["stream_server_streams_live"], tasks=rows["stream_server_tasks"],
        ring_bytes=rows["stream_server_ring_bytes"], blocks=rows["stream_server_memory_blocks"],
        files=sum(map(_files, pids)), memory_kib=sum(map(memory_kib, pids)),
    )  # fmt: skip


async def looked(port: int, pid: int) -> Seen:
    """Take one sample in a thread, so that the event loop goes on."""
    return await asyncio.to_thread(look, port, pid)


async def until(port: int, pid: int, check: Callable[[Seen], bool], seconds: float) -> tuple[Seen, float]:
    """Sample until ``check`` accepts a sample or ``seconds`` are over.

    Return the last sample and the seconds elapsed.
    """
    clock = asyncio.get_running_loop().time
    start = clock()
    while True:
        seen = await looked(port, pid)
        if check(seen) or clock() > start + seconds:
            return seen, clock() - start
        await asyncio.sleep(0.1)


def _files(pid: int) -> int:
    links = [_linked(descriptor) for descriptor in Path(f"/proc/{pid}/fd").iterdir()]
    local = {row.split()[6] for row in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]}
    return sum(link.removeprefix("socket:[").rstrip("]") not in local for link in links if link)


def _linked(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        return ""  # the file was closed after the listing
