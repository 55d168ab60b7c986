"""Whom a service's Sentinels name: the newest answer counts, and one that says nothing holds nobody up for long."""

import asyncio
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from stream_server.store.redis import address
from stream_server.store.redis.sentinel import Sentinels
from tests.waiting import PATIENCE, eventually

URL = "redis+sentinel://u:hunter22@a,b,c/main?sentinel_password=hunter23"

NOTHING: dict[str, Any] = {"is_sdown": False, "is_odown": False, "is_disconnected": False}


class Knowing:
    """A Sentinel that knows this; an exception is raised, None is silence."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self._told: Any = None
        self.asked = 0

    async def sentinel_master(self, _service: str, *, return_responses: bool) -> Any:
        """What it knows of the primary."""
        assert return_responses
        self._told = await self._answer()
        return self._told

    async def execute_command(self, *command: str) -> Any:
        """Whom it names, while it changes the primary."""
        assert command == ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")
        return b"10.0.0.1", b"%d" % self._told["names"]

    async def sentinel_slaves(self, _service: str) -> Any:
        """What it knows of the replicas."""
        return await self._answer()

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _answer(self) -> Any:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        return answer


def primary(port: int, epoch: int = 0, **more: bool) -> dict[str, Any]:
    """A Sentinel's word for a primary."""
    return {"ip": "10.0.0.1", "port": port, "config-epoch": epoch, "flags": "master", **NOTHING, **more}


def changing(port: int, names: int, epoch: int = 0, **more: bool) -> dict[str, Any]:
    """The word of the one that puts another in its place; it ``names`` that one when it has been promoted."""
    return primary(port, epoch, **more) | {"flags": "master,failover_in_progress", "names": names}


def replica(port: int, link: str = "ok", **more: bool) -> dict[str, Any]:
    """A Sentinel's word for a replica."""
    return {"ip": "10.0.0.1", "port": port, "master-link-status": link, **NOTHING, **more}


def _sentinels(*clients: Knowing, replica: bool = False, seconds: float = PATIENCE) -> Sentinels:
    watched = address.parse_sentinel_url(URL)
    assert watched is not None
    made = Sentinels(watched, seconds, replica=replica)
    made._clients = list(clients)  # type: ignore[arg-type]  # in the place of those that were made, which are not connected
    return made


UNKNOWN = ResponseError("No such master with that name")
GONE = ConnectionRefusedError("gone")


@pytest.mark.parametrize(
    "answers",
    [
        (primary(1, 0), primary(2, 5), primary(2, 5)),
        (primary(2, 5), GONE, primary(1, 4)),
        (primary(1, 4, is_sdown=True), None, primary(2, 5)),
        (UNKNOWN, primary(2), GONE),
        (primary(2, is_disconnected=True), primary(2), None),
        (primary(1, 4), changing(1, 2, 5), primary(1, 4)),
        (primary(1, 4, is_odown=True), GONE, changing(1, 2, 5, is_sdown=True, is_odown=True)),
        (primary(1, 4), changing(1, 1, 4), primary(2, 5)),
    ],
    ids=[
        "a stale one",
        "stale and gone",
        "silent",
        "unknown there",
        "one that lost sight of it",
        "just promoted",
        "promoted for a dead one",
        "one that has not heard that it is done",
    ],
)
async def test_the_newest_answer_counts(answers: tuple[Any, ...]) -> None:
    """A Sentinel that is cut off from the others names the old primary, in good faith."""
    assert await _sentinels(*map(Knowing, answers)).resolve() == ("10.0.0.1", 2)


@pytest.mark.parametrize(
    "answers",
    [
        (GONE, UNKNOWN, GONE),
        (primary(1, is_sdown=True), primary(1, is_sdown=True, is_odown=True), GONE),
        (primary(1, 4), primary(2, 5, is_sdown=True), GONE),
    ],
    ids=["nobody", "down", "the new one is down"],
)
async def test_no_primary(answers: tuple[Any, ...]) -> None:
    """Said at once, instead of waiting for a server that does not answer."""
    with pytest.raises(RedisConnectionError):
        await _sentinels(*map(Knowing, answers)).resolve()


@pytest.mark.parametrize(
    ("answer", "address"),
    [
        (changing(1, 1), None),
        (primary(1, is_sdown=True, is_odown=True), None),
        (primary(1, is_sdown=True), ("10.0.0.1", 1)),
        (GONE, ("10.0.0.1", 1)),
    ],
    ids=["being changed", "dead to most", "not seen by one", "nobody says anything"],
)
async def test_who_is_to_be_left(monkeypatch: pytest.MonkeyPatch, answer: Any, address: tuple[str, int] | None) -> None:
    """Connections go on until it is known that somebody else is going to be the primary."""
    monkeypatch.setattr("stream_server.store.redis.sentinel.CACHE_SECONDS", 0.0)
    sentinels = _sentinels(Knowing(primary(1), answer))
    assert await sentinels.resolve() == ("10.0.0.1", 1)
    with pytest.raises(RedisConnectionError):
        await sentinels.resolve()
    assert sentinels.address == address


async def test_a_primary_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody makes a connection, and yet it is known; a Sentinel that fails in between ends nothing."""
    monkeypatch.setattr("stream_server.store.redis.sentinel.POLL_SECONDS", 0.0)
    monkeypatch.setattr("stream_server.store.redis.sentinel.CACHE_SECONDS", 0.0)
    client = Knowing(primary(1), GONE, changing(1, 1), primary(2, 1))
    sentinels = _sentinels(client)
    assert await sentinels.resolve() == ("10.0.0.1", 1)
    sentinels.start_polling()
    await eventually(lambda: sentinels.address == ("10.0.0.1", 2))
    await sentinels.close()
    assert not [task for task in asyncio.all_tasks() if "sentinels" in task.get_name()]


async def test_silence_of_all_ends_with_the_time_out() -> None:
    """Nobody waits for ever, also if nobody else watches the time."""
    with pytest.raises(RedisConnectionError):
        await asyncio.wait_for(_sentinels(Knowing(None), seconds=0.05).resolve(), PATIENCE)


async def test_who_asks_at_the_same_time_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And for a moment longer: in a failover all connections are made anew. One that gives up harms no other."""
    client = Knowing(primary(1), GONE, primary(2, 1))
    sentinels = _sentinels(client)
    hasty, *patient = [asyncio.create_task(sentinels.resolve()) for _ in range(50)]
    await asyncio.sleep(0)
    hasty.cancel()
    assert await asyncio.gather(*patient) == [("10.0.0.1", 1)] * 49
    monkeypatch.setattr("stream_server.store.redis.sentinel.CACHE_SECONDS", PATIENCE * 1000)
    assert await sentinels.resolve() == ("10.0.0.1", 1)
    assert client.asked == 1
    monkeypatch.setattr("stream_server.store.redis.sentinel.CACHE_SECONDS", 0.0)
    with pytest.raises(RedisConnectionError):
        await sentinels.resolve()
    assert await sentinels.resolve() == sentinels.address == ("10.0.0.1", 2)


async def test_a_healthy_replica_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that any Sentinel calls down, or that has lost its primary, is not taken; without a healthy one, none is."""
    monkeypatch.setattr("stream_server.store.redis.sentinel.CACHE_SECONDS", 0.0)
    both, second = [replica(1), replica(2)], [replica(1, is_sdown=True), replica(2)]
    none = [replica(1, "err"), replica(2, is_disconnected=True)]
    sentinels = _sentinels(Knowing(second, both, both, none), Knowing(both), replica=True)
    assert [await sentinels.resolve() for _ in range(3)] == [("10.0.0.1", 2)] * 3
    with pytest.raises(RedisConnectionError):
        await sentinels.resolve()


def test_nothing_secret_is_in_a_repr() -> None:
    """It stands among the arguments of connections, which redis-py prints."""
    watched = address.parse_sentinel_url(URL)
    assert watched is not None
    sentinels = Sentinels(watched, 1.0)
    shown = repr(sentinels) + repr(watched) + "".join(repr(client) for client in sentinels._clients)
    assert "hunter" not in shown
