"""The samples of operators: Redis keeps an hour of each server, and forgets a server that is gone."""

from stream_server.store.operation_samples import KEPT_SECONDS
from stream_server.store.store import Store


async def test_redis_keeps_an_hour_of_each_server(store: Store) -> None:
    """Repeated samples count once, old ones go, those of another server are apart, and all of them expire."""
    kept = store.operation_samples
    await kept.add("a:1", {b"old": 1000, b"new": 1010})
    await kept.add("a:1", {b"new": 1010, b"newer": 1000 + KEPT_SECONDS})
    await kept.add("b:1", {b"else": 1010})
    assert await kept.read("a:1", 0, 10_000) == [b"new", b"newer"]
    assert await kept.read("a:1", 0, 1010) == [b"new"]
    (seconds,) = await store._derived.execute(("TTL", "samples:{a:1}"))
    assert 0 < seconds <= 2 * KEPT_SECONDS
