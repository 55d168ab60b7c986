"""The command ``serve``: run the server until SIGTERM or Ctrl-C."""

from pathlib import Path
from typing import Any

import click

from stream_server.commands import setting_options
from stream_server.commands.exit_codes import UNREACHABLE, CommandFailure
from stream_server.config import config
from stream_server.errors import ApiError
from stream_server.runtime import output_thread
from stream_server.runtime.embedded_redis import EmbeddedRedisError
from stream_server.runtime.listening import CannotListen
from stream_server.store.redis.refusals import describe_for_operator
from stream_server.store.store import UnusableRedis


@click.command(
    epilog="""
\b
Examples:
  stream-server serve --demo                     sample content, and commands to try
  stream-server serve --data-dir ./data          keeps its data in ./data
  stream-server serve --redis redis://10.0.0.5   uses that Redis
  stream-server serve --workers 4 --port 80      four processes on one port
  stream-server serve --settings-file server.toml --data-dir ./data
"""
)
@click.option("--demo", is_flag=True, help="Create sample content that keeps changing, and print commands to try.")
@click.option("--supervised", type=click.INT, hidden=True)
@click.option("--listening", type=click.INT, multiple=True, hidden=True)
@click.option("--slot", type=click.INT, default=1, hidden=True)
@click.option("--sockets", type=click.Path(path_type=Path), hidden=True)
@setting_options.options()
@click.pass_context
def serve(
    context: click.Context,
    /,
    demo: bool,  # noqa: FBT001 - click passes flags so
    supervised: int | None,
    listening: tuple[int, ...],
    slot: int,
    sockets: Path | None,
    **flags: Any,
) -> None:
    """Run the server, with an embedded Redis unless --redis names another one.

    Ctrl-C and SIGTERM stop the server after a goodbye to every stream. At SIGHUP the server reads --settings-file
    again, and uses the settings that docs/reference/settings.md marks as reloadable.
    """
    # Imported here, because importing the server takes time and other commands do not need it.
    from stream_server.runtime import process, python_check  # noqa: PLC0415 - see above

    output_thread.use_for_standard_output()
    settings = config.load(flags)
    if fault := python_check.find_fault():
        raise CommandFailure(fault)
    try:
        worker = None if supervised is None else process.WorkerOptions(supervised, listening, slot, sockets)
        code = process.run_server(settings, flags, with_demo=demo, print_text=click.echo, worker=worker)
    except (EmbeddedRedisError, CannotListen, UnusableRedis) as error:
        raise CommandFailure(str(error)) from None
    except OSError as error:
        raise CommandFailure(f"{error.filename or 'the server'}: {error.strerror or error}") from None
    except ApiError as error:
        name = "the Redis of --redis" if settings.redis else "the embedded Redis"
        raise CommandFailure(f"{name} {describe_for_operator(error)}", UNREACHABLE) from None
    context.exit(code)
