"""The timelines of several new statuses, which other sites send at once, are written together."""

from typing import Any

from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.social.ingest import Ingested
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.stream_server.store.job_queue import check_timelines, drain, forget_scripts_before_transactions, home
from tests.stream_server.store.people import People, new_key

PASS = 5


SIZES = SizeLimits(fanout_batch_size=PASS)


async def _ids(store: Store, lines: list[Any]) -> list[str]:
    """Write lines and their timelines. Return the own ids."""
    results, timelines = await store.ingest.write(lines)
    await timelines
    return [result.id for result in results if isinstance(result, Ingested)]


async def _community(store: Store, people: People, readers: list[int]) -> tuple[list[str], list[str]]:
    """Create authors of another site, and users of whom the first ``readers[n]`` follow author ``n``."""
    authors = await _ids(store, [store.ingest.user(f"a{n}", "", {}) for n in range(len(readers))])
    others = await people.users(max(readers))
    for author, count in zip(authors, readers, strict=True):
        for follower in others[:count]:
            await store.follows.follow(follower, author, new_key())
    return authors, others


async def _post(store: Store, authors: list[int]) -> list[str]:
    lines = [(f"p{n}", f"a{author}", StatusDraft(message="hi")) for n, author in enumerate(authors)]
    return await _ids(store, [store.ingest.post(*line, None) for line in lines])


def _transactions(store: Store) -> list[int]:
    """Note how many timelines each transaction writes from now on."""
    found, exchange = list[int](), store._redis.run_pipeline

    async def note(commands: Any, timeout_seconds: float) -> list[Any]:
        if commands[0][0] == "MULTI":
            found.append(sum(command[0] == "ZADD" for command in commands))
        return await exchange(commands, timeout_seconds)

    store._redis.run_pipeline = note  # type: ignore[method-assign]  # what a test is for
    return found


async def test_a_timeline_of_several_new_statuses_is_written_once(store: Store, people: People, raw: Any) -> None:
    await _community(store, people, [2, 1, 0])
    found = _transactions(store)
    await _post(store, [0, 1, 2, 1])
    assert found == [5], "two readers and three authors"
    assert raw.zcard("{core}:due") == 0
    check_timelines(raw)


async def test_a_transaction_has_about_one_page_of_readers(store: Store, people: People, raw: Any) -> None:
    """More readers make more transactions. An author with a page of readers or more goes alone, as ever."""
    await _community(store, people, [3, 2, PASS + 2])
    found = _transactions(store)
    await _post(store, [0, 1, 1, 2, 0])
    assert found == [5, PASS + 1, 5]
    assert raw.zcard("{core}:due") == 1, "the readers behind the first page"
    await drain(store, raw)
    check_timelines(raw)


async def test_a_timeline_that_cannot_be_written_gets_a_job_and_the_others_get_their_statuses(
    store: Store, people: People, raw: Any
) -> None:
    authors, others = await _community(store, people, [2, 1])
    raw.set(f"home:{{{others[0]}}}", "no sorted set")
    first, second = await _post(store, [0, 1])
    assert home(raw, authors[0]) == home(raw, others[1]) == {first}
    assert home(raw, authors[1]) == {second}
    assert raw.zrange("{core}:due", 0, -1) == [f"refill-home-{others[0]}".encode()]
    raw.delete(f"home:{{{others[0]}}}")
    await drain(store, raw)
    check_timelines(raw)


async def test_a_redis_that_forgot_the_scripts_finishes_the_jobs(store: Store, people: People, raw: Any) -> None:
    await _community(store, people, [2, 1])
    forget_scripts_before_transactions(store, raw)
    await _post(store, [0, 1])
    assert raw.zcard("{core}:due") == 0
    check_timelines(raw)


async def test_a_failed_transaction_leaves_all_of_its_jobs(store: Store, people: People, raw: Any) -> None:
    await _community(store, people, [2, 1])
    exchange = store._redis.run_pipeline

    async def failing(commands: Any, timeout_seconds: float) -> list[Any]:
        if commands[0][0] == "MULTI":
            commands = [commands[0], ("ZADD", "no score"), *commands[1:]]  # Redis refuses the whole transaction
        return await exchange(commands, timeout_seconds)

    store._redis.run_pipeline = failing  # type: ignore[method-assign]  # what the test is for
    await _post(store, [0, 1])
    assert (raw.zcard("{core}:due"), store.syndication.failed_passes, raw.keys("home:*")) == (2, 1, [])
    store._redis.run_pipeline = exchange  # type: ignore[method-assign]  # see above
    await drain(store, raw)
    check_timelines(raw)
