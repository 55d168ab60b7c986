"""Clients of others as they are installed, each in an environment of its own under ``.venv/clients``.

A test asks for one by its name (NAMES) and runs a program of ``programs/`` in it, which prints one JSON object a
line. Its first argument is the server's URL; the test's own follow::

    async def test_a_post_arrives(server: Server, api: Api, tls: TlsProxy) -> None:
        async with client("tweepy3", "tweepy3_filter.py", tls.netloc, mint(uid), ca=tls.ca) as program:
            await program.hear("connected")        # the value of that member, of the first line that has it
            await api.post(uid, "tea")
            assert await program.hear("text") == "tea"

``ca`` makes requests and urllib trust that authority and is for clients that only speak TLS. A program that is
still there at the end of the block is killed; ``await program.end()`` waits for its own end and gives its exit code.
In such a program nothing of ours can be imported, and nothing is found beside it, so it may have any name. tweepy 3
reads blocks: give its ``Stream`` ``chunk_size=1``, or it waits until 512 bytes are there.
"""

import asyncio
import os
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.needed import need_index
from tests.program import ROOT, Program

NAMES = ("python-twitter", "tweepy3", "tweepy4", "twitter")

PROGRAMS = Path(__file__).parent / "programs"

INSTALL_SECONDS = 300
"""An index may be slow; that it hangs is told before the suite's own bound."""


def client_python(name: str, *lock: Path) -> Path:
    """Return the Python that has the client ``name``. Installs the client first if it is missing.

    ``lock`` is another lock file than that of NAMES. Skips the test if the package index does not answer.
    """
    made = subprocess.run(
        [sys.executable, ".ci/clients.py", name, *lock],
        cwd=ROOT, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False,
    )  # fmt: skip
    if made.returncode:
        need_index()
    assert made.returncode == 0, made.stderr
    return ROOT / ".venv" / "clients" / name / "bin" / "python"


@asynccontextmanager
async def client(name: str, program: str, *arguments: object, ca: Path | None = None) -> AsyncIterator[Program]:
    """Run a file of ``programs/`` by the Python of the client ``name``, and kill it at the end if it still runs."""
    python = await asyncio.to_thread(client_python, name)
    process = await asyncio.create_subprocess_exec(
        python, "-P", PROGRAMS / program, *map(str, arguments),
        cwd=ROOT, stdout=PIPE, env=environment(ca), start_new_session=True,
    )  # fmt: skip
    started = Program(process)
    try:
        yield started
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        await started.end()


def environment(ca: Path | None) -> dict[str, str]:
    """Return an environment without settings and proxies of this machine, which trusts only the authority ``ca``."""
    trusted = {} if ca is None else {"REQUESTS_CA_BUNDLE": str(ca), "SSL_CERT_FILE": str(ca)}
    return {"PATH": os.environ.get("PATH", os.defpath), "NO_PROXY": "*", "PYTHONUNBUFFERED": "1", **trusted}
