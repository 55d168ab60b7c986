"""On a bad network each call gets its own answer or an error, and the error says truly whether the write was made."""

import asyncio
import itertools
import random
from typing import Any

import pytest

from stream_server.errors import OutcomeUnknown, Unavailable
from stream_server.store.redis.client import RedisClient
from tests.redis_process import RedisProcess
from tests.stream_server.store.redis.faulty_proxy import FaultyProxy
from tests.waiting import eventually

TIMEOUT_SECONDS = 0.2

CALLS = 800

ENOUGH_CUTS, ENOUGH_ANSWERS = 20, 200
"""What makes the test see something: less than half of what one round of calls has on an idle machine."""

PRIMARY, REPLICA = ("NO", "ONE"), ("127.0.0.1", "1")
"""The roles of Redis: it takes writes, or it is the replica of a server that is not there and refuses them."""


class Callers:
    """Many callers of one client. Each knows what only its own answer can be, and notes how its write ended."""

    def __init__(self, client: RedisClient, chance: random.Random) -> None:
        self._client = client
        self._chance = chance
        self.ends: dict[str, type[Exception] | None] = {}
        self.answered = 0

    async def call(self, number: int) -> None:
        """Make one call of a random kind. Raises AssertionError if the answer belongs to another call."""
        await asyncio.sleep(self._chance.random())  # spreads the calls over the faults
        kind = self._chance.choice((self._read, self._read_much, self._write, self._write, self._transact))
        try:
            await kind(f"{number}")
        except (Unavailable, OutcomeUnknown):
            return
        self.answered += 1

    async def _read(self, text: str) -> None:
        texts = [f"{text}-{part}" for part in range(self._chance.randrange(1, 4))]
        answers = await self._client.execute(*(("ECHO", each) for each in texts))
        assert answers == [each.encode() for each in texts]

    async def _read_much(self, text: str) -> None:
        large = text + "x" * self._chance.randrange(100_000)
        assert await self._client.execute(("ECHO", large), ("ECHO", text)) == [large.encode(), text.encode()]

    async def _write(self, text: str) -> None:
        key = f"key {text}"
        await self._note(key, ("APPEND", key, text), ("ECHO", "x"), ("STRLEN", key), expected=len(text))

    async def _transact(self, text: str) -> None:
        key = f"key {text}"
        commands = (("MULTI",), ("APPEND", key, text), ("ECHO", text), ("EXEC",))
        await self._note(key, *commands, expected=[len(text), text.encode()])

    async def _note(self, key: str, *commands: Any, expected: object) -> None:
        try:
            *_, answer = await self._client.execute_write(*commands)
        except (Unavailable, OutcomeUnknown) as error:
            self.ends[key] = type(error)
            raise
        assert answer == expected
        self.ends[key] = None


async def _answers(client: RedisClient) -> bool:
    try:
        return await client.execute(("ECHO", "after it")) == [b"after it"]
    except Unavailable:
        return False


def _has_failed(call: "asyncio.Task[None]") -> bool:
    return call.done() and not call.cancelled() and call.exception() is not None


async def _make_calls(callers: Callers, chance: random.Random, raw: Any, numbers: range) -> None:
    """Make calls at once, of which a tenth is cancelled, while Redis changes its role. None may fail unexpectedly."""
    calls = [asyncio.create_task(callers.call(number)) for number in numbers]
    for call in chance.sample(calls, len(calls) // 10):
        asyncio.get_running_loop().call_later(chance.random(), call.cancel)
    try:
        while not all(call.done() for call in calls):
            if any(map(_has_failed, calls)):
                for call in calls:  # the others might wait for ever
                    call.cancel()
            await asyncio.sleep(chance.random() * 0.1)  # the time between two changes of the role
            raw.replicaof(*chance.choice((PRIMARY, PRIMARY, PRIMARY, REPLICA)))
    finally:
        raw.replicaof(*PRIMARY)
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert not [each for each in results if isinstance(each, Exception)]


@pytest.mark.parametrize("seed", range(3))
async def test_no_answer_goes_to_a_wrong_call_and_no_refused_write_is_made(
    redis_server: RedisProcess, redis_url: str, raw: Any, seed: int
) -> None:
    """On a very busy machine most calls end before they are sent. Then more are made, until enough faults came."""
    chance = random.Random(seed)
    async with FaultyProxy(redis_server.socket, chance) as proxy:
        client = RedisClient(proxy.url, TIMEOUT_SECONDS)
        callers = Callers(client, chance)
        proxy.fault_share = 0.06
        for begin in itertools.count(0, CALLS):
            await _make_calls(callers, chance, raw, range(begin, begin + CALLS))
            if proxy.cut_answers >= ENOUGH_CUTS and callers.answered >= ENOUGH_ANSWERS:
                break
        proxy.fault_share = 0.0
        await eventually(lambda: _answers(client), what="the client works again")
        await client.close()
        await eventually(lambda: not proxy._serving, what="the proxy has closed its connections")
    await eventually(lambda: len(raw.client_list()) == 1, what="no connection but that of the test")
    made = {key.decode() for key in raw.keys("key *")}
    assert {key for key, end in callers.ends.items() if end is None} <= made
    assert not {key for key, end in callers.ends.items() if end is Unavailable} & made
