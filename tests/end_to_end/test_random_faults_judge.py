"""The judge of a long run finds what the oracle of the random faults finds, also if it looks in between."""

import json

import pytest

from stream_server.store import keys
from tests.end_to_end.random_faults.clients import Client
from tests.end_to_end.random_faults.judge import Judge
from tests.end_to_end.random_faults.ledger import Ledger, Log
from tests.end_to_end.random_faults.oracle import Record, Told
from tests.end_to_end.random_faults.site import Site
from tests.end_to_end.test_random_faults_oracle import LIES, START, WRONG, cursor, heard, play, written
from tests.redis_process import RedisProcess

KINDS = "post,edit,delete,follow,like"


async def verdict(redis_server: RedisProcess, ledger: Ledger, log: Log, messages: list[Told], split: int) -> list[str]:
    """Return what a judge finds that looks after the first ``split`` messages, and again at the end of the log."""
    client = Client(Site([]), Record("firehose", {"firehose": "true", "kinds": KINDS}, "c", (), START), 0)
    with redis_server.client() as redis:
        redis.delete(keys.LOG)
        judge = Judge(redis, ledger, [client])
        for entry in log.entries:
            fields = {"n": entry.n, "k": entry.kind, "e": json.dumps({"wire": entry.wire})}
            redis.xadd(keys.LOG, fields, id=entry.cursor.rpartition(".")[0])
        end = Told({"kind": "heartbeat", "cursor": cursor(log.last)}, 99.0)
        for piece in (messages[:split], [*messages[split:], end]):
            client.record.told = piece
            await judge.look()
    return judge.found + judge.at_the_end()


@pytest.mark.parametrize("split", [0, 3, 8])
async def test_correct_records_pass_in_pieces(redis_server: RedisProcess, split: int) -> None:
    """A record without a fault has none in pieces."""
    ledger, log = play()
    assert await verdict(redis_server, ledger, log, heard(log, *range(1, 9)).told, split) == []


@pytest.mark.parametrize("split", [0, 3])
@pytest.mark.parametrize("wrong", WRONG)
async def test_a_wrong_record_is_detected_in_pieces(redis_server: RedisProcess, wrong: str, split: int) -> None:
    """One change makes a faultless record faulty, wherever the judge looks in between."""
    ledger, log = play()
    messages = heard(log, *range(1, 9)).told
    WRONG[wrong][0](messages)
    assert await verdict(redis_server, ledger, log, messages, split), wrong


def edited_play() -> tuple[Ledger, Log]:
    """Return `play` with edits of the statuses 18 and 14 behind it."""
    ledger, log = play()
    edits = [written(ledger, 9, "a", "edit", "18", "blue"), written(ledger, 10, "a", "edit", "14", "brown")]
    return ledger, Log(1, 10, [*log.entries, *edits], log.cursors | {entry.cursor for entry in edits})


@pytest.mark.parametrize("split", [0, 8, 9])
async def test_edits_are_judged_in_pieces(redis_server: RedisProcess, split: int) -> None:
    """A client may keep no replaced text, also if it has it from an earlier piece."""
    ledger, log = edited_play()
    messages = heard(log, *range(1, 11)).told
    assert await verdict(redis_server, ledger, log, messages, split) == []
    for at, wrong in ((8, "never told of ('edit', '18')"), (9, "has 'red too' of 14, which was replaced")):
        without = messages[:at] + messages[at + 1 :]
        assert any(wrong in said for said in await verdict(redis_server, ledger, log, without, split))
    shown = {**messages[7].message["status"], "message": "blue"}
    messages[8].message["status"] = {**shown, "edits": 0}
    assert any("a wrong version" in said for said in await verdict(redis_server, ledger, log, messages, split))


@pytest.mark.parametrize("lie", [lie for lie in LIES if lie != "never settled"])
async def test_a_log_that_differs_from_the_acknowledged_writes_is_detected(
    redis_server: RedisProcess, lie: str
) -> None:
    """Acknowledged writes are on the log in each author's order, and nothing else is."""
    ledger, log = play()
    LIES[lie][0](ledger, log.entries)
    entries = [entry._replace(n=n, cursor=cursor(n)) for n, entry in enumerate(log.entries, 1)]
    log = Log(1, len(entries), entries, frozenset(entry.cursor for entry in entries))
    assert await verdict(redis_server, ledger, log, [], 0), lie


async def test_a_write_of_unknown_outcome_is_on_the_log_once_or_not_at_all(redis_server: RedisProcess) -> None:
    """A text that nobody acknowledged may be posted once."""
    for times, found in ((0, 0), (1, 0), (2, 1)):
        ledger, log = play()
        first = log.entries[0]
        ledger.deeds[0].outcome, ledger.deeds[0].subject = "unknown", "red"
        entries = [first._replace(n=n, cursor=cursor(n), subject=str(n)) for n in range(1, times + 1)]
        ledger.deeds = ledger.deeds[:1]
        log = Log(1, times, entries, frozenset(entry.cursor for entry in entries))
        assert len([one for one in await verdict(redis_server, ledger, log, [], 0) if "acknow" in one]) == found, times
