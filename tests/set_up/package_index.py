"""A package index on the loopback. It offers one wheel and records each request."""

import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

Page = Callable[[str], tuple[str, bytes]]
"""Name of the one file offered -> content type and body of the project's page."""


def html_page(filename: str) -> tuple[str, bytes]:
    """A page by PEP 503."""
    anchor = f'<a href="../../files/{filename}#sha256=0" data-core-metadata="x">{filename}</a>'
    return "text/html", f"<html><body>{anchor}</body></html>".encode()


def json_page(filename: str) -> tuple[str, bytes]:
    """A page by PEP 691."""
    body = {"files": [{"filename": filename, "url": f"../../files/{filename}", "hashes": {}}]}
    return "application/vnd.pypi.simple.v1+json", json.dumps(body).encode()


class PackageIndex:
    """Serves ``wheel`` under ``filename``. ``seen`` has path and Authorization of each request."""

    def __init__(self, page: Page, filename: str, wheel: bytes, *, announce: int | None = None) -> None:
        self.seen: list[tuple[str, str | None]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(page(filename), wheel, announce))
        self._scheme = "http"

    @property
    def url(self) -> str:
        return f"{self._scheme}://reader:p%40ss@127.0.0.1:{self._server.server_port}/simple/"

    def behind_tls(self, certificate: Path) -> Self:
        """Serve over https with an untrusted certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._scheme = "https"
        return self

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self, page: tuple[str, bytes], wheel: bytes, announce: int | None) -> type[BaseHTTPRequestHandler]:
        seen = self.seen

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                seen.append((self.path, self.headers.get("Authorization")))
                kind, body = page if self.path.startswith("/simple/") else ("application/zip", wheel)
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(announce if announce and body is wheel else len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """Print no requests on the test's stderr."""

        return Handler
