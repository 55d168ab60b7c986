"""Centrifugo, with clients of its one-way SSE transport."""

import json
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import jwt

from bench.lineup import Kind, Running
from bench.peers.peer import Event, HttpPeer, channel_of
from bench.peers.programs import ONE_THREAD, Programs, said, started
from bench.process import free_port
from bench.site import Site


class Centrifugo(HttpPeer):
    """Centrifugo with its in-memory engine. Events come over its HTTP API."""

    column = "Centrifugo"
    settings = (
        "memory engine, no history, `uni_sse` with a JWT (HS256), events by `POST /api/publish`; `GOMAXPROCS=1`. Its "
        "tag filters need its two-way protocol and tags from the publisher, so they do not appear here"
    )

    def __init__(self, site: Site, programs: Programs, event: Event) -> None:
        super().__init__(site, event)
        self.program = programs.program("centrifugo")
        self.key, self.secret = secrets.token_urlsafe(), secrets.token_urlsafe(32)

    def version(self) -> str:
        found = re.search(r"Centrifugo v?(\S+)", said(self.program, "version"))
        return found[1] if found else "unknown"

    def configuration(self, port: int) -> dict[str, Any]:
        """Return the configuration. It sends no usage statistics."""
        return {
            "http_server": {"address": "127.0.0.1", "port": port},
            "http_api": {"key": self.key},
            "client": {"token": {"hmac_secret_key": self.secret}},
            "channel": {"without_namespace": {"allow_subscribe_for_client": True}},
            "uni_sse": {"enabled": True},
            "usage_stats": {"disabled": True},
            "log": {"level": "warn"},
        }

    @contextmanager
    def running(self, rate: float = 0) -> Iterator[Running]:  # noqa: ARG002 - events come over HTTP
        port, path = free_port(), self.site.folder / "centrifugo.json"
        path.write_text(json.dumps(self.configuration(port)))
        command = [*ONE_THREAD, self.program, "--config", str(path)]
        with started(self.site, "centrifugo", command, port) as process:
            yield Running(process, port)

    def streams(self, kind: Kind, count: int) -> list[str]:
        claims = {"sub": "reader", "exp": int(time.time()) + 3600}
        token = jwt.encode(claims, self.secret, algorithm="HS256")
        connects = [{"token": token, "subs": {channel_of(kind, number): {}}} for number in range(count)]
        return [
            f"GET /connection/uni_sse?cf_connect={quote(json.dumps(connect, separators=(',', ':')))}"
            for connect in connects
        ]

    def publication(self, channel: str, event: bytes) -> tuple[str, bytes, str]:
        body = f'{{"channel":"{channel}","data":'.encode() + event + b"}"
        return "/api/publish", body, f"Content-Type: application/json\r\nX-API-Key: {self.key}\r\n"
