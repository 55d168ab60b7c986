"""The commands ``subscriptions``: list, put, delete and acknowledge the named subscriptions of a user, and webhooks."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import click
import msgspec
from rich.table import Table

from stream_server.client import Client
from stream_server.commands import server_access
from stream_server.commands.exit_codes import FAILED, OK
from stream_server.commands.output import JSON_OPTION, escape_controls, finish
from stream_server.commands.tail import STREAM_SCOPES, filter_options, filter_parameters
from stream_server.wire.subscriptions import SentWebhook, Subscription, Webhook

T = TypeVar("T")


@click.group()
def subscriptions() -> None:
    """List, put, delete and acknowledge a user's named subscriptions."""


@subscriptions.command(name="list")
@JSON_OPTION
@server_access.credential_options
def list_all(*, as_json: bool, **given: Any) -> None:
    """List the subscriptions of a user, and how far behind each is."""
    found = _ask(given, lambda client: client.subscriptions())
    finish(msgspec.to_builtins(found), list_of(found), as_json=as_json)


def list_of(found: Iterable[Subscription]) -> Table:
    """Return subscriptions as text: some lines for each, which fit a narrow terminal, where columns would not."""
    table = Table.grid(padding=(0, 2))
    for one in found:
        behind = "not behind"
        if one.behind:
            kept = "" if one.kept_seconds is None else f", kept for about {one.kept_seconds:,.0f} s"
            behind = f"{one.behind:,} entries and {one.behind_seconds:,.0f} s behind{kept}"
        parameters = "&".join(f"{name}={value}" for name, value in one.parameters.items())
        lines = [parameters[:60], f"at {one.cursor}", behind]
        if one.parts:
            lines.append(f"parts: {_workers(one)}")
        if one.deliver is not None:
            lines.append(f"sent to {_sent_to(one.deliver)}")
        table.add_row(escape_controls(one.name), "\n".join(map(escape_controls, lines)))
    return table


@subscriptions.command(
    epilog="""
\b
Examples:
  stream-server subscriptions put work --user ada --track "redis,postgres" --since -1h
  stream-server tail --user ada --subscription work
  stream-server subscriptions put crowd --user ada --track tea --parts 8
"""
)
@click.argument("name")
@filter_options
@click.option("--firehose", is_flag=True, help="Everything public (scope firehose).")
@click.option("--param", "more", multiple=True, metavar="NAME=VALUE", help="A parameter of a plugin's filter.")
@click.option("--since", help="Where a new one begins: a cursor, an ISO time, or -15m; else with new events.")
@click.option("--parts", type=click.IntRange(1, 64), help="Share a new one among several readers, by so many parts.")
@click.option("--deliver", metavar="URL", help="Send the events to this https URL, which must answer a challenge.")
@click.option("--batch", type=int, help="Most events in one request to the URL; 100 if not given.")
@click.option("--paused", is_flag=True, help="Keep the URL, but send nothing until the next put.")
@JSON_OPTION
@server_access.credential_options
def put(
    *, name: str, firehose: bool, more: tuple[str, ...], since: str | None, parts: int | None, deliver: str | None,
    batch: int | None, paused: bool, as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Make the subscription NAME, or give an existing one other filters. It keeps its cursor."""
    if deliver is None and (paused or batch is not None):
        raise click.UsageError("--batch and --paused need --deliver")
    parameters = filter_parameters(given, more) | ({"firehose": "true"} if firehose else {})

    async def make(client: Client) -> Subscription:
        return await client.put_subscription(
            name, since=since, parts=parts, deliver=deliver, batch=batch, paused=paused, more=parameters
        )

    _show(_ask(given, make), as_json=as_json)


@subscriptions.command()
@click.argument("name")
@JSON_OPTION
@server_access.credential_options
def delete(*, name: str, as_json: bool, **given: Any) -> None:
    """Delete the subscription NAME, and end the stream that reads it."""
    _ask(given, lambda client: client.delete_subscription(name))
    finish({"deleted": name}, f"deleted {escape_controls(name)}", as_json=as_json)


@subscriptions.command()
@click.argument("name")
@JSON_OPTION
@server_access.credential_options
def test(*, name: str, as_json: bool, **given: Any) -> None:
    """Send a request without events to the URL of the subscription NAME, and show how it went.

    The exit code is 1 if the answer was not 2xx.
    """
    sent = _ask(given, lambda client: client.test_webhook(name))
    code = OK if sent.status is not None and 200 <= sent.status < 300 else FAILED
    shown = f"{_outcome(sent)} after {sent.milliseconds:,} ms"
    finish(msgspec.to_builtins(sent), shown, as_json=as_json, code=code)


@subscriptions.command()
@click.argument("name")
@JSON_OPTION
@server_access.credential_options
def secret(*, name: str, as_json: bool, **given: Any) -> None:
    """Make a new secret for the URL of the subscription NAME. For a day the one before it signs, too."""
    made = _ask(given, lambda client: client.replace_webhook_secret(name))
    finish(msgspec.to_builtins(made), made.secret, as_json=as_json)


@subscriptions.command()
@click.argument("name")
@click.argument("cursor")
@click.option("--connection", help="Of a shared subscription: the id of the connection that received CURSOR.")
@JSON_OPTION
@server_access.credential_options
def ack(*, name: str, cursor: str, connection: str | None, as_json: bool, **given: Any) -> None:
    """Acknowledge all events of the subscription NAME up to CURSOR: they do not come again."""

    async def acknowledge(client: Client) -> Subscription:
        await client.ack(name, cursor, connection=connection)
        return await client.subscription(name)

    _show(_ask(given, acknowledge), as_json=as_json)


def _workers(one: Subscription) -> str:
    """Return who reads how many parts of a shared subscription, such as ``a 3, b 3, nobody 2``."""
    held = Counter(part.worker or "nobody" for part in one.parts)
    return ", ".join(f"{worker} {count}" for worker, count in sorted(held.items()))


def _show(one: Subscription, *, as_json: bool) -> None:
    text = escape_controls(f"{one.name} is at {one.cursor}, {one.behind:,} entries behind")
    if one.deliver is not None and one.deliver.secret is not None:
        text += f"\nits requests are signed with {one.deliver.secret}, which is not shown again"
    finish(msgspec.to_builtins(one), text, as_json=as_json)


def _sent_to(webhook: Webhook) -> str:
    last = f", {_outcome(webhook.outcomes[0])}" if webhook.outcomes else ""
    return f"{webhook.url[:60]} ({webhook.state}{last})"


def _outcome(sent: SentWebhook) -> str:
    return escape_controls(sent.error or "") if sent.status is None else f"status {sent.status}"


def _ask(given: dict[str, Any], ask: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    """Return what ``ask`` returns for a client with the options of the command."""
    client = server_access.open_client(given, STREAM_SCOPES)

    async def run() -> T:
        async with client:
            return await ask(client)

    return asyncio.run(run())
