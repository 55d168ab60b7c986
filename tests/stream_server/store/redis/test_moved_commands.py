"""What the client does when a node of a cluster refuses commands with MOVED. The answers are scripted."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MovedError, ResponseError

from stream_server.errors import OutcomeUnknown, Unavailable
from stream_server.store.redis import client as module
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_topology import ClusterTopology
from stream_server.store.redis.connecting import HostPort
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.pipelined_connection import NoReply
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.redis.scripts import ScriptRunner
from tests.stream_server.store.people import new_key
from tests.waiting import PATIENCE

MOVED = MovedError("10092 10.0.0.2:7001", status_code="MOVED")
UNNAMED = MovedError("10092 :7001", status_code="MOVED")
NO_PRIMARY = ResponseError("WAIT cannot be used with replica instances.")
FIRST, SECOND, WAIT = ("SET", "{core}:a", "1"), ("SET", "{core}:b", "2"), ("WAIT", 1, 100)


class Cluster:
    """Answers the attempts of a client in order. ``sent`` has the commands of each, ``named`` the hints given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
        self.client = RedisClient("redis+cluster://10.0.0.1:7000", PATIENCE)
        self.sent: list[list[Command]] = []
        self.named: list[HostPort | None] = []
        self.failure: Exception | None = None
        self._answers: Iterator[Any] = iter(answers)
        monkeypatch.setattr(module, "SAME_OWNER_PAUSE_SECONDS", 0)
        monkeypatch.setattr(RedisClient, "send", self._send)
        monkeypatch.setattr(ClusterTopology, "refresh", self._refresh)

    async def _send(self, commands: Sequence[Command], *_: object) -> list[Any]:
        self.sent.append(list(commands))
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    async def _refresh(self, named: HostPort | None = None) -> None:
        self.named.append(named)
        if self.failure is not None:
            raise self.failure


async def test_only_the_refused_commands_go_to_the_new_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, [b"OK", MOVED], [MOVED], [b"later"])
    assert await cluster.client.execute(FIRST, SECOND) == [b"OK", b"later"]
    assert cluster.sent == [[FIRST, SECOND], [SECOND], [SECOND]]
    assert cluster.named == [("10.0.0.2", 7001)] * 2


async def test_a_node_that_names_no_host_is_no_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, [UNNAMED], [b"OK"])
    assert await cluster.client.execute(FIRST) == [b"OK"]
    assert cluster.named == [None]


async def test_a_key_of_another_slot_is_not_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core that is moved to it cannot be meant, so asking about the core would not help."""
    cluster = Cluster(monkeypatch, [MovedError("7 10.0.0.2:7001", status_code="MOVED")])
    with pytest.raises(Unavailable):
        await cluster.client.execute(("GET", "home:{1}"))
    assert (len(cluster.sent), cluster.named) == (1, [])


async def test_a_transaction_is_repeated_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    transaction = [("MULTI",), FIRST, ("EXEC",)]
    cluster = Cluster(monkeypatch, [b"OK", MOVED, ResponseError("EXECABORT")], [b"OK", b"QUEUED", [b"OK"]])
    assert await cluster.client.execute(*transaction) == [b"OK", b"QUEUED", [b"OK"]]
    assert cluster.sent == [transaction, transaction]


@pytest.mark.parametrize(
    ("first", "second", "waited"),
    [
        ([MOVED, MOVED, NO_PRIMARY], [b"OK", b"OK", 2], 2),  # nothing ran at the former owner
        ([b"OK", MOVED, 2], [b"OK", 1], 1),
        ([b"OK", MOVED, 0], [b"OK", 2], 0),
        ([b"OK", MOVED, NO_PRIMARY], [b"OK", 2], NO_PRIMARY),
        ([b"OK", MOVED, 2], [b"OK", NO_PRIMARY], NO_PRIMARY),
    ],
)
async def test_wait_follows_what_is_repeated_and_counts_for_all(
    monkeypatch: pytest.MonkeyPatch, first: list[Any], second: list[Any], waited: object
) -> None:
    cluster = Cluster(monkeypatch, first, second)
    assert await cluster.client.run_pipeline([FIRST, SECOND, WAIT], PATIENCE) == [b"OK", b"OK", waited]
    assert cluster.sent[1][-1] == WAIT
    assert len(cluster.sent[1]) == len(second)


@pytest.mark.parametrize("failure", [RedisConnectionError("no node answered"), OSError(), TimeoutError()])
async def test_nothing_was_written_if_no_node_knows_the_owner(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    cluster = Cluster(monkeypatch, [MOVED], [b"never"])
    cluster.failure = failure
    with pytest.raises(Unavailable):
        await ScriptRunner(cluster.client, SizeLimits()).write("like", new_key(), uid="1", id="2")
    assert len(cluster.sent) == 1


@pytest.mark.parametrize(
    ("answers", "error", "attempts"),
    [
        (([MOVED], Unavailable("not sent")), Unavailable, 2),
        (([MOVED], NoReply(), [MOVED], NoReply()), OutcomeUnknown, 4),  # the write has two attempts
        (([MOVED], [ResponseError("NOREPLICAS Not enough good replicas to write.")]), Unavailable, 2),
    ],
)
async def test_a_repeated_command_that_fails_is_answered_as_any(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[Any, ...], error: type[Exception], attempts: int
) -> None:
    cluster = Cluster(monkeypatch, *answers)
    with pytest.raises(error) as failure:
        await ScriptRunner(cluster.client, SizeLimits()).write("like", new_key(), uid="1", id="2")
    assert type(failure.value) is error
    assert len(cluster.sent) == attempts


async def test_a_lost_answer_after_a_refusal_is_found_under_the_request_key(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, [MOVED], NoReply(), [[b"repeated", b"1-0 1"]])
    assert (await ScriptRunner(cluster.client, SizeLimits()).write("like", new_key(), uid="1", id="2")).is_repeat
    assert cluster.sent[0] == cluster.sent[1] == cluster.sent[2]


async def test_the_client_of_one_node_shows_the_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, [b"OK", MOVED])
    topology = cluster.client.topology
    one = RedisClient("redis+cluster://10.0.0.1:7000", PATIENCE, node=("10.0.0.1", 7000), topology=topology)
    assert await one.run_pipeline([FIRST, SECOND], PATIENCE) == [b"OK", MOVED]
    assert (len(cluster.sent), cluster.named, one.topology is topology) == (1, [], True)
