"""``python -m tests.attacks.few_files_undefended serve …``: 200 open files, and connections without a limit."""

import resource

from stream_server.cli import main
from stream_server.web.limits.connections import ConnectionTable
from tests.attacks.few_files import FILES

if __name__ == "__main__":
    ConnectionTable.maximum = property(lambda _: 1_000_000)  # type: ignore[method-assign, assignment] # the defence
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    main()
