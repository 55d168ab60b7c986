"""The real command, whose canary stops as soon as a file exists. Then nothing notices what the canary would notice.

A server listens to a replica only after a first check of its canary. So a canary that never ran would be no control.
"""

import asyncio
import os
from pathlib import Path

from stream_server.cli import main
from stream_server.feed.feed import Feed

VARIABLE = "BLIND_WHEN_THERE_IS"
"""The environment variable with the file's path. A file with the suffix ``.seen`` shows that the canary stopped."""


def blind(file: Path) -> None:
    """Stop the canary for good after the next check if ``file`` exists."""
    rest = Feed._wait_for_next_check

    async def rests(feed: Feed) -> None:
        await rest(feed)
        if await asyncio.to_thread(file.exists):
            await asyncio.to_thread(file.with_suffix(".seen").touch)
            await asyncio.Event().wait()

    setattr(Feed, rest.__name__, rests)


if __name__ == "__main__":
    blind(Path(os.environ[VARIABLE]))
    main()
