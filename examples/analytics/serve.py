"""Show the results on a page of this machine: python serve.py FILE [PORT], then open http://127.0.0.1:8081/."""

import json
import sys
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from results import read_summary

PAGE = Path(__file__).parent / "page"

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'"


class Handler(SimpleHTTPRequestHandler):
    """Serves the files of the page, and the results as JSON."""

    def __init__(self, *arguments: object, results: Path) -> None:
        self._results = results
        super().__init__(*arguments, directory=str(PAGE))  # type: ignore[arg-type]  # as the library passes them

    def do_GET(self) -> None:
        if self.path != "/results.json":
            super().do_GET()
            return
        body = json.dumps(read_summary(self._results)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing for each request."""


def main() -> None:
    """Serve the page until Ctrl-C."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} FILE [PORT]")
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8081
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, results=Path(sys.argv[1])))
    except OSError as error:
        sys.exit(f"cannot listen on port {port}: {error.strerror}; give another one as the last argument")
    print(f"http://127.0.0.1:{server.server_address[1]}/", flush=True)
    with suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
