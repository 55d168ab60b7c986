"""The endpoint of the guide, as it is written there, gets what the requests and commands of the page ask for."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.docs_examples import DOCUMENTED_ADDRESS, blocks
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import ROOT, Server, environment
from tests.redis_process import free_port
from tests.waiting import PATIENCE, eventually

PAGE = ROOT / "docs" / "guide" / "webhooks.md"
DOCUMENTED_PORT = "9000"


def block(language: str, number: int = 0) -> str:
    return [each.text for each in blocks(PAGE) if each.language == language][number]


def test_the_endpoint_has_twenty_lines() -> None:
    assert len(block("python").strip().splitlines()) <= 20


@asynccontextmanager
async def endpoint(folder: Path, port: int) -> AsyncIterator[list[str]]:
    """Run the program of the page. Yield the lines that it prints."""
    program = block("python").replace(DOCUMENTED_PORT, str(port))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=folder, stdout=PIPE, stderr=STDOUT
    )
    lines: list[str] = []

    async def read() -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            if not line.startswith(b"127."):  # the library logs each request
                lines.append(line.decode().strip())  # noqa: PERF401 - it is looked at meanwhile

    reading = asyncio.create_task(read())
    try:
        await eventually(partial(listens, port))
        yield lines
    finally:
        process.kill()
        await process.wait()
        await asyncio.wait_for(reading, PATIENCE)


async def listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def shell(text: str, folder: Path, **variables: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        "bash", "-ec", text, cwd=folder, stdout=PIPE, stderr=STDOUT, env={**environment(), **variables, "PATH": path}
    )
    output, _ = await asyncio.wait_for(process.communicate(), 2 * PATIENCE)
    assert process.returncode == 0, output.decode()
    return output.decode()


@pytest.mark.extended
async def test_the_endpoint_of_the_guide_gets_posts_deletes_and_a_test(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    port = free_port()
    flags = ("--webhook-networks", "127.0.0.1")
    async with Server(tmp_path / "server", *flags) as server, Api(server) as api:
        uid = (await api.users(["ada"]))["ada"]
        variables = {"TOKEN": mint(uid)}

        def on_page(text: str) -> str:
            text = text.replace(DOCUMENTED_ADDRESS, server.address).replace(DOCUMENTED_PORT, str(port))
            return text.replace("--user ada", f"--user ada --data-dir {server.data}")

        async with endpoint(tmp_path / "page", port) as lines:
            await shell(on_page(block("sh")), tmp_path / "page", **variables)
            secret = tmp_path / "page" / "secret"
            assert secret.read_text().startswith("whsec_")
            status = await api.post(uid, "a coffee")
            await eventually(lambda: len(lines) == 1)
            await api.delete(uid, status["id"])
            await eventually(lambda: len(lines) == 2)
            assert [line.split()[0] for line in lines] == ["post", "delete"]
            right = secret.read_text()
            secret.write_text("whsec_AAAA")
            await api.post(uid, "coffee again")
            await eventually(lambda: "WebhookVerificationError" in str(lines))
            command = on_page(block("sh", 1)).splitlines()[0]
            assert "exit code 1" in await shell(f'{command} || echo "exit code $?"', tmp_path / "page")
            secret.write_text(right)
        async with endpoint(tmp_path / "page", port):
            output = await shell(on_page(block("sh", 1)), tmp_path / "page")
        assert secret.read_text() not in ("", right)
        assert output.startswith("status 200 after")
        assert "\nits requests are signed with whsec_" in output
        assert "\ntea " in output
        assert "(paused" in output.partition("\ntea ")[2]
