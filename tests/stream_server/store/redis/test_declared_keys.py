"""The keys that each call of a script declares. In a cluster they keep it from running where a part of the truth is."""

from collections.abc import Sequence
from typing import Any

import pytest

from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.redis.scripts import ScriptCall, ScriptRunner
from tests.contracts.test_lua import FILES
from tests.stream_server.store.people import new_key

MADE = [b"0", b"1-0 1"]


async def test_every_call_declares_its_own_key_the_meta_key_and_one_that_never_exists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[Command] = []

    async def answer(_: RedisClient, commands: Sequence[Command], __: float) -> list[Any]:
        sent.extend(commands)
        return [MADE] * len(commands)

    monkeypatch.setattr(RedisClient, "run_pipeline", answer)
    scripts, write = ScriptRunner(RedisClient("unix:///nowhere", 1.0), SizeLimits()), new_key()
    await scripts.write("like", write, uid="1", id="2")
    await scripts.write_each([(ScriptCall("like", {"uid": "1", "id": "2"}), write)])
    await scripts.call("log_trim", keys.LOG, max_age=1, max_size=0, most=10)
    sent.append(scripts.call_command(keys.META, ScriptCall("job_unpark", {"id": "job"})))
    request = keys.key_for("request", write.value)
    assert [command[2:6] for command in sent] == [
        (3, own, "{core}:meta", "{core}:never") for own in (request, request, keys.LOG, keys.META)
    ]


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_script_uses_the_key_that_never_exists(name: str) -> None:
    code = "\n".join(line for line in FILES[name].splitlines() if not line.startswith("--"))
    assert "KEY.never" not in code
    assert keys.NEVER not in code
