"""Reads what Redis has done and what it holds: commands, CPU time, memory, the append-only file."""

from collections import Counter
from typing import Any, NamedTuple, Self

from redis import Redis

from stream_server.store import keys

OWN_COMMANDS = frozenset({"info", "memory|stats", "memory|usage", "memory", "scan", "touch", "hget"})
"""The commands of this program, which are not counted."""

KEYS_AT_ONCE = 1000
"""Keys whose memory is read in one round trip."""

JOBS = keys.key_for("due")
"""The jobs that are not done."""


class Reading(NamedTuple):
    """Totals since the start of Redis, or their differences. Sizes are in bytes and times in µs.

    Attributes:
        commands: Number of commands, also of those that scripts call.
        main_us: CPU time of the main thread, which executes the commands.
        memory: Memory of the data with the tables of keys, without buffers of connections.
        aof: Size of the append-only file.
        entries: Entries of the log.
    """

    commands: float
    main_us: float
    memory: float
    aof: float
    entries: float

    def minus(self, other: Self) -> "Reading":
        """Return the differences to an earlier reading."""
        return Reading(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class RedisMeter:
    """Reads the figures of one Redis. A reading costs Redis something too, which is subtracted."""

    def __init__(self, client: "Redis") -> None:
        self._client = client
        first = self.read()
        self._own_us = self.read().main_us - first.main_us

    def since(self, before: Reading) -> Reading:
        """Return what has happened since the reading ``before``, without what a reading costs."""
        found = self.read().minus(before)
        return found._replace(main_us=found.main_us - self._own_us)

    def jobs_left(self) -> bool:
        """Return whether jobs wait or run."""
        return bool(self._client.touch(JOBS))

    def entries(self) -> int:
        """Return the number of the newest entry of the log."""
        return int(self._client.hget(keys.META, "n") or 0)

    def families(self) -> tuple[Counter[str], Counter[str]]:
        """Return the memory and the number of all keys by family, the name in the table of keys."""
        found: Counter[str] = Counter()
        count: Counter[str] = Counter()
        cursor = 0
        while True:
            cursor, names = self._client.scan(cursor, count=KEYS_AT_ONCE)
            with self._client.pipeline(transaction=False) as commands:
                for name in names:
                    commands.memory_usage(name, samples=0)
                for name, size in zip(names, commands.execute(), strict=True):
                    family = family_of(name if isinstance(name, str) else name.decode())
                    found[family] += size or 0
                    count[family] += 1
            if cursor == 0:
                return found, count

    def bytes_beside_keys(self) -> int:
        """Return the memory of all but the keys and their tables: clients, scripts, the program itself."""
        stats = self._client.memory_stats()
        tables = [sum(table.values()) for table in stats.values() if isinstance(table, dict)]
        return int(stats["overhead.total"]) - sum(tables)

    def read(self) -> Reading:
        """Return the totals."""
        commands: Any = self._client.pipeline(transaction=False)
        with commands:
            for section in ("commandstats", "cpu", "persistence"):
                commands.execute_command("INFO", section)
            commands.execute_command("MEMORY STATS")
            calls, cpu, persistence, memory = commands.execute()
        names = ((name.removeprefix("cmdstat_"), row["calls"]) for name, row in calls.items())
        return Reading(
            commands=sum(count for name, count in names if name not in OWN_COMMANDS),
            main_us=1e6 * (cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"]),
            memory=_data_bytes(memory),
            aof=persistence["aof_current_size"],
            entries=self.entries(),
        )


def family_of(key: str) -> str:
    """Return the name of a key's row in the table of keys, or the key if it has none."""
    whole = (row.name for row in keys.ALL_KEYS if not row.tail and row.prefix == key)
    return keys.parse(key)[0] or next(whole, key)


def _data_bytes(stats: dict[str, Any]) -> float:
    tables = stats.get("db.0", {})
    rows = dict(zip(tables[::2], tables[1::2], strict=True)) if isinstance(tables, list) else tables
    return float(stats["dataset.bytes"] + sum(size for name, size in rows.items() if "hashtable" in str(name)))
