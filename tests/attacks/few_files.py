"""``python -m tests.attacks.few_files serve …``: the server with 200 open files allowed."""

import resource

from stream_server.cli import main

FILES = 200

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    main()
