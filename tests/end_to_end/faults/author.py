"""An author who repeats each post under one Idempotency-Key until the server acknowledges it."""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import aiohttp

from tests.end_to_end.api import Answer, Api, mint
from tests.waiting import PATIENCE, eventually

RETRY_SECONDS = 0.1
"""The wait between two attempts. It is shorter than the server asks for, so an outage affects many attempts."""


class Author:
    """Posts in a loop inside its context. Each attempt goes to the next of ``apis``, which a test may change.

    ``acknowledged`` has the ids of the posts in log order, because each post waits for the answer of the one before.
    ``refused`` counts the failed attempts by error code or exception name. ``slowest_seconds`` is the longest wait for
    an answer.
    """

    def __init__(self, uid: str, *apis: Api) -> None:
        self.uid = uid
        self.acknowledged: list[str] = []
        self.attempts = 0
        self.refused: Counter[str] = Counter()
        self.slowest_seconds = 0.0
        self.apis = list(apis)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._write())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if error is not None and self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            return
        await self.stop()

    async def stop(self) -> None:
        """Finish the current post, which may be on the log already. Then post no more."""
        task, self._task = self._task, None
        if task is not None:
            await asyncio.wait({task}, timeout=PATIENCE)
            assert task.done(), f"the post that was under way was never acknowledged; refused: {self.refused}"
            task.result()

    async def has_posted(self, more: int, seconds: float = PATIENCE) -> None:
        """Wait until the server has acknowledged ``more`` further posts."""
        target = len(self.acknowledged) + more
        what = f"{target} posts; refused: {self.refused}"
        await eventually(lambda: self._failed() or len(self.acknowledged) >= target, seconds=seconds, what=what)
        assert not self._failed(), self._task

    def _failed(self) -> bool:
        return self._task is None or self._task.done()

    async def _write(self) -> None:
        while self._task is not None:
            message, key = f"number {len(self.acknowledged)}", uuid.uuid4().hex
            while not await self._attempt(message, key):  # noqa: ASYNC110 - the retry interval of a client
                await asyncio.sleep(RETRY_SECONDS)

    async def _attempt(self, message: str, key: str) -> bool:
        api = self.apis[self.attempts % len(self.apis)]
        self.attempts += 1
        began = time.monotonic()
        try:
            answer = await posted(api, self.uid, message, key)
        except aiohttp.ClientError as error:
            self.refused[type(error).__name__] += 1
            return False
        finally:
            self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
        if answer.status == 201:
            self.acknowledged.append(answer.json["id"])
            return True
        assert answer.status == 503, answer
        self.refused[answer.json["error"]["code"]] += 1
        return False


async def posted(api: Api, uid: str, message: str, key: str) -> Answer:
    """Try once to post with an Idempotency-Key, and return any answer."""
    headers = {"Idempotency-Key": key}
    return await api.call("POST", "/v1/statuses", token=mint(uid), json={"message": message}, headers=headers)


def in_log_order(authors: Sequence[Author]) -> list[tuple[str, str]]:
    """Return the (kind, id) pairs that a stream of these authors receives: all acknowledged posts in log order."""
    ids = [one for author in authors for one in author.acknowledged]
    return [("post", one) for one in sorted(ids, key=int)]
