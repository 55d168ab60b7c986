"""The primary and the replicas that Sentinels name: the newest answer wins, and silence ends with a timeout."""

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
    """A Sentinel with scripted answers: an exception is raised, None is silence."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self._told: Any = None
        self.asked = 0

    async def sentinel_master(self, _service: str, *, return_responses: bool) -> Any:
        assert return_responses
        self._told = await self._answer()
        return self._told

    async def execute_command(self, *command: str) -> Any:
        assert command == ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")
        return b"10.0.0.1", b"%d" % self._told["names"]

    async def sentinel_slaves(self, _service: str) -> Any:
        return await self._answer()

    async def aclose(self) -> None:
        """Do nothing."""

    async def _answer(self) -> Any:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        return answer


def primary(port: int, epoch: int = 0, **more: bool) -> dict[str, Any]:
    return {"ip": "10.0.0.1", "port": port, "config-epoch": epoch, "flags": "master", **NOTHING, **more}


def changing(port: int, names: int, epoch: int = 0, **more: bool) -> dict[str, Any]:
    """The answer of the Sentinel that leads a failover. It ``names`` the new primary after the promotion."""
    return primary(port, epoch, **more) | {"flags": "master,failover_in_progress", "names": names}


def replica(port: int, link: str = "ok", **more: bool) -> dict[str, Any]:
    return {"ip": "10.0.0.1", "port": port, "master-link-status": link, **NOTHING, **more}


def _sentinels(*clients: Knowing, replica: bool = False, seconds: float = PATIENCE) -> Sentinels:
    watched = address.parse_group_url(URL)
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
        (primary(1, 4), primary(2, 5, is_disconnected=True), GONE),
    ],
    ids=[
        "a stale one",
        "stale and gone",
        "silent",
        "unknown there",
        "disconnected",
        "just promoted",
        "promoted for a dead one",
        "not informed of the end of the failover",
        "not connected to the new primary yet",
    ],
)
async def test_the_newest_answer_of_the_sentinels_wins(answers: tuple[Any, ...]) -> None:
    assert await _sentinels(*map(Knowing, answers)).resolve() == ("10.0.0.1", 2)


@pytest.mark.parametrize(
    "answers",
    [
        (GONE, UNKNOWN, GONE),
        (primary(1, is_sdown=True), primary(1, is_sdown=True, is_odown=True), GONE),
        (primary(1, 4), primary(2, 5, is_sdown=True), GONE),
    ],
    ids=["no answer", "down", "the new one is down"],
)
async def test_no_primary_is_an_error_at_once(answers: tuple[Any, ...]) -> None:
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
    ids=["being changed", "down for most", "down for one", "no answer"],
)
async def test_the_address_is_kept_until_another_primary_is_certain(
    monkeypatch: pytest.MonkeyPatch, answer: Any, address: tuple[str, int] | None
) -> None:
    monkeypatch.setattr("stream_server.store.redis.shared_query.CACHE_SECONDS", 0.0)
    sentinels = _sentinels(Knowing(primary(1), answer))
    assert await sentinels.resolve() == ("10.0.0.1", 1)
    with pytest.raises(RedisConnectionError):
        await sentinels.resolve()
    assert sentinels.address == address


async def test_polling_follows_a_failover_through_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_server.store.redis.shared_query.POLL_SECONDS", 0.0)
    monkeypatch.setattr("stream_server.store.redis.shared_query.CACHE_SECONDS", 0.0)
    client = Knowing(primary(1), GONE, changing(1, 1), primary(2, 1))
    sentinels = _sentinels(client)
    assert await sentinels.resolve() == ("10.0.0.1", 1)
    await eventually(lambda: sentinels.address == ("10.0.0.1", 2))
    await sentinels.close()
    assert not [task for task in asyncio.all_tasks() if "Redis address" in task.get_name()]


async def test_silent_sentinels_end_with_the_timeout() -> None:
    with pytest.raises(RedisConnectionError):
        await asyncio.wait_for(_sentinels(Knowing(None), seconds=0.05).resolve(), PATIENCE)


async def test_concurrent_and_recent_requests_share_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Knowing(primary(1), GONE, primary(2, 1))
    sentinels = _sentinels(client)
    hasty, *patient = [asyncio.create_task(sentinels.resolve()) for _ in range(50)]
    await asyncio.sleep(0)  # all requests start and wait for one answer
    hasty.cancel()
    assert await asyncio.gather(*patient) == [("10.0.0.1", 1)] * 49
    monkeypatch.setattr("stream_server.store.redis.shared_query.CACHE_SECONDS", PATIENCE * 1000)
    assert await sentinels.resolve() == ("10.0.0.1", 1)
    assert client.asked == 1
    monkeypatch.setattr("stream_server.store.redis.shared_query.CACHE_SECONDS", 0.0)
    with pytest.raises(RedisConnectionError):
        await sentinels.resolve()
    assert await sentinels.resolve() == sentinels.address == ("10.0.0.1", 2)


async def test_only_a_healthy_replica_is_used_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_server.store.redis.shared_query.CACHE_SECONDS", 0.0)
    both, second = [replica(1), replica(2)], [replica(1, is_sdown=True), replica(2)]
    none = [replica(1, "err"), replica(2, is_disconnected=True)]
    sentinels = _sentinels(Knowing(second, both, both, none), Knowing(both), replica=True)
    assert [await sentinels.resolve() for _ in range(3)] == [("10.0.0.1", 2)] * 3
    with pytest.raises(RedisConnectionError):
        await sentinels.resolve()


async def test_a_replica_that_was_left_is_used_again_only_without_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_server.store.redis.shared_query.CACHE_SECONDS", 0.0)
    first, both = [replica(1), replica(2, is_sdown=True)], [replica(1), replica(2)]
    sentinels = _sentinels(Knowing(first, both, both, first), replica=True)
    assert await sentinels.resolve() == ("10.0.0.1", 1)
    sentinels.leave()
    assert sentinels.address is None
    assert [await sentinels.resolve() for _ in range(2)] == [("10.0.0.1", 2)] * 2
    assert await sentinels.resolve() == ("10.0.0.1", 1)


def test_no_password_is_in_a_repr() -> None:
    watched = address.parse_group_url(URL)
    assert watched is not None
    sentinels = Sentinels(watched, 1.0)
    shown = repr(sentinels) + repr(watched) + "".join(repr(client) for client in sentinels._clients)
    assert "hunter" not in shown
