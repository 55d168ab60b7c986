"""nginx with the nchan module."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.lineup import Kind, Running
from bench.peers.peer import Event, HttpPeer, channel_of
from bench.peers.programs import Programs, said, started, worker_of
from bench.process import free_port
from bench.site import Site

MODULE = "ngx_nchan_module.so"
"""File of the module."""

MODULE_FOLDERS = ("/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/usr/share/nginx/modules")
"""Where distributions put modules."""

CONFIGURATION = """\
load_module {module};
daemon off;
{user}worker_processes 1;
worker_rlimit_nofile 65536;
error_log stderr warn;
pid {folder}/nginx.pid;
events {{
    worker_connections 60000;
}}
http {{
    access_log off;
    client_body_temp_path {folder}/nginx-body;
    proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    scgi_temp_path {folder}/nginx-scgi;
    nchan_shared_memory_size 128m;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        keepalive_requests 1000000;
        location ~ ^/publish/(\\w+)$ {{
            nchan_publisher;
            nchan_channel_id $1;
            nchan_message_buffer_length 10;
            nchan_message_timeout 30s;
        }}
        location ~ ^/subscribe/(\\w+)$ {{
            nchan_subscriber eventsource;
            nchan_channel_id $1;
            nchan_subscriber_first_message newest;
        }}
    }}
}}
"""


class Nchan(HttpPeer):
    """One worker of nginx. Events come by POST, and nobody needs a token."""

    column = "nchan"
    settings = (
        "one worker of nginx, a buffer of ten messages, events by `POST`; no tokens, because nchan leaves them to an "
        "application behind it"
    )

    def __init__(self, site: Site, programs: Programs, event: Event) -> None:
        super().__init__(site, event)
        self.program = programs.program("nginx")
        self.module = programs.file(MODULE, *MODULE_FOLDERS)

    def version(self) -> str:
        nginx = re.search(r"nginx/(\S+)", said(self.program, "-v"))
        module = re.search(rb"\x00(\d+\.\d+\.\d+)\x00", Path(self.module).read_bytes())
        return f"{module[1].decode() if module else 'unknown'}, nginx {nginx[1] if nginx else 'unknown'}"

    def configuration(self, port: int) -> str:
        """Return the configuration of nginx. Its worker keeps the user who starts it."""
        user = "user root;\n" if Path("/proc/self").stat().st_uid == 0 else ""
        return CONFIGURATION.format(module=self.module, folder=self.site.folder, port=port, user=user)

    @contextmanager
    def running(self, rate: float = 0) -> Iterator[Running]:  # noqa: ARG002 - events come over HTTP
        port, path = free_port(), self.site.folder / "nginx.conf"
        path.write_text(self.configuration(port))
        command = [self.program, "-p", str(self.site.folder), "-c", str(path)]
        with started(self.site, "nginx", command, port) as process:
            yield Running(worker_of(process), port)

    def streams(self, kind: Kind, count: int) -> list[str]:
        return [f"GET /subscribe/{channel_of(kind, number)}\tAccept: text/event-stream" for number in range(count)]

    def publication(self, channel: str, event: bytes) -> tuple[str, bytes, str]:
        return f"/publish/{channel}", event, "Content-Type: application/json\r\n"
