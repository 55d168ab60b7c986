"""The health check of the image. The exit code is 0 if the container is well, else 1, with a sentence that says why.

A server is asked whether it is alive, not whether it is ready: a server that waits for its Redis must not be restarted
for it. The port is that of ``STREAM_SERVER_PORT``, not of a flag or a file. A job worker has no port to ask. It is well
as long as it runs.
"""

import http.client
import os
import sys
from pathlib import Path

TIMEOUT_SECONDS = 2

FIRST_PROCESS = Path("/proc/1/cmdline")
"""The command line of the container's first process."""


def main() -> int:
    """Check the container by its role; return the exit code."""
    if "worker" in FIRST_PROCESS.read_text(encoding="utf-8").split("\0"):
        return 0
    server = http.client.HTTPConnection("127.0.0.1", int(os.environ["STREAM_SERVER_PORT"]), timeout=TIMEOUT_SECONDS)
    try:
        server.request("GET", "/healthz")
        status = server.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        print(f"the server does not answer: {error!r}")
        return 1
    print(f"the server answers {status}")
    return int(status != http.HTTPStatus.OK)


if __name__ == "__main__":
    sys.exit(main())
