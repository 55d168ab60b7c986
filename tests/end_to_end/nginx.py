"""A real nginx in front of servers. Tests that need it are skipped if it is not installed."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.end_to_end.server import ROOT
from tests.redis_process import free_port
from tests.waiting import PATIENCE, wait_for_process

WHOLE = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{text}
}}
"""
"""A configuration whose files are all in ``folder``; ``text`` is the contents of its block ``http``."""

SHIPPED = "nginx/stream-server.conf"
"""The file of ``deploy/`` for a site of one's own."""


def find_nginx() -> Path | None:
    """Return the path of nginx, or None if it is not installed. It may be outside the PATH of ordinary users."""
    path = os.pathsep.join([*os.get_exec_path(), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which("nginx", path=path)
    return None if found is None else Path(found)


class Nginx:
    """An nginx on a port of the loopback, by default any free one. Its files are in a temporary folder.

    ``text`` is the contents of its block ``http``. There ``listen 80;`` becomes the port.
    """

    def __init__(self, text: str, port: int = 0) -> None:
        self.port = port or free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory(prefix="ssn-")
        self._said = Path(self._folder.name) / "said"
        listening = text.replace("listen 80;", f"listen 127.0.0.1:{self.port};")
        self._config = Path(self._folder.name) / "nginx.conf"
        self._config.write_text(WHOLE.format(folder=self._folder.name, text=listening))

    def __enter__(self) -> Self:
        command = [str(find_nginx()), "-c", str(self._config), "-p", self._folder.name]
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        wait_for_process(self.process, self._accepts, seconds=PATIENCE, log=self._said.read_text)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)
        self._folder.cleanup()

    def _accepts(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 2):
            return True
        return False


def with_locations(locations: Mapping[str, tuple[str, str]]) -> str:
    """Return a block ``http`` with these locations: from each path prefix to the server and its directives."""
    rows = (f"location {prefix} {{ proxy_pass {server}/; {more} }}" for prefix, (server, more) in locations.items())
    return f"server {{ listen 80; {' '.join(rows)} }}"


def shipped(servers: Iterable[str], path: str = SHIPPED) -> str:
    """Return a file of ``deploy/`` with the addresses of these servers in the place of its own."""
    text = (ROOT / "deploy" / path).read_text(encoding="utf-8")
    lines = "".join(f"    server {server.removeprefix('http://')};\n" for server in servers)
    named = re.sub(r"(    server [\d.]+:8000;\n)+", lines, text)
    assert named != text
    return named
