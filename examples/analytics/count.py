"""Count one part of the firehose: python count.py URL TOKEN FILE [--part 1/4] [--since=-1h].

Run one process for each part, with the same FILE. Kill any of them at any moment and start it again: each event counts
once, because its counts and its cursor are written in one transaction.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from results import Batch, Post, Results

from stream_server.client import Client, ClientFailure, Event, Gap
from stream_server.client import Post as PostEvent

FORGET_EVERY_BATCHES = 1000


async def count(url: str, token: str, results: Results, part: tuple[int, int], since: str | None) -> None:
    """Count until the stream ends for good, from the last cursor or from ``since`` at the first start."""
    name, number = f"{part[0]}/{part[1]}", 0
    cursor = results.begin(*part)
    async with Client(url, token) as client:
        stream = client.stream(
            firehose=True, partition=part, kinds="post", framing="ndjson", since=cursor or since,
            control=True,  # then the file has a cursor from the first message on, also if the part stays quiet
        )  # fmt: skip
        while True:
            events = await stream.next_batch()
            batch = to_batch(events, stream.cursor or "")
            results.add(name, batch)
            if batch.missed:
                print(f"{name}: at least {batch.missed} events are lost", file=sys.stderr)
            number += 1
            if number % FORGET_EVERY_BATCHES == 0:
                results.forget_old_terms()


def to_batch(events: Sequence[Event], cursor: str) -> Batch:
    """Return what is counted of some events. A gap of unknown length counts as one missed event."""
    statuses = [(event.at, event.status) for event in events if isinstance(event, PostEvent)]
    posts = [
        Post(
            at, status.login, status.message,
            [tag.text for tag in status.entities.hashtags], [one.login for one in status.entities.mentions],
        )
        for at, status in statuses
    ]  # fmt: skip
    return Batch(posts, cursor, sum(event.count or 1 for event in events if isinstance(event, Gap)))


def part_of(text: str) -> tuple[int, int]:
    """Return part and number of parts of a text such as ``1/4``. Raises ValueError for another one."""
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts <= 64:
        raise ValueError(text)
    return part, parts


def main() -> None:
    """Count what the command line asks for, until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Count one part of the firehose.")
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("file", type=Path)
    parser.add_argument("--part", type=part_of, default=(1, 1))
    parser.add_argument("--since", help="where to begin at the first start: a time, or an age such as --since=-1h")
    options = parser.parse_args()
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(count(options.url, options.token, Results(options.file), options.part, options.since))
    except (ClientFailure, ValueError) as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    main()
