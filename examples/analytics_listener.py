"""Posts a minute and the top tags: python analytics_listener.py http://127.0.0.1:8000 $TOKEN [SECONDS]."""

import asyncio
import sys
from collections import Counter
from contextlib import suppress

from stream_server.client import Client, ClientFailure, Gap, Post


async def listen(url: str, token: str, every: float) -> None:
    """Count each minute's posts and tags, and print the counts every ``every`` seconds."""
    minutes: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    async with asyncio.TaskGroup() as group:
        group.create_task(report(minutes, tags, every))
        async with Client(url, token) as client:
            async for event in client.stream(firehose=True, kinds="post"):
                if isinstance(event, Gap):
                    print(f"not counted: {event.reason}", file=sys.stderr)
                elif isinstance(event, Post):
                    minutes[f"{event.at:%Y-%m-%dT%H:%M}"] += 1
                    tags.update(tag.text.lower() for tag in event.status.entities.hashtags)


async def report(minutes: Counter[str], tags: Counter[str], every: float) -> None:
    """Print the number of posts in the latest minute, and the five most frequent tags."""
    while True:
        await asyncio.sleep(every)
        latest = max(minutes, default="no posts yet")
        top = "  ".join(f"#{tag} {count}" for tag, count in tags.most_common(5))
        print(f"{latest}: {minutes[latest]} posts   {top}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} URL TOKEN [SECONDS]")
    server, jwt, *seconds = sys.argv[1:]
    refusal = None
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(listen(server, jwt, float(seconds[0]) if seconds else 5))
    except* ClientFailure as failed:
        refusal = str(failed.exceptions[0])  # sys.exit() in here would become part of an exception group
    sys.exit(refusal)
