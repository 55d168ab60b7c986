"""The command ``count``: how many past posts match rules, in each minute, hour or day."""

import asyncio
from typing import Any, Literal, get_args

import click
import msgspec
from rich.table import Table

from stream_server.commands import server_access
from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.commands.output import JSON_OPTION, OutputConsole, escape_controls, finish
from stream_server.commands.tail import STREAM_SCOPES
from stream_server.wire.counts import CountBucket

BAR_CELLS = 40
"""Length of the bar of the fullest bucket, in characters."""

Every = Literal["minute", "hour", "day"]


@click.command(
    epilog="""
\b
Examples:
  stream-server count coffee --user ada
  stream-server count 'coffee -is:repost' '#tea' --user ada --from -7d --every day
  stream-server count --saved --user ada --from 2026-11-28T00:00:00Z --to 2026-11-29T00:00:00Z --json

\b
A * marks a line of which the log no longer has all posts.
"""
)
@click.argument("rules", nargs=-1, metavar="[RULE]...")
@click.option("--saved", is_flag=True, help="Count the user's saved rules.")
@click.option("--from", "start", default="-1d", show_default=True, help="Begin: an ISO time, or an age such as -7d.")
@click.option("--to", "end", help="End, likewise; by default now.")
@click.option("--every", type=click.Choice(get_args(Every)), default="hour", show_default=True)
@JSON_OPTION
@server_access.credential_options
def count(
    *, rules: tuple[str, ...], saved: bool, start: str, end: str | None, every: Every, as_json: bool, **given: Any
) -> None:  # fmt: skip
    """Count the past posts that match each RULE, as far as the log goes back."""
    if bool(rules) == saved:
        raise CommandFailure("give rules, or --saved", USAGE)
    asked: tuple[str, ...] | Literal["saved"] = "saved" if saved else rules
    client = server_access.open_client(given, STREAM_SCOPES)

    async def count_all() -> list[CountBucket]:
        found: list[CountBucket] = []
        async with client:
            after = None
            while True:
                page = await client.count_rules(asked, start, end, every=every, after=after)
                found += page.buckets
                if (after := page.next) is None:
                    return found

    buckets = asyncio.run(count_all())
    finish(msgspec.to_builtins(buckets), _draw(buckets[::-1], rules, every), as_json=as_json)


def _draw(buckets: list[CountBucket], rules: tuple[str, ...], every: Every) -> Table:
    """Return the counts as a table with bars, the oldest first. ``rules`` head their columns; saved ones their tags."""
    shown = dict.fromkeys((one.id, one.tag) for bucket in buckets for one in bucket.counts)
    if rules:
        names = {f"r{n}": text for n, text in enumerate(rules, start=1)}
    else:
        names = {rule: tag or rule for rule, tag in shown}
    table = Table(every, "posts", "", box=None)
    if len(names) > 1:
        for name in names.values():
            table.add_column(escape_controls(name[:30]), justify="right")
    most = max((bucket.count for bucket in buckets), default=0) or 1
    full = "█" if OutputConsole().has_unicode else "#"
    for bucket in buckets:
        of_rules = {one.id: one.count for one in bucket.counts}
        counts = [f"{of_rules.get(rule, 0):,}" for rule in names] if len(names) > 1 else []
        time = f"{bucket.start:%Y-%m-%d %H:%M}{'' if bucket.complete else ' *'}"
        table.add_row(time, f"{bucket.count:,}", full * -(-bucket.count * BAR_CELLS // most), *counts)
    return table
