"""A real nginx in front of servers. Tests that need it are skipped if it is not installed."""

import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from stream_server.demo.cluster_demo import find_nginx
from tests.redis_process import free_port
from tests.waiting import PATIENCE, wait_for_process

WHOLE = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{text}
}}
"""
"""A configuration whose files are all in ``folder``; ``text`` is the contents of its block ``http``."""

LOCATIONS = """\
  server {{
    listen 127.0.0.1:{port};
    location = /is-there {{ return 204; }}
{locations}
  }}
"""


class Nginx:
    """An nginx with ``locations``: a dict from path prefix to the server and its directives.

    Other settings are defaults.
    """

    def __init__(self, locations: dict[str, tuple[str, str]]) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory(prefix="ssn-")
        rows = (
            f"    location {prefix} {{ proxy_pass {server}/; {more} }}" for prefix, (server, more) in locations.items()
        )
        folder = Path(self._folder.name)
        self._config = folder / "nginx.conf"
        self._said = folder / "said"
        text = LOCATIONS.format(port=self.port, locations="\n".join(rows))
        self._config.write_text(WHOLE.format(folder=folder, text=text))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        found = find_nginx()
        assert found is not None
        with self._said.open("wb") as said:
            command = [str(found), "-c", str(self._config), "-p", self._folder.name]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        wait_for_process(self._process, self._answers, seconds=PATIENCE, log=self._said.read_text)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._folder.cleanup()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.address + "/is-there", timeout=2) as answer:
                return bool(answer.status == 204)
        except (urllib.error.URLError, OSError):
            return False
