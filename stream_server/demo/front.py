"""The nginx of a demo, which spreads clients over servers. Its settings for streams are those of a real site."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from stream_server.demo.child_processes import ChildProcesses

CONFIGURATION = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream servers {{ {servers} keepalive 32; }}
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 256k;
    client_body_buffer_size 256k;
    large_client_header_buffers 4 64k;
    location / {{
      proxy_pass http://servers;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header Forwarded "";
      proxy_set_header X-Real-IP "";
      proxy_buffering off;
      proxy_read_timeout 75s;
      proxy_connect_timeout 2s;
    }}
  }}
}}
"""


def find_nginx() -> Path | None:
    """Return the path of nginx, or None if it is not installed. It may be outside the PATH of ordinary users."""
    path = os.pathsep.join([*os.get_exec_path(), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which("nginx", path=path)
    return None if found is None else Path(found)


async def start_front(nginx: Path, children: ChildProcesses, port: int, servers: Sequence[int]) -> None:
    """Start nginx on a port of the loopback before servers on others, and wait until it accepts connections."""
    folder = children.folder / "nginx"
    folder.mkdir()
    text = CONFIGURATION.format(
        folder=folder, port=port, servers=" ".join(f"server 127.0.0.1:{server};" for server in servers)
    )
    file = folder / "nginx.conf"
    file.write_text(text)
    process = await children.start("nginx", nginx, "-c", file, "-p", folder)
    await children.wait_for("nginx", process, partial(accepts, port))


async def accepts(port: int) -> bool:
    """Return whether a port of the loopback accepts connections."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
