"""A server whose data folder a power cut has damaged, from the refusal of its start to all of its posts."""

from pathlib import Path

import pytest

from stream_server.runtime.append_only_file import list_parts
from tests.command_line import run
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server, environment

pytestmark = pytest.mark.extended

HALF_POST = b"*1\r\n$5\r\nMULTI\r\n*3\r\n$4\r\nHSET\r\n$11\r\n{core}:meta\r\n$2\r\n"


ENDS = {"zeros": bytes(4096), "a half post": HALF_POST + bytes(4096), "garbage": b"\xff" * 100}


@pytest.mark.parametrize("end", ENDS)
async def test_no_acknowledged_post_is_lost(own_folder: Path, end: str) -> None:
    damage = ENDS[end]
    async with Server(own_folder) as server, Api(server) as api:
        uid = await api.user()
        posted = [(await api.post(uid, f"post {number}"))["id"] for number in range(50)]
        server.kill()
    part = list_parts(server.data)[-1]
    if b"\0" in damage:  # file systems fill blocks
        damage += bytes(-(part.stat().st_size + len(damage)) % 4096)
    with part.open("ab") as file:
        file.write(damage)
    refused = run("serve", "--data-dir", server.data, "--port", "0", env=environment())
    assert (refused.code, f"`stream-server mend --data-dir {server.data}`" in refused.err) == (1, True)
    found = run("doctor", "--data-dir", server.data, env=environment())
    assert (found.code, f"`stream-server mend --data-dir {server.data}`" in found.out) == (1, True)
    mended = run("mend", "--data-dir", server.data, "--yes", env=environment())
    assert (mended.code, f"cut off {len(damage):,} bytes" in mended.out) == (0, True)
    async with Server(own_folder) as server, Api(server) as api:
        assert run("mend", "--data-dir", server.data, "--yes", env=environment()).code == 1
        kept = [(await api.done("GET", f"/v1/statuses/{each}", token=mint(uid)))["id"] for each in posted]
        assert kept == posted
