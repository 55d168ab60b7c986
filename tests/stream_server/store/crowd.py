"""Writers that post numbers under faults, and what the log has of them afterwards."""

import asyncio
import json

from stream_server.errors import OutcomeUnknown, Unavailable
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People
from tests.waiting import PATIENCE, eventually

WRITERS = 4


class Writer:
    """Posts ascending numbers, each under a separate key. It retries until it is acknowledged."""

    def __init__(self, store: Store, uid: str) -> None:
        self._store = store
        self.uid = uid
        self.acknowledged: list[str] = []
        self.ids: list[str] = []

    async def run(self) -> None:
        number = 0
        while True:
            if await self._try(str(number)):
                number += 1
            await asyncio.sleep(0.005)  # the pace of the load; waits for nothing

    async def _try(self, message: str) -> bool:
        request = IdempotencyKey.from_client(self.uid, message, b"payload")
        try:
            made = await self._store.statuses.create(self.uid, StatusDraft(message=message), request)
        except (Unavailable, OutcomeUnknown):
            return False
        self.acknowledged.append(message)
        self.ids.append(str(json.loads(made)["id"]))
        return True


class Crowd:
    """Several writers at once."""

    def __init__(self, writers: list[Writer]) -> None:
        self.writers = writers
        self._tasks = [asyncio.create_task(writer.run()) for writer in writers]

    async def go_on(self, count: int) -> None:
        """Wait until each writer has ``count`` more acknowledged. Raises a writer's error."""
        wanted = {writer.uid: len(writer.acknowledged) + count for writer in self.writers}

        def there() -> bool:
            for task in self._tasks:
                if task.done():
                    task.result()
            return all(len(writer.acknowledged) >= wanted[writer.uid] for writer in self.writers)

        await eventually(there, seconds=2 * PATIENCE, what="writes acknowledged")

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def gather_crowd(store: Store) -> Crowd:
    """Create some users and let each post."""
    return Crowd([Writer(store, uid) for uid in await People(store).users(WRITERS)])


async def read_posts(server: RedisProcess) -> dict[str, list[tuple[str, str]]]:
    """All posts on the log of a server: ids and messages by author, in order. Checks the numbers."""
    return await posts_at(server.url)


async def posts_at(url: str) -> dict[str, list[tuple[str, str]]]:
    """All posts on the log at a URL, as those of :func:`read_posts`."""
    store, found = Store(url, timeout_seconds=PATIENCE), dict[str, list[tuple[str, str]]]()
    after, number = LOG_START, 0
    while entries := await store.log.read(after, 1000):
        for entry in entries:
            number += 1
            assert entry.position.n == number
            status = json.loads(entry.wire)["status"]
            found.setdefault(status["uid"], []).append((status["id"], status["message"]))
        after = entries[-1].position
    await store.close()
    return found
