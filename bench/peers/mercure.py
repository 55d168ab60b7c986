"""The Mercure hub."""

import re
import secrets
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar
from urllib.parse import quote_from_bytes

import jwt

from bench.lineup import Kind, Running
from bench.peers.peer import Event, HttpPeer, channel_of
from bench.peers.programs import ONE_THREAD, Programs, said, started
from bench.process import free_port
from bench.site import Site

HUB = "/.well-known/mercure"
"""The path of the hub."""

ISSUER, AUDIENCE = "https://bench.example", "https://bench.example/hub"
"""The issuer and the audience of the tokens. These are only names: no program connects to them."""

CADDYFILE = """\
{{
	admin off
	auto_https off
	persist_config off
	log {{
		level WARN
	}}
}}
http://127.0.0.1:{port} {{
	bind 127.0.0.1
	mercure {{
		issuer {issuer} {{
			publisher {{
				jwt {secret} HS256
			}}
			subscriber {{
				jwt {secret} HS256
			}}
		}}
		resource_identifier {audience}
		transport local
	}}
}}
"""


class Mercure(HttpPeer):
    """The hub in memory, without history. Events come by POST with a token."""

    column = "Mercure"
    chooses: ClassVar = {"firehose": "one topic", "topic": "one topic of ten"}
    settings = "Caddy without TLS, `transport local` (no history), JWT (HS256), events by `POST`; `GOMAXPROCS=1`"

    def __init__(self, site: Site, programs: Programs, event: Event) -> None:
        super().__init__(site, event)
        self.program = programs.program("mercure")
        self.secret, self._publisher = secrets.token_hex(32), ""

    def version(self) -> str:
        found = re.search(r"http\.handlers\.mercure v?(\S+)", said(self.program, "list-modules", "--versions"))
        return found[1] if found else "unknown"

    def configuration(self, port: int) -> str:
        """Return the Caddyfile."""
        return CADDYFILE.format(port=port, issuer=ISSUER, audience=AUDIENCE, secret=self.secret)

    @contextmanager
    def running(self, rate: float = 0) -> Iterator[Running]:  # noqa: ARG002 - events come over HTTP
        port, path = free_port(), self.site.folder / "Caddyfile"
        path.write_text(self.configuration(port))
        home = f"HOME={self.site.folder}"  # Caddy keeps files there
        command = [*ONE_THREAD, home, self.program, "run", "--config", str(path), "--adapter", "caddyfile"]
        with started(self.site, "mercure", command, port) as process:
            yield Running(process, port)

    def streams(self, kind: Kind, count: int) -> list[str]:
        headers = f"Accept: text/event-stream\tAuthorization: Bearer {self._token('subscribe')}"
        return [f"GET {HUB}?match={channel_of(kind, number)}\t{headers}" for number in range(count)]

    def publication(self, channel: str, event: bytes) -> tuple[str, bytes, str]:
        self._publisher = self._publisher or self._token("publish")
        body = f"topic={channel}&data={quote_from_bytes(event)}".encode()
        form = "Content-Type: application/x-www-form-urlencoded"
        return HUB, body, f"{form}\r\nAuthorization: Bearer {self._publisher}\r\n"

    def _token(self, action: str) -> str:
        now = int(time.time())
        detail = {
            "type": "https://mercure.rocks/authorization-detail",
            "actions": [action],
            "topics": [{"match": "*"}],
        }
        claims = {
            "iss": ISSUER, "aud": AUDIENCE, "sub": "bench", "client_id": "bench", "jti": uuid.uuid4().hex,
            "iat": now, "exp": now + 3600, "authorization_details": [detail],
        }  # fmt: skip
        return jwt.encode(claims, self.secret, algorithm="HS256", headers={"typ": "at+jwt"})
