"""An endpoint of webhooks in a thread, which answers challenges and takes all else."""

import json
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = message.get("challenge", "").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Write nothing to the output of the tests."""


@cache
def challenge_endpoint() -> str:
    """The URL of the endpoint of this process, which is started once, and ends with it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, name="challenge endpoint", daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/hook"
