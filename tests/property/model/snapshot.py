"""All data of a Redis, sorted by the table of keys."""

from typing import Any

import redis

from stream_server.store.keys import ALL_KEYS

Held = dict[str, dict[str, Any]]


class Snapshot:
    """Every key by its row of the table and by its variable part.

    Hashes are dictionaries, sorted sets are dictionaries of scores, sets are sets. ``strange`` are keys without a row.
    """

    def __init__(self, raw: "redis.Redis") -> None:
        self._held: Held = {}
        self.strange: list[str] = []
        for key in sorted(_decoded(raw.scan_iter(count=1000))):
            row = _row(key)
            if row is None:
                self.strange.append(key)
            else:
                name, rest = row
                self._held.setdefault(name, {})[rest] = _value(raw, key)

    def of(self, name: str) -> dict[str, Any]:
        return self._held.get(name, {})

    def names(self) -> set[str]:
        return set(self._held)

    def pairs(self, name: str) -> set[tuple[str, str]]:
        """All (owner, member) of the sorted sets of a row."""
        return {(owner, member) for owner, members in self.of(name).items() for member in members}

    def turned(self, name: str) -> set[tuple[str, str]]:
        """All (member, owner) of the sorted sets of a row."""
        return {(member, owner) for owner, member in self.pairs(name)}


def _row(key: str) -> tuple[str, str] | None:
    """The row of a key and its variable part without braces. The longest prefix wins."""
    fitting = [row for row in ALL_KEYS if key.startswith(row.prefix) and (row.tail or key == row.prefix)]
    if not fitting:
        return None
    row = max(fitting, key=lambda one: len(one.prefix))
    return row.name, key.removeprefix(row.prefix).strip("{}")


def _value(raw: "redis.Redis", key: str) -> Any:
    kind = _decoded([raw.type(key)])[0]
    if kind == "hash":
        found: Any = raw.hgetall(key)
        return {_text(name): value.decode("utf-8", "replace") for name, value in found.items()}
    if kind == "zset":
        rows: Any = raw.zrange(key, 0, -1, withscores=True)
        return {_text(member): score for member, score in rows}
    if kind == "set":
        members: Any = raw.smembers(key)
        return {_text(member) for member in members}
    return raw.get(key) if kind == "string" else None


def _text(raw: bytes) -> str:
    return raw.decode()


def _decoded(found: Any) -> list[str]:
    return [_text(one) for one in found]
