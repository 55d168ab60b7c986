"""Reads what Redis has done and what it holds: commands, CPU time, traffic, memory, the append-only file."""

from collections import Counter
from typing import Any, NamedTuple, Self

from redis import Redis

from stream_server.store import keys

OWN_COMMANDS = frozenset({"info", "memory|stats", "memory|usage", "memory", "scan", "touch"})
"""The commands of this program, which are not counted. The server uses none of them while it is measured."""

KEYS_AT_ONCE = 1000
"""Keys whose memory is read in one round trip."""

SCRIPTS = ("eval", "evalsha")
"""The commands that run scripts."""

JOBS = keys.key_for("due")
"""The jobs that are not done."""


class Reading(NamedTuple):
    """Totals since the start of Redis, or their differences. Sizes are in bytes and times in µs.

    Attributes:
        calls: Number of calls of each command, also of those that scripts call.
        script_us: Time in scripts.
        main_us: CPU time of the main thread, which executes the commands.
        other_us: CPU time of the other threads.
        received: Bytes that Redis has read from its connections.
        sent: Bytes that Redis has written to its connections.
        memory: Memory of the data with the tables of keys, without buffers of connections.
        aof: Size of the append-only file.
    """

    calls: Counter[str]
    script_us: float
    main_us: float
    other_us: float
    received: float
    sent: float
    memory: float
    aof: float

    def minus(self, other: Self) -> "Reading":
        """Return the differences to an earlier reading."""
        rest = (mine - theirs for mine, theirs in zip(self[1:], other[1:], strict=True))
        return Reading(_less(self.calls, other.calls), *rest)


class RedisMeter:
    """Reads the figures of one Redis. A reading costs Redis something too, which is subtracted."""

    def __init__(self, client: "Redis") -> None:
        self._client = client
        self._own = self._read()._replace(memory=0, aof=0)
        self._own = self._read().minus(self._own)._replace(memory=0, aof=0)

    def read(self) -> Reading:
        """Return the totals, without what this reading itself costs."""
        return self._read()

    def since(self, before: Reading) -> Reading:
        """Return what has happened since the reading ``before``, without what the readings cost."""
        return self._read().minus(before).minus(self._own)

    def jobs_left(self) -> bool:
        """Return whether jobs wait or run."""
        return bool(self._client.touch(JOBS))

    def families(self) -> Counter[str]:
        """Return the memory of all keys by family, the name in the table of keys."""
        found: Counter[str] = Counter()
        cursor = 0
        while True:
            cursor, names = self._client.scan(cursor, count=KEYS_AT_ONCE)
            with self._client.pipeline(transaction=False) as commands:
                for name in names:
                    commands.memory_usage(name, samples=0)
                for name, size in zip(names, commands.execute(), strict=True):
                    found[family_of(_bytes(name).decode())] += size or 0
            if cursor == 0:
                return found

    def _read(self) -> Reading:
        commands: Any = self._client.pipeline(transaction=False)
        with commands:
            for section in ("commandstats", "cpu", "stats", "persistence"):
                commands.execute_command("INFO", section)
            commands.execute_command("MEMORY STATS")
            calls, cpu, stats, persistence, memory = commands.execute()
        main = cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"]
        rows: dict[str, Any] = {name.removeprefix("cmdstat_"): row for name, row in calls.items()}
        return Reading(
            calls=Counter({name: row["calls"] for name, row in rows.items() if name not in OWN_COMMANDS}),
            script_us=sum(rows[name]["usec"] for name in SCRIPTS if name in rows),
            main_us=1e6 * main,
            other_us=1e6 * (cpu["used_cpu_user"] + cpu["used_cpu_sys"] - main),
            received=stats["total_net_input_bytes"],
            sent=stats["total_net_output_bytes"],
            memory=_data_bytes(memory),
            aof=persistence["aof_current_size"],
        )


def family_of(key: str) -> str:
    """Return the name of a key's row in the table of keys, or the key if it has none."""
    whole = (row.name for row in keys.ALL_KEYS if not row.tail and row.prefix == key)
    return keys.parse(key)[0] or next(whole, key)


def _data_bytes(stats: dict[str, Any]) -> float:
    tables = stats.get("db.0", {})
    rows = dict(zip(tables[::2], tables[1::2], strict=True)) if isinstance(tables, list) else tables
    return float(stats["dataset.bytes"] + sum(size for name, size in rows.items() if b"hashtable" in _bytes(name)))


def _bytes(name: str | bytes) -> bytes:
    return name.encode() if isinstance(name, str) else name


def _less(mine: Counter[str], theirs: Counter[str]) -> Counter[str]:
    left = Counter(mine)
    left.subtract(theirs)
    return Counter({name: count for name, count in left.items() if count})
